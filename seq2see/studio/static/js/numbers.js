// An output that is made of numbers: a picture, or a vector.

import { make } from "./dom.js";
import { figure } from "./symbols.js";

export function numbers(prediction) {
  if (prediction.image) return make("img.made", { src: prediction.image, alt: "the picture that the model gives" });
  return make("p.numbers", { dir: "ltr" }, (prediction.vector ?? []).map((number) => make("span", {}, figure(number))));
}
