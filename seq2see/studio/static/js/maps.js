// Which map is shown, where there are several: inputs, layers, sequences that look at themselves; and which head.

import { make } from "./dom.js";

export function mapChooser(looks, chosen, head, show) {
  const names = Object.keys(looks.maps);
  const heads = looks.maps[chosen].heads?.length ?? 0;
  if (names.length < 2 && !heads) return null;
  const parts = [];
  if (names.length > 1) {
    const select = make("select", { "aria-label": "map", onchange: () => show(select.value, null) }, names.map((name) => make("option", { value: name, selected: name === chosen }, name)));
    parts.push(select);
  }
  const button = (label, value) => make("button", { type: "button", "aria-pressed": String(value === head), onclick: () => show(chosen, value) }, label);
  if (heads) parts.push(make("div.heads", { role: "group", "aria-label": "heads" }, button("mean", null), Array.from({ length: heads }, (_, at) => button(`head ${at + 1}`, at))));
  return make("div.maps", {}, parts);
}
