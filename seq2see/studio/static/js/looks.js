// Where the model looked, in one shape whatever the server told: named maps, and which is the main one.

// A map: {name, input, inputs, weights (rows x places), layout, heads?, chosen?, rows?}; `rows`: what asks, where that
// is not the output.
export function looksOf(prediction, model) {
  const told = prediction.looks ?? {};
  if (!told.weights?.length) return { maps: {}, main: null, outputs: told.outputs ?? [], reason: told.reason };
  const first = model.attention.over[0] ?? model.inputs[0]?.name ?? "input";
  const records = told.maps ?? { [first]: told };
  const maps = {};
  for (const [name, record] of Object.entries(records)) maps[name] = { ...record, name, input: name.split(".")[0] };
  const same = JSON.stringify(told.weights);
  const main = Object.keys(maps).find((name) => JSON.stringify(maps[name].weights) === same) ?? Object.keys(maps)[0];
  return { maps, main, outputs: told.outputs };
}

// The map that says which parts of an input an output looked at: the one that is chosen, or the input's own.
export function mapOver(looks, input, chosen) {
  const fits = (map) => map && map.input === input && !map.rows;
  if (fits(looks.maps[chosen])) return looks.maps[chosen];
  if (fits(looks.maps[looks.main])) return looks.maps[looks.main];
  return fits(looks.maps[input]) ? looks.maps[input] : null;
}

// (rows x places), of one head where one is asked for.
export const weightsOf = (map, head = null) => (head === null || !map.heads ? map.weights : map.heads[head]);
