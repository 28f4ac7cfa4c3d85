// The operators of ONNX that exported models are made of (opset 18): (inputs, attributes) -> outputs.
// seq2see/export/page/graph.py has the list of them, and refuses models that need another one.

import { gemm, matmul } from "./products.js";
import { gru, logistic, lstm, rnn } from "./recurrent.js";
import {
  around, choose, combine, commonShape, positive, reduce, scalar, sizeOf, strided, stretched, stridesOf,
} from "./tensors.js";

const TYPES = { 1: Float32Array, 6: Int32Array, 7: Int32Array, 9: Uint8Array }; // of ONNX: float, int32, int64, bool

function apply({ data, shape }, compute, Type = data.constructor) {
  const out = new Type(data.length);
  for (let i = 0; i < out.length; i++) out[i] = compute(data[i]);
  return { data: out, shape };
}
const map = (compute, Type) => ([x]) => [apply(x, compute, Type)];
const pairs = (compute) => ([a, b]) => [combine(a, b, a.data.constructor, compute)];
const compared = (compute) => ([a, b]) => [combine(a, b, Uint8Array, compute)];
const numbers = (tensor) => (tensor ? Array.from(tensor.data) : null);
const whole = (list) => ({ data: Int32Array.from(list), shape: [list.length] });

// Axes come as an input or as an attribute; none: all of them, or nothing to do.
function reduced(rule, prepare = null) {
  return ([x, axisTensor], { axes = numbers(axisTensor), keepdims = 1, noop_with_empty_axes: noop = 0 }) => {
    const tensor = prepare ? apply(x, prepare) : x;
    if (!axes?.length && noop) return [tensor];
    return [reduce(tensor, axes?.length ? axes : null, keepdims, rule)];
  };
}
const ZERO = { data: new Float32Array(1), shape: [1] };
const SUM = { first: 0, step: (a, b) => a + b };

// ------------------------------------------------------------ shapes

function reshape([x, shape], { allowzero = 0 }) {
  const sides = numbers(shape).map((side, axis) => (side === 0 && !allowzero ? x.shape[axis] : side));
  const free = sides.indexOf(-1);
  if (free >= 0) sides[free] = x.data.length / sizeOf(sides.filter((_, axis) => axis !== free)) || 0;
  return [{ data: x.data, shape: sides }];
}

function squeeze([x, axisTensor]) {
  const axes = numbers(axisTensor)?.map((axis) => positive(axis, x.shape.length));
  return [{ data: x.data, shape: x.shape.filter((side, axis) => (axes ? !axes.includes(axis) : side !== 1)) }];
}

function unsqueeze([x, axisTensor]) {
  const rank = x.shape.length + axisTensor.data.length;
  const axes = new Set(numbers(axisTensor).map((axis) => positive(axis, rank)));
  const rest = x.shape.values();
  return [{ data: x.data, shape: Array.from({ length: rank }, (_, axis) => (axes.has(axis) ? 1 : rest.next().value)) }];
}

function flatten([x], { axis = 1 }) {
  const at = positive(axis, x.shape.length);
  return [{ data: x.data, shape: [sizeOf(x.shape.slice(0, at)), sizeOf(x.shape.slice(at))] }];
}

function transpose([x], { perm = x.shape.map((_, axis) => axis).reverse() }) {
  const strides = stridesOf(x.shape);
  return [strided(x, perm.map((axis) => x.shape[axis]), perm.map((axis) => strides[axis]))];
}

function expand([x, wanted]) {
  const shape = commonShape([x.shape, numbers(wanted)]);
  return [strided(x, shape, stretched(x, shape))];
}

function tile([x, repeats]) {
  const times = numbers(repeats);
  const inner = x.shape.flatMap((side) => [1, side]);
  const shape = x.shape.flatMap((side, axis) => [times[axis], side]);
  const view = { data: x.data, shape: inner };
  return [{ ...strided(view, shape, stretched(view, shape)), shape: x.shape.map((side, axis) => side * times[axis]) }];
}

