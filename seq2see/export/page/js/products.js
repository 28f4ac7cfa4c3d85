// Products of matrices. Sums are kept in double precision, results in single.

import { commonShape, sizeOf, strided, stretched, stridesOf } from "./tensors.js";

// out = a b', a: (rows, width), b: (columns, width), both row by row. Four rows of `a` share each number of `b`.
export function timesTransposed(a, b, out, rows, width, columns, { from = 0, other = 0, to = 0 } = {}) {
  let row = 0;
  for (; row + 3 < rows; row += 4) {
    const a0 = from + row * width;
    const a1 = a0 + width;
    const a2 = a1 + width;
    const a3 = a2 + width;
    for (let column = 0; column < columns; column++) {
      const first = other + column * width;
      let s0 = 0;
      let s1 = 0;
      let s2 = 0;
      let s3 = 0;
      for (let i = 0; i < width; i++) {
        const y = b[first + i];
        s0 += a[a0 + i] * y;
        s1 += a[a1 + i] * y;
        s2 += a[a2 + i] * y;
        s3 += a[a3 + i] * y;
      }
      const at = to + row * columns + column;
      out[at] = s0;
      out[at + columns] = s1;
      out[at + 2 * columns] = s2;
      out[at + 3 * columns] = s3;
    }
  }
  for (; row < rows; row++) {
    const start = from + row * width;
    for (let column = 0; column < columns; column++) {
      const first = other + column * width;
      let s0 = 0;
      let s1 = 0;
      let s2 = 0;
      let s3 = 0;
      let i = 0;
      for (; i + 3 < width; i += 4) {
        s0 += a[start + i] * b[first + i];
        s1 += a[start + i + 1] * b[first + i + 1];
        s2 += a[start + i + 2] * b[first + i + 2];
        s3 += a[start + i + 3] * b[first + i + 3];
      }
      for (; i < width; i++) s0 += a[start + i] * b[first + i];
      out[to + row * columns + column] = s0 + s1 + s2 + s3;
    }
  }
}

const TRANSPOSED = new WeakMap(); // of matrices, by their numbers: those of a model never change

function transposed(matrix) {
  const [rows, columns] = matrix.shape.slice(-2);
  const { data } = strided({ data: matrix.data }, [columns, rows], [1, columns]);
  return data;
}

function keptTransposed(matrix) {
  const kept = TRANSPOSED.get(matrix.data);
  if (kept?.width === matrix.shape[0]) return kept.data;
  const data = transposed(matrix);
  TRANSPOSED.set(matrix.data, { data, width: matrix.shape[0] });
  return data;
}

// a: (.., rows, width), b: (.., width, columns); a vector counts as one row, or as one column.
export function matmul(a, b) {
  const flat = a.shape.length === 1;
  const single = b.shape.length === 1;
  if (flat) a = { data: a.data, shape: [1, ...a.shape] };
  if (single) b = { data: b.data, shape: [...b.shape, 1] };
  const [rows, width] = a.shape.slice(-2);
  const columns = b.shape[b.shape.length - 1];
  if (b.shape[b.shape.length - 2] !== width) throw new Error(`shapes do not fit: (${a.shape}) times (${b.shape})`);
  const heads = [a, b].map(({ shape }) => shape.slice(0, -2));
  const batch = commonShape(heads);
  const out = new Float32Array(sizeOf(batch) * rows * columns);
  if (b.shape.length === 2) {
    timesTransposed(a.data, keptTransposed(b), out, sizeOf(a.shape) / width || 0, width, columns);
  } else {
    const index = stridesOf(batch);
    const [first, second] = heads.map((shape) => stretched({ shape }, batch));
    for (let at = 0; at < sizeOf(batch); at++) {
      let [i, j] = [0, 0];
      batch.forEach((side, axis) => {
        const place = Math.floor(at / index[axis]) % side;
        i += place * first[axis];
        j += place * second[axis];
      });
      plain(a.data, b.data, out, { rows, width, columns, from: i * rows * width, other: j * width * columns, to: at * rows * columns });
    }
  }
  return { data: out, shape: [...batch, ...(flat ? [] : [rows]), ...(single ? [] : [columns])] };
}

// Matrices that differ from call to call: row by row of `b`, so that nothing has to be turned round.
function plain(a, b, out, { rows, width, columns, from, other, to }) {
  const sums = new Float64Array(columns);
  for (let row = 0; row < rows; row++) {
    sums.fill(0);
    for (let i = 0; i < width; i++) {
      const x = a[from + row * width + i];
      if (x === 0) continue;
      const start = other + i * columns;
      for (let column = 0; column < columns; column++) sums[column] += x * b[start + column];
    }
    out.set(sums, to + row * columns);
  }
}

// alpha a b + beta c, with a and b transposed if so asked.
export function gemm(a, b, c, { alpha = 1, beta = 1, transA = 0, transB = 0 }) {
  const left = transA ? transposed(a) : a.data;
  const [rows, width] = transA ? [...a.shape].reverse() : a.shape;
  const columns = transB ? b.shape[0] : b.shape[1];
  const out = new Float32Array(rows * columns);
  timesTransposed(left, transB ? b.data : keptTransposed(b), out, rows, width, columns);
  if (alpha !== 1) out.forEach((value, at) => { out[at] = alpha * value; });
  if (c) {
    const strides = stretched(c, [rows, columns]);
    for (let at = 0; at < out.length; at++) {
      out[at] += beta * c.data[Math.floor(at / columns) * strides[0] + (at % columns) * strides[1]];
    }
  }
  return { data: out, shape: [rows, columns] };
}
