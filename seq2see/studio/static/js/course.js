// How an output came about: what a person has said (the beginning of the output) and where they made it look.
//
// A course is {prefix, oracle, edits}. An edit at a step keeps the symbols before it and whatever was done there, and
// leaves the rest to the model again.

export const free = () => ({ prefix: null, oracle: {}, edits: [] });

const until = (oracle, step) => Object.fromEntries(Object.entries(oracle).filter(([at]) => Number(at) < step));
const before = (edits, step) => edits.filter((edit) => edit.step < step);

// Look elsewhere at a step. A label has one step and no beginning.
export function looking(course, { symbols, step, map, weights, label }) {
  const others = course.oracle[step] ?? {};
  return {
    prefix: label || step === 0 ? null : symbols.slice(0, step),
    oracle: { ...until(course.oracle, step), [step]: { ...others, [map]: rounded(weights) } },
    edits: [...before(course.edits, step), { step, looks: map, weights }],
  };
}

// Say another symbol at a step.
export function saying(course, { symbols, step, symbol }) {
  const looked = (edit) => edit.step === step && edit.looks;
  return {
    prefix: [...symbols.slice(0, step), symbol],
    oracle: until(course.oracle, step + 1),
    edits: [...before(course.edits, step), ...course.edits.filter(looked), { step, says: symbol }],
  };
}

// The server wants a sum of one: what rounding takes or gives is the heaviest place's.
export function rounded(weights) {
  const kept = weights.map((weight) => Math.round(weight * 1e6) / 1e6);
  const heaviest = kept.indexOf(Math.max(...kept));
  kept[heaviest] += 1 - kept.reduce((sum, weight) => sum + weight, 0);
  return kept;
}