function concat(inputs, { axis }) {
  const at = positive(axis, inputs[0].shape.length);
  const shape = [...inputs[0].shape];
  shape[at] = inputs.reduce((sum, each) => sum + each.shape[at], 0);
  const out = new inputs[0].data.constructor(sizeOf(shape));
  const [before, , behind] = around(shape, at);
  let start = 0;
  for (const { data, shape: own } of inputs) {
    const length = own[at] * behind;
    for (let i = 0; i < before; i++) out.set(data.subarray(i * length, (i + 1) * length), i * shape[at] * behind + start);
    start += length;
  }
  return [{ data: out, shape }];
}

function split([x, sizes], { axis = 0, num_outputs: count }) {
  const at = positive(axis, x.shape.length);
  const side = Math.ceil(x.shape[at] / (count ?? 1));
  const sides = numbers(sizes) ?? Array.from({ length: count }, (_, i) => Math.min(side, x.shape[at] - i * side));
  const strides = stridesOf(x.shape);
  let start = 0;
  return sides.map((own) => {
    const part = strided(x, x.shape.map((each, i) => (i === at ? own : each)), strides, start * strides[at]);
    start += own;
    return part;
  });
}

function slice([x, starts, ends, axisTensor, stepTensor]) {
  const rank = x.shape.length;
  const axes = (numbers(axisTensor) ?? numbers(starts).map((_, axis) => axis)).map((axis) => positive(axis, rank));
  const steps = numbers(stepTensor) ?? axes.map(() => 1);
  const shape = [...x.shape];
  const strides = stridesOf(x.shape);
  let first = 0;
  axes.forEach((axis, i) => {
    const side = x.shape[axis];
    const step = steps[i];
    const within = (value, least, most) => Math.min(most, Math.max(least, value < 0 ? value + side : value));
    const start = step > 0 ? within(starts.data[i], 0, side) : within(starts.data[i], 0, side - 1);
    const end = step > 0 ? within(ends.data[i], 0, side) : within(ends.data[i], -1, side - 1);
    shape[axis] = Math.max(0, Math.ceil((end - start) / step));
    first += start * strides[axis];
    strides[axis] *= step;
  });
  return [strided(x, shape, strides, first)];
}

function pad([x, pads, value, axisTensor], { mode = "constant" }) {
  if (mode !== "constant") throw new Error(`Pad: mode ${mode}`);
  const rank = x.shape.length;
  const axes = (numbers(axisTensor) ?? x.shape.map((_, axis) => axis)).map((axis) => positive(axis, rank));
  const before = x.shape.map(() => 0);
  const shape = [...x.shape];
  axes.forEach((axis, i) => {
    before[axis] = pads.data[i];
    shape[axis] += pads.data[i] + pads.data[i + axes.length];
  });
  const out = new x.data.constructor(sizeOf(shape)).fill(value?.data[0] ?? 0);
  const strides = stridesOf(shape);
  const own = stridesOf(x.shape);
  for (let at = 0; at < x.data.length; at++) {
    let to = 0;
    let outside = false;
    own.forEach((stride, axis) => {
      const place = (Math.floor(at / stride) % x.shape[axis]) + before[axis];
      outside ||= place < 0 || place >= shape[axis];
      to += place * strides[axis];
    });
    if (!outside) out[to] = x.data[at];
  }
  return [{ data: out, shape }];
}

// ------------------------------------------------------------ places

function gather([x, index], { axis = 0 }) {
  const at = positive(axis, x.shape.length);
  const [before, side, behind] = around(x.shape, at);
  const count = index.data.length;
  const out = new x.data.constructor(before * count * behind);
  for (let i = 0; i < before; i++) {
    for (let j = 0; j < count; j++) {
      const from = (i * side + positive(index.data[j], side)) * behind;
      out.set(x.data.subarray(from, from + behind), (i * count + j) * behind);
    }
  }
  return [{ data: out, shape: [...x.shape.slice(0, at), ...index.shape, ...x.shape.slice(at + 1)] }];
}

// visit(number in the index, number in x that it names)
function eachElement(x, index, axis, visit) {
  const at = positive(axis, x.shape.length);
  const strides = stridesOf(x.shape);
  const own = stridesOf(index.shape);
  for (let i = 0; i < index.data.length; i++) {
    let from = 0;
    for (let side = 0; side < own.length; side++) {
      const place = side === at ? positive(index.data[i], x.shape[at]) : Math.floor(i / own[side]) % index.shape[side];
      from += place * strides[side];
    }
    visit(i, from);
  }
}

