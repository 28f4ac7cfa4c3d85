// Edits of an output: symbols that a person chose, beginnings that they pruned, and weights that they set.
//
// Edits are {prefix, avoid, oracle, list}: the first three are keys of the request (avoid: `avoid_prefixes`). An edit at a
// step keeps the symbols before it and the edits of earlier steps; the model writes the rest. What was pruned stays pruned,
// unless it is chosen.

export const noEdits = () => ({ prefix: null, avoid: [], oracle: {}, list: [] });

const begins = (symbols, beginning) => Array.isArray(symbols) && beginning.every((symbol, at) => symbols[at] === symbol);
const without = (avoid, prefix) => avoid.filter((path) => !begins(prefix, path));
const oracleBefore = (oracle, step) => Object.fromEntries(Object.entries(oracle).filter(([at]) => Number(at) < step));
const editsBefore = (list, step, avoid) => list.filter((edit) => (edit.avoids ? avoid.includes(edit.avoids) : edit.step < step));

// Set the weights of a step. A label has one step and no prefix.
export function editLooks(edits, { symbols, step, map, weights, label }) {
  const others = edits.oracle[step] ?? {};
  const prefix = label || step === 0 ? null : symbols.slice(0, step);
  const avoid = without(edits.avoid, prefix);
  return {
    prefix,
    avoid,
    oracle: { ...oracleBefore(edits.oracle, step), [step]: { ...others, [map]: rounded(weights) } },
    list: [...editsBefore(edits.list, step, avoid), { step, looks: map, weights }],
  };
}

// Choose another symbol at a step.
export function editSymbol(edits, { symbols, step, symbol }) {
  const looked = (edit) => edit.step === step && edit.looks;
  const prefix = [...symbols.slice(0, step), symbol];
  const avoid = without(edits.avoid, prefix);
  return {
    prefix,
    avoid,
    oracle: oracleBefore(edits.oracle, step + 1),
    list: [...editsBefore(edits.list, step, avoid), ...edits.list.filter(looked), { step, says: symbol }],
  };
}

// Continue from a node of the beam tree; path: the symbols up to it.
export function editPath(edits, path) {
  const avoid = without(edits.avoid, path);
  const step = path.length - 1;
  const others = editsBefore(edits.list, step + 1, avoid).filter((edit) => edit.looks || edit.avoids);
  return { prefix: path, avoid, oracle: oracleBefore(edits.oracle, step + 1), list: [...others, { step, begins: path }] };
}

// Prune a node of the beam tree; a prefix that leads there ends before it.
export function editAvoid(edits, path) {
  const step = path.length - 1;
  const forced = begins(edits.prefix, path);
  const avoid = [...edits.avoid.filter((other) => !begins(other, path)), path];
  const others = editsBefore(edits.list, forced ? step : Infinity, avoid);
  return { ...edits, prefix: forced ? path.slice(0, -1) : edits.prefix, avoid, list: [...others, { step, avoids: path }] };
}

// No longer avoid a path.
export function editAllow(edits, path) {
  const differs = (other) => JSON.stringify(other) !== JSON.stringify(path);
  return { ...edits, avoid: edits.avoid.filter(differs), list: edits.list.filter((edit) => !edit.avoids || differs(edit.avoids)) };
}

// Weights that sum to one exactly, as the server wants them: the heaviest place takes what rounding leaves.
export function rounded(weights) {
  const kept = weights.map((weight) => Math.round(weight * 1e6) / 1e6);
  const heaviest = kept.indexOf(Math.max(...kept));
  kept[heaviest] += 1 - kept.reduce((sum, weight) => sum + weight, 0);
  return kept;
}
