// An input as the model read it, whose places can be lit. One file for each way in which places lie.
//
// A view is {element, light(weights, top), clear()}; it calls on.point(place | null) when a place is pointed at and
// on.choose(place, more) when it is clicked; `more`: in addition to what was chosen before. Pictures are painted on too:
// on.stroke(places | null, more) while a stroke is drawn, or broken off, on.paint(places, more) when it is done.

import { make } from "../dom.js";
import { documentView } from "./document.js";
import { filmView } from "./film.js";
import { pictureView } from "./picture.js";
import { wordsView } from "./words.js";

export function viewOf({ shown, map, looks, tokens, on }) {
  const kind = map?.layout?.kind;
  if (shown.picture) return pictureView({ shown, map, on });
  if (shown.frames) return filmView({ shown, map, on });
  if (shown.sentences) return documentView({ shown, map, looks, on });
  if (shown.symbols) return wordsView({ symbols: shown.symbols, tokens, map, on });
  if (map && kind !== "vector") return wordsView({ symbols: map.inputs, tokens: "word", map, on });
  const element = make("p.read", { dir: "auto" }, shown.text ?? "");
  return { element, light() {}, clear() {} };
}