function gatherElements([x, index], { axis = 0 }) {
  const out = new x.data.constructor(index.data.length);
  eachElement(x, index, axis, (i, from) => { out[i] = x.data[from]; });
  return [{ data: out, shape: index.shape }];
}

function scatterElements([x, index, updates], { axis = 0, reduction = "none" }) {
  const out = x.data.slice();
  const write = { none: (at, value) => { out[at] = value; }, add: (at, value) => { out[at] += value; } }[reduction];
  eachElement(x, index, axis, (i, to) => write(to, updates.data[i]));
  return [{ data: out, shape: x.shape }];
}

// The rows of an index (.., k) name parts of x: visit(number of the row, where the part begins).
function eachPart(x, index, visit) {
  const k = index.shape[index.shape.length - 1];
  const strides = stridesOf(x.shape);
  for (let row = 0; row < index.data.length / k; row++) {
    let from = 0;
    for (let axis = 0; axis < k; axis++) from += positive(index.data[row * k + axis], x.shape[axis]) * strides[axis];
    visit(row, from);
  }
  return sizeOf(x.shape.slice(k));
}

function gatherND([x, index]) {
  const k = index.shape[index.shape.length - 1];
  const length = sizeOf(x.shape.slice(k));
  const out = new x.data.constructor((index.data.length / k) * length);
  eachPart(x, index, (row, from) => out.set(x.data.subarray(from, from + length), row * length));
  return [{ data: out, shape: [...index.shape.slice(0, -1), ...x.shape.slice(k)] }];
}

function scatterND([x, index, updates], { reduction = "none" }) {
  const out = x.data.slice();
  const length = sizeOf(x.shape.slice(index.shape[index.shape.length - 1]));
  eachPart(x, index, (row, to) => {
    for (let i = 0; i < length; i++) {
      const value = updates.data[row * length + i];
      out[to + i] = reduction === "add" ? out[to + i] + value : value;
    }
  });
  return [{ data: out, shape: x.shape }];
}

function range([start, limit, delta]) {
  const [first, last, step] = [start, limit, delta].map(({ data }) => data[0]);
  const data = new start.data.constructor(Math.max(0, Math.ceil((last - first) / step)));
  for (let i = 0; i < data.length; i++) data[i] = first + i * step;
  return [{ data, shape: [data.length] }];
}

// ------------------------------------------------------------ along an axis

// visit(start, stride): the numbers of each line along an axis.
function eachLine(shape, axis, visit) {
  const [before, side, behind] = around(shape, axis);
  for (let i = 0; i < before; i++) for (let j = 0; j < behind; j++) visit(i * side * behind + j, behind, side);
}

function softmax(logarithm) {
  return ([x], { axis = -1 }) => {
    const out = new Float32Array(x.data.length);
    eachLine(x.shape, positive(axis, x.shape.length), (start, stride, side) => {
      let top = -Infinity;
      for (let i = 0; i < side; i++) top = Math.max(top, x.data[start + i * stride]);
      let total = 0;
      for (let i = 0; i < side; i++) total += Math.exp(x.data[start + i * stride] - top);
      const log = Math.log(total);
      for (let i = 0; i < side; i++) {
        const value = x.data[start + i * stride] - top - log;
        out[start + i * stride] = logarithm ? value : Math.exp(value);
      }
    });
    return [{ data: out, shape: x.shape }];
  };
}

function cumulative([x, axis], { exclusive = 0, reverse = 0 }) {
  const out = new x.data.constructor(x.data.length);
  eachLine(x.shape, positive(axis.data[0], x.shape.length), (start, stride, side) => {
    let total = 0;
    for (let i = 0; i < side; i++) {
      const at = start + (reverse ? side - 1 - i : i) * stride;
      out[at] = exclusive ? total : total + x.data[at];
      total += x.data[at];
    }
  });
  return [{ data: out, shape: x.shape }];
}

