// A text, symbol by symbol; letters of one word stay joined, as Arabic needs it.

import { make } from "../dom.js";
import { plain, shade } from "../shading.js";
import { fraction, gluedTo, rightward, visible } from "../symbols.js";
import { listen } from "./pointing.js";

export function wordsView({ symbols, tokens, map, on }) {
  const glued = gluedTo(symbols, tokens);
  const element = make("p.read", { dir: "auto" });
  const places = symbols.map((symbol, place) => {
    const text = tokens === "character" ? symbol : visible(symbol);
    const span = make("span.place", { data: { place } }, text);
    if (place && !glued[place]) element.append(" ");
    element.append(span);
    return span;
  });
  const live = map ? places.slice(0, map.inputs.length) : [];
  places.slice(live.length).forEach((span) => span.classList.add(map ? "unread" : "still"));
  if (map) listen(element, on);
  return {
    element,
    light(weights, top) {
      live.forEach((span, place) => {
        shade(span, weights[place] / top);
        span.title = rightward(`weight ${fraction(weights[place])}`);
      });
    },
    clear: () => live.forEach(plain),
  };
}
