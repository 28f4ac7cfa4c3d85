// A graph as seq2see/export/page/graph.py writes it: values have numbers; nodes, in order, are
// [operator, inputs, outputs, attributes]; constants [value, type, shape, first byte of the weights].

import { OPERATORS } from "./operators.js";
import { sizeOf } from "./tensors.js";

// 16 bits -> the number that they stand for.
function halves() {
  const table = new Float32Array(1 << 16);
  for (let bits = 0; bits < table.length; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024);
    table[bits] = exponent === 31 ? (fraction ? NaN : sign * Infinity) : sign * size;
  }
  return table;
}

export function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

// Reads constants; weights: all bytes, little-endian, as the processors of browsers are.
export function constantReader(weights) {
  let table = null;
  return (type, shape, from) => {
    const count = sizeOf(shape);
    if (type === "float16") {
      table ??= halves();
      const bits = new Uint16Array(weights.buffer, weights.byteOffset + from, count);
      const data = new Float32Array(count);
      for (let at = 0; at < count; at++) data[at] = table[bits[at]];
      return { data, shape };
    }
    const Type = { float32: Float32Array, int32: Int32Array, bool: Uint8Array }[type];
    return { data: new Type(weights.buffer, weights.byteOffset + from, count), shape };
  };
}

export class Graph {
  constructor({ inputs, outputs, nodes, constants }, read) {
    this.inputs = inputs;
    this.outputs = Object.entries(outputs);
    this.values = []; // constants, by the number of the value
    for (const [value, ...constant] of constants) this.values[value] = read(...constant);
    for (const node of nodes) {
      const { value } = node[3];
      if (Array.isArray(value)) node[3].value = read(...value);
    }
    // What depends on constants alone is computed once.
    this.nodes = nodes.filter((node) => {
      if (!node[1].every((input) => input < 0 || this.values[input])) return true;
      compute(node, this.values);
      return false;
    });
  }

  // feed, result: tensors by name; inputs that the graph does not have are left out.
  run(feed) {
    const values = this.values.slice();
    for (const [name, value] of Object.entries(this.inputs)) values[value] = feed[name];
    for (const node of this.nodes) compute(node, values);
    return Object.fromEntries(this.outputs.map(([name, value]) => [name, values[value]]));
  }
}

function compute([operator, inputs, outputs, attributes], values) {
  const made = OPERATORS[operator](inputs.map((input) => values[input]), attributes);
  outputs.forEach((output, at) => { if (output >= 0) values[output] = made[at]; });
}