function topK([x, count], { axis = -1, largest = 1 }) {
  const at = positive(axis, x.shape.length);
  const k = count.data[0];
  const shape = x.shape.map((side, i) => (i === at ? k : side));
  const values = new x.data.constructor(sizeOf(shape));
  const places = new Int32Array(values.length);
  const [, , behind] = around(x.shape, at);
  let line = 0;
  eachLine(x.shape, at, (start, stride, side) => {
    const order = Array.from({ length: side }, (_, i) => i);
    const value = (i) => x.data[start + i * stride];
    order.sort((a, b) => (largest ? value(b) - value(a) : value(a) - value(b)) || a - b);
    const to = Math.floor(line / behind) * k * behind + (line % behind);
    for (let i = 0; i < k; i++) {
      values[to + i * behind] = value(order[i]);
      places[to + i * behind] = order[i];
    }
    line += 1;
  });
  return [{ data: values, shape }, { data: places, shape }];
}

function argMax([x], { axis = 0, keepdims = 1 }) {
  const at = positive(axis, x.shape.length);
  const out = [];
  eachLine(x.shape, at, (start, stride, side) => {
    let best = 0;
    for (let i = 1; i < side; i++) if (x.data[start + i * stride] > x.data[start + best * stride]) best = i;
    out.push(best);
  });
  return [{ data: Int32Array.from(out), shape: x.shape.flatMap((side, i) => (i !== at ? [side] : keepdims ? [1] : [])) }];
}

function layerNormalization([x, scale, bias], { axis = -1, epsilon = 1e-5 }) {
  const width = sizeOf(x.shape.slice(positive(axis, x.shape.length)));
  const out = new Float32Array(x.data.length);
  for (let start = 0; start < out.length; start += width) {
    let mean = 0;
    let square = 0;
    for (let i = 0; i < width; i++) mean += x.data[start + i] / width;
    for (let i = 0; i < width; i++) square += (x.data[start + i] - mean) ** 2 / width;
    const divisor = Math.sqrt(square + epsilon);
    for (let i = 0; i < width; i++) {
      out[start + i] = ((x.data[start + i] - mean) / divisor) * scale.data[i] + (bias ? bias.data[i] : 0);
    }
  }
  return [{ data: out, shape: x.shape }];
}

// A convolution along one axis: x (batch, channels, length), W (filters, channels, kernel).
function convolution([x, W, b], { pads = [0, 0], strides = [1], dilations = [1] }) {
  const [batch, channels, length] = x.shape;
  const [filters, , kernel] = W.shape;
  const places = Math.floor((length + pads[0] + pads[1] - dilations[0] * (kernel - 1) - 1) / strides[0]) + 1;
  const out = new Float32Array(batch * filters * places);
  for (let row = 0; row < batch; row++) {
    for (let filter = 0; filter < filters; filter++) {
      for (let place = 0; place < places; place++) {
        let sum = b ? b.data[filter] : 0;
        for (let i = 0; i < kernel; i++) {
          const at = place * strides[0] - pads[0] + i * dilations[0];
          if (at < 0 || at >= length) continue;
          for (let channel = 0; channel < channels; channel++) {
            sum += x.data[(row * channels + channel) * length + at] * W.data[(filter * channels + channel) * kernel + i];
          }
        }
        out[(row * filters + filter) * places + place] = sum;
      }
    }
  }
  return [{ data: out, shape: [batch, filters, places] }];
}

function trilu([x, k], { upper = 1 }) {
  const [rows, columns] = x.shape.slice(-2);
  const shift = k?.data[0] ?? 0;
  const inside = (at) => {
    const above = (at % columns) - (Math.floor(at / columns) % rows);
    return upper ? above >= shift : above <= shift;
  };
  return [{ data: x.data.map((value, at) => (inside(at) ? value : 0)), shape: x.shape }];
}

// The error function to 1.2e-7 (Numerical Recipes, erfc by Chebyshev fitting).
const ERF = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
function erf(x) {
  const t = 1 / (1 + 0.5 * Math.abs(x));
  const tail = t * Math.exp(-x * x + ERF.reduceRight((sum, factor) => sum * t + factor, 0));
  return x >= 0 ? 1 - tail : tail - 1;
}

// The nearest whole number, of two that are as near the even one.
const rounded = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluTanh = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

