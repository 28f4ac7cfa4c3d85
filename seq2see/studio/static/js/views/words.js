// A text, symbol by symbol; letters of one word stay joined, so that Arabic is still written as it should be.

import { make } from "../dom.js";
import { plain, shade } from "../shade.js";
import { gluedTo, percent, rightward, visible } from "../symbols.js";
import { listen } from "./pointing.js";

export function wordsView({ symbols, tokens, map, on }) {
  const glued = gluedTo(symbols, tokens);
  const element = make("p.read", { dir: "auto" });
  const places = symbols.map((symbol, place) => {
    const text = tokens === "character" ? symbol : visible(symbol);
    const one = make("span.place", { data: { place } }, text);
    if (place && !glued[place]) element.append(" ");
    element.append(one);
    return one;
  });
  const live = map ? places.slice(0, map.inputs.length) : [];
  places.slice(live.length).forEach((one) => one.classList.add(map ? "unread" : "still"));
  if (map) listen(element, on);
  return {
    element,
    light(weights, top) {
      live.forEach((one, place) => {
        shade(one, weights[place] / top);
        one.title = rightward(percent(weights[place]));
      });
    },
    clear: () => live.forEach(plain),
  };
}
