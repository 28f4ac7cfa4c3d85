// Views of an input as the model reads it; one file for each arrangement of places.
//
// A view is {element, light(weights, top), clear()}; it calls on.point(place | null) when a place is pointed at and
// on.choose(place, more) when it is clicked; `more`: added to the places chosen before. Pictures can be painted on
// too: on.stroke(places | null, more) while a stroke is drawn (null: cancelled), on.paint(places, more) at its end.

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
