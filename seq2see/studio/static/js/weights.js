// Edits of attention weights, which always sum to one.

// Raise or lower one place to `value`; the others keep their proportions.
export function moved(weights, place, value) {
  const wanted = Math.min(1, Math.max(0, value));
  const rest = weights.reduce((sum, weight, at) => (at === place ? sum : sum + weight), 0);
  if (weights.length === 1) return [1];
  const others = weights.length - 1;
  return weights.map((weight, at) => {
    if (at === place) return wanted;
    return rest > 1e-9 ? (weight / rest) * (1 - wanted) : (1 - wanted) / others;
  });
}

// All weight on these places, in equal shares.
export const onto = (places, count) =>
  Array.from({ length: count }, (_, at) => (places.includes(at) ? 1 / places.length : 0));

// A stroke over places, added to the weights in `held`: every pass counts as much as a held place on average.
export function painted(held, places, count) {
  const before = held.filter((weight) => weight > 0).length;
  const weights = Array.from({ length: count }, (_, at) => (held[at] ?? 0) * before);
  for (const place of places) weights[place] += 1;
  return weights.map((weight) => weight / (before + places.length));
}

// The places with the largest weights.
export const heaviest = (weights, most = 3) =>
  weights.map((weight, place) => ({ weight, place })).sort((a, b) => b.weight - a.weight).slice(0, most);

export const top = (rows) => rows.reduce((most, row) => row.reduce((a, b) => Math.max(a, b), most), 1e-9);