const clip = (x, least, most) => [apply(x, (value) => Math.min(most, Math.max(least, value)))];

export const OPERATORS = {
  Abs: map(Math.abs),
  Add: pairs((a, b) => a + b),
  And: compared((a, b) => a & b),
  ArgMax: argMax,
  Cast: ([x], { to }) => [to === 9 ? apply(x, (value) => value !== 0, Uint8Array) : { data: new TYPES[to](x.data), shape: x.shape }],
  Ceil: map(Math.ceil),
  Clip: ([x, least, most]) => clip(x, least?.data[0] ?? -Infinity, most?.data[0] ?? Infinity),
  Concat: concat,
  ConstantOfShape: ([shape], { value = ZERO }) => [strided(value, numbers(shape), numbers(shape).map(() => 0))],
  Conv: convolution,
  Cos: map(Math.cos),
  CumSum: cumulative,
  Div: pairs((a, b) => a / b), // of whole numbers cut off: Int32Array does so
  Equal: compared((a, b) => a === b),
  Erf: map(erf),
  Exp: map(Math.exp),
  Expand: expand,
  Flatten: flatten,
  Floor: map(Math.floor),
  Gather: gather,
  GatherElements: gatherElements,
  GatherND: gatherND,
  Gelu: ([x], { approximate = "none" }) => [apply(x, approximate === "tanh" ? geluTanh : gelu)],
  Gemm: ([a, b, c], attributes) => [gemm(a, b, c, attributes)],
  Greater: compared((a, b) => a > b),
  GreaterOrEqual: compared((a, b) => a >= b),
  GRU: gru,
  Identity: ([x]) => [x],
  IsInf: map((x) => Math.abs(x) === Infinity, Uint8Array),
  IsNaN: map(Number.isNaN, Uint8Array),
  LayerNormalization: layerNormalization,
  Less: compared((a, b) => a < b),
  LessOrEqual: compared((a, b) => a <= b),
  Log: map(Math.log),
  LogSoftmax: softmax(true),
  LSTM: lstm,
  MatMul: ([a, b]) => [matmul(a, b)],
  Max: (inputs) => [inputs.reduce((a, b) => combine(a, b, a.data.constructor, Math.max))],
  Min: (inputs) => [inputs.reduce((a, b) => combine(a, b, a.data.constructor, Math.min))],
  Mod: pairs((a, b) => a - b * Math.floor(a / b)),
  Mul: pairs((a, b) => a * b),
  Neg: map((x) => -x),
  Not: map((x) => 1 - x),
  Or: compared((a, b) => a | b),
  Pad: pad,
  Pow: pairs((a, b) => a ** b),
  Range: range,
  Reciprocal: map((x) => 1 / x),
  ReduceL1: reduced(SUM, Math.abs),
  ReduceL2: reduced({ ...SUM, end: Math.sqrt }, (x) => x * x),
  ReduceMax: reduced({ first: -Infinity, step: Math.max }),
  ReduceMean: reduced({ ...SUM, end: (total, count) => total / count }),
  ReduceMin: reduced({ first: Infinity, step: Math.min }),
  ReduceProd: reduced({ first: 1, step: (a, b) => a * b }),
  ReduceSum: reduced(SUM),
  ReduceSumSquare: reduced(SUM, (x) => x * x),
  Relu: map((x) => Math.max(x, 0)),
  Reshape: reshape,
  RNN: rnn,
  Round: map(rounded),
  ScatterElements: scatterElements,
  ScatterND: scatterND,
  Shape: ([x], { start = 0, end = x.shape.length }) => [whole(x.shape.slice(start, end))],
  Sigmoid: map(logistic),
  Sign: map(Math.sign),
  Sin: map(Math.sin),
  Size: ([x]) => [scalar(x.data.length)],
  Slice: slice,
  Softmax: softmax(false),
  Split: split,
  Sqrt: map(Math.sqrt),
  Squeeze: squeeze,
  Sub: pairs((a, b) => a - b),
  Tanh: map(Math.tanh),
  Tile: tile,
  TopK: topK,
  Transpose: transpose,
  Trilu: trilu,
  Unsqueeze: unsqueeze,
  Where: ([condition, a, b]) => [choose(condition, a, b)],
};
