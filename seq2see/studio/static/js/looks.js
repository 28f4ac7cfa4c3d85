// Where the model looked: named maps, which of them is the main one, and a chooser where there are several.

import { make } from "./dom.js";

// A map: {name, input, inputs, weights (rows x places), layout, heads?, chosen?, rows?}; `rows`: their names, where
// they are not the outputs.
export function looksOf(prediction, model) {
  const looks = prediction.looks ?? {};
  if (!looks.weights?.length) return { maps: {}, main: null, outputs: looks.outputs ?? [], reason: looks.reason };
  const first = model.attention.over[0] ?? model.inputs[0]?.name ?? "input";
  const records = looks.maps ?? { [first]: looks };
  const maps = {};
  for (const [name, record] of Object.entries(records)) maps[name] = { ...record, name, input: name.split(".")[0] };
  const same = JSON.stringify(looks.weights);
  const main = Object.keys(maps).find((name) => JSON.stringify(maps[name].weights) === same) ?? Object.keys(maps)[0];
  return { maps, main, outputs: looks.outputs };
}

// The map of outputs over this input: the chosen one, or the input's own.
export function mapOver(looks, input, chosen) {
  const fits = (map) => map && map.input === input && !map.rows;
  if (fits(looks.maps[chosen])) return looks.maps[chosen];
  if (fits(looks.maps[looks.main])) return looks.maps[looks.main];
  return fits(looks.maps[input]) ? looks.maps[input] : null;
}

// (rows x places), of one head if given.
export const weightsOf = (map, head = null) => (head === null || !map.heads ? map.weights : map.heads[head]);

// Choose among maps (inputs, layers, self-attention) and heads.
export function mapChooser(looks, chosen, head, show) {
  const names = Object.keys(looks.maps);
  const heads = looks.maps[chosen].heads?.length ?? 0;
  if (names.length < 2 && !heads) return null;
  return make("div.maps", {}, names.length > 1 ? nameChooser(names, chosen, show) : null,
    heads ? headChooser(heads, head, (number) => show(chosen, number)) : null);
}

function nameChooser(names, chosen, show) {
  const options = names.map((name) => make("option", { value: name, selected: name === chosen }, name));
  const select = make("select", { "aria-label": "map", onchange: () => show(select.value, null) }, options);
  return select;
}

function headChooser(count, head, show) {
  const button = (label, value) =>
    make("button", { type: "button", "aria-pressed": String(value === head), onclick: () => show(value) }, label);
  const each = Array.from({ length: count }, (_, at) => button(`head ${at + 1}`, at));
  return make("div.heads", { role: "group", "aria-label": "heads" }, button("mean", null), each);
}
