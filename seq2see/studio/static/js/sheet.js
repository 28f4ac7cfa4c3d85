// One picture for each word, lit where that word looked.

import { bdi, make } from "./dom.js";
import { gridOf, overlay, inReadingOrder } from "./shading.js";
import { percent, visible } from "./symbols.js";
import { painted } from "./theme.js";
import { top as topOf } from "./weights.js";

const SIDE = 224;

export function sheet({ shown, map, weights, tokens, on }) {
  const grid = gridOf(map.layout);
  const top = topOf(weights);
  const height = Math.max(24, Math.round((SIDE * shown.height) / shown.width));
  const scenes = weights.map((line, step) => {
    const canvas = make("canvas", { width: SIDE, height, "aria-hidden": "true" });
    const { text, probability } = tokens[step];
    const caption = make("figcaption", {}, bdi(visible(text)), make("span", { title: "probability of this symbol" }, percent(probability)));
    const pointed = { onpointerenter: () => on.point(step), onclick: () => on.choose(step) };
    const scene = make("figure.scene", { data: { step }, ...pointed }, caption, canvas);
    return { scene, canvas, shares: inReadingOrder(line, grid).map((weight) => weight / top) };
  });
  const image = new Image();
  const paint = () => {
    if (!image.naturalWidth) return;
    scenes.forEach(({ canvas, shares }) => overlay(canvas, image, shares, grid.rows, grid.columns));
  };
  image.addEventListener("load", paint);
  image.src = shown.picture;
  const element = make("div.sheet", {}, scenes.map(({ scene }) => scene));
  painted(element, paint);
  element.addEventListener("pointerleave", () => on.point(null));
  return { element, mark: (step) => scenes.forEach(({ scene }, at) => scene.classList.toggle("active", at === step)) };
}
