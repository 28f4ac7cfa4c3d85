// Edits of an output: symbols that a person chose, and weights that they set.
//
// Edits are {prefix, oracle, list}: the first two are keys of the request. An edit at a step keeps the symbols before it
// and the edits of earlier steps; the model writes the rest.

export const noEdits = () => ({ prefix: null, oracle: {}, list: [] });

const oracleBefore = (oracle, step) => Object.fromEntries(Object.entries(oracle).filter(([at]) => Number(at) < step));
const editsBefore = (list, step) => list.filter((edit) => edit.step < step);

// Set the weights of a step. A label has one step and no prefix.
export function editLooks(edits, { symbols, step, map, weights, label }) {
  const others = edits.oracle[step] ?? {};
  return {
    prefix: label || step === 0 ? null : symbols.slice(0, step),
    oracle: { ...oracleBefore(edits.oracle, step), [step]: { ...others, [map]: rounded(weights) } },
    list: [...editsBefore(edits.list, step), { step, looks: map, weights }],
  };
}

// Choose another symbol at a step.
export function editSymbol(edits, { symbols, step, symbol }) {
  const looked = (edit) => edit.step === step && edit.looks;
  return {
    prefix: [...symbols.slice(0, step), symbol],
    oracle: oracleBefore(edits.oracle, step + 1),
    list: [...editsBefore(edits.list, step), ...edits.list.filter(looked), { step, says: symbol }],
  };
}

// Weights that sum to one exactly, as the server wants them: the heaviest place takes what rounding leaves.
export function rounded(weights) {
  const kept = weights.map((weight) => Math.round(weight * 1e6) / 1e6);
  const heaviest = kept.indexOf(Math.max(...kept));
  kept[heaviest] += 1 - kept.reduce((sum, weight) => sum + weight, 0);
  return kept;
}
