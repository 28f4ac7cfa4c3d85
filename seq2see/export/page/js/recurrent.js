// Recurrent layers, from the first step to the last: x (steps, batch, width), W (1, gates, width), R (1, gates, size),
// B (1, 2 gates) -> Y (steps, 1, batch, size). Gates lie in ONNX's order: LSTM i o f c, GRU z r h.

import { timesTransposed } from "./products.js";

export const logistic = (x) => 1 / (1 + Math.exp(-x));
const ACTIVATIONS = { Sigmoid: logistic, Tanh: Math.tanh };

// advance(fed, read, state): fed, read: the gates from the input and from the state before, of one row.
function layer(x, W, R, B, gates, advance) {
  const [steps, batch, width] = x.shape;
  const size = R.shape[2];
  const wide = gates * size;
  const fed = new Float32Array(steps * batch * wide);
  timesTransposed(x.data, W.data, fed, steps * batch, width, wide);
  const read = new Float32Array(batch * wide);
  const state = new Float32Array(batch * size);
  const out = new Float32Array(steps * batch * size);
  const bias = B ? B.data : new Float32Array(2 * wide);
  for (let step = 0; step < steps; step++) {
    timesTransposed(state, R.data, read, batch, size, wide);
    for (let row = 0; row < batch; row++) {
      for (let i = 0; i < size; i++) {
        const at = row * wide + i;
        const from = (gate) => fed[step * batch * wide + at + gate * size] + bias[gate * size + i];
        const back = (gate) => read[at + gate * size] + bias[wide + gate * size + i];
        out[(step * batch + row) * size + i] = advance({ from, back, before: state[row * size + i], row, i });
      }
    }
    state.set(out.subarray(step * batch * size, (step + 1) * batch * size));
  }
  return { data: out, shape: [steps, 1, batch, size] };
}

export function rnn([x, W, R, B], { activations = ["Tanh"] }) {
  const activate = ACTIVATIONS[activations[0]];
  return [layer(x, W, R, B, 1, ({ from, back }) => activate(from(0) + back(0)))];
}

export function lstm([x, W, R, B]) {
  const size = R.shape[2];
  const cells = new Float32Array(x.shape[1] * size);
  return [layer(x, W, R, B, 4, ({ from, back, row, i }) => {
    const at = row * size + i;
    const [write, show, keep] = [0, 1, 2].map((gate) => logistic(from(gate) + back(gate)));
    cells[at] = keep * cells[at] + write * Math.tanh(from(3) + back(3));
    return show * Math.tanh(cells[at]);
  })];
}

export function gru([x, W, R, B], { activations = ["Sigmoid", "Tanh"], linear_before_reset: after = 0 }) {
  const activate = ACTIVATIONS[activations[1]];
  const gate = (own, { from, back }) => logistic(from(own) + back(own));
  if (after) {
    return [layer(x, W, R, B, 3, (at) => {
      const kept = gate(0, at);
      return (1 - kept) * activate(at.from(2) + gate(1, at) * at.back(2)) + kept * at.before;
    })];
  }
  return [resetBefore(x, W, R, B, activate)];
}

// The reset gate is applied before the product, W (r * s): the whole reset state is needed first.
function resetBefore(x, W, R, B, activate) {
  const [steps, batch, width] = x.shape;
  const size = R.shape[2];
  const fed = new Float32Array(steps * batch * 3 * size);
  timesTransposed(x.data, W.data, fed, steps * batch, width, 3 * size);
  const bias = B ? B.data : new Float32Array(6 * size);
  const out = new Float32Array(steps * batch * size);
  const state = new Float32Array(batch * size);
  const gates = new Float32Array(batch * 2 * size);
  const reset = new Float32Array(batch * size);
  const inner = new Float32Array(batch * size);
  const sum = (step, row, gate, i) => fed[(step * batch + row) * 3 * size + gate * size + i] + bias[gate * size + i] + bias[(3 + gate) * size + i];
  const each = (visit) => { for (let row = 0; row < batch; row++) for (let i = 0; i < size; i++) visit(row, i, row * size + i); };
  for (let step = 0; step < steps; step++) {
    timesTransposed(state, R.data, gates, batch, size, 2 * size);
    each((row, i, at) => { reset[at] = logistic(sum(step, row, 1, i) + gates[row * 2 * size + size + i]) * state[at]; });
    timesTransposed(reset, R.data, inner, batch, size, size, { other: 2 * size * size });
    each((row, i, at) => {
      const kept = logistic(sum(step, row, 0, i) + gates[row * 2 * size + i]);
      state[at] = (1 - kept) * activate(sum(step, row, 2, i) + inner[at]) + kept * state[at];
    });
    out.set(state, step * batch * size);
  }
  return { data: out, shape: [steps, 1, batch, size] };
}
