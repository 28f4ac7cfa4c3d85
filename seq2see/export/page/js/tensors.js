// Arrays with a shape: {data, shape}. Numbers are Float32Array, whole numbers Int32Array, truth values Uint8Array (0, 1).

export const sizeOf = (shape) => shape.reduce((product, side) => product * side, 1);

// How far apart neighbours of each axis lie.
export function stridesOf(shape) {
  const strides = new Array(shape.length);
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

export const scalar = (value, Type = Int32Array) => ({ data: Type.of(value), shape: [] });

// An axis counted from the end becomes one counted from the start.
export const positive = (axis, rank) => (axis < 0 ? axis + rank : axis);

// The shape that all of these are stretched to, side by side from the last axis on.
export function commonShape(shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    let side = 1;
    for (const shape of shapes) {
      const own = shape[axis - rank + shape.length] ?? 1;
      if (own === 1 || own === side) continue;
      if (side !== 1) throw new Error(`shapes do not fit: ${shapes.map((each) => `(${each})`).join(" ")}`);
      side = own;
    }
    return side;
  });
}

// The strides of a tensor that is stretched to a shape: 0 along an axis that it does not have.
export function stretched(tensor, shape) {
  const strides = stridesOf(tensor.shape);
  const missing = shape.length - tensor.shape.length;
  return shape.map((_, axis) => (axis < missing || tensor.shape[axis - missing] === 1 ? 0 : strides[axis - missing]));
}

// Go through a shape run by run along its last axis: visit(at, offsets, length); offsets: where the run begins for each
// of the strides.
export function eachRun(shape, strides, visit) {
  const rank = shape.length;
  const length = rank ? shape[rank - 1] : 1;
  const total = sizeOf(shape);
  const index = new Int32Array(rank);
  const offsets = strides.map(() => 0);
  for (let at = 0; at < total; at += length) {
    visit(at, offsets, length);
    for (let axis = rank - 2; axis >= 0; axis--) {
      for (let i = 0; i < offsets.length; i++) offsets[i] += strides[i][axis];
      if (++index[axis] < shape[axis]) break;
      for (let i = 0; i < offsets.length; i++) offsets[i] -= strides[i][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

// A copy in which each axis is walked with its own stride: transposed, cut or stretched. start: of the first number.
export function strided({ data }, shape, strides, start = 0) {
  const out = new data.constructor(sizeOf(shape));
  const step = strides[strides.length - 1] ?? 0;
  eachRun(shape, [strides], (at, [offset], length) => {
    let from = start + offset;
    if (step === 1) out.set(data.subarray(from, from + length), at);
    else for (let i = at; i < at + length; i++, from += step) out[i] = data[from];
  });
  return { data: out, shape };
}

// compute(a, b) of two tensors that are stretched to a common shape; Type: of the result.
export function combine(a, b, Type, compute) {
  const shape = commonShape([a.shape, b.shape]);
  const out = new Type(sizeOf(shape));
  const x = a.data;
  const y = b.data;
  if (x.length === out.length && y.length === out.length) {
    for (let i = 0; i < out.length; i++) out[i] = compute(x[i], y[i]);
    return { data: out, shape };
  }
  const strides = [stretched(a, shape), stretched(b, shape)];
  const [left, right] = strides.map((each) => each[each.length - 1] ?? 0);
  eachRun(shape, strides, (at, offsets, length) => {
    let i = offsets[0];
    let j = offsets[1];
    for (let to = at; to < at + length; to++, i += left, j += right) out[to] = compute(x[i], y[j]);
  });
  return { data: out, shape };
}

// condition ? a : b
export function choose(condition, a, b) {
  const shape = commonShape([condition.shape, a.shape, b.shape]);
  const out = new a.data.constructor(sizeOf(shape));
  const strides = [condition, a, b].map((tensor) => stretched(tensor, shape));
  const [test, left, right] = strides.map((each) => each[each.length - 1] ?? 0);
  eachRun(shape, strides, (at, offsets, length) => {
    for (let i = 0; i < length; i++) {
      out[at + i] = condition.data[offsets[0] + i * test] ? a.data[offsets[1] + i * left] : b.data[offsets[2] + i * right];
    }
  });
  return { data: out, shape };
}

// [numbers before an axis, of the axis, behind it]
export function around(shape, axis) {
  return [sizeOf(shape.slice(0, axis)), shape[axis], sizeOf(shape.slice(axis + 1))];
}

// Numbers along some axes become one: step(total, number) from `first` on, then end(total, count).
export function reduce(tensor, axes, keep, { first, step, end = (total) => total }) {
  const { shape } = tensor;
  const gone = new Set((axes ?? shape.map((_, axis) => axis)).map((axis) => positive(axis, shape.length)));
  const kept = shape.map((side, axis) => (gone.has(axis) ? 1 : side));
  const totals = new Float64Array(sizeOf(kept)).fill(first);
  const strides = stridesOf(kept).map((stride, axis) => (gone.has(axis) ? 0 : stride));
  const along = strides[strides.length - 1] ?? 0;
  eachRun(shape, [strides], (at, [offset], length) => {
    for (let i = 0; i < length; i++) totals[offset + i * along] = step(totals[offset + i * along], tensor.data[at + i]);
  });
  const count = tensor.data.length / Math.max(totals.length, 1);
  const data = new tensor.data.constructor(totals.length);
  for (let i = 0; i < data.length; i++) data[i] = end(totals[i], count);
  return { data, shape: keep ? kept : shape.filter((_, axis) => !gone.has(axis)) };
}
