// Which map is shown, where there are several: inputs, layers, sequences that look at themselves; and which head.

import { make } from "./dom.js";

export function mapChooser(looks, chosen, head, show) {
  const names = Object.keys(looks.maps);
  const heads = looks.maps[chosen].heads?.length ?? 0;
  if (names.length < 2 && !heads) return null;
  return make("div.maps", {}, names.length > 1 ? nameChooser(names, chosen, show) : null,
    heads ? headChooser(heads, head, (one) => show(chosen, one)) : null);
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
