// A film strip: the frames that the model reads, coloured by the weight of each, or of the regions of each.

import { make } from "../dom.js";
import { overlay, within } from "../shading.js";
import { fraction } from "../symbols.js";
import { painted } from "../theme.js";
import { addsTo } from "./pointing.js";

const WIDTH = 160;

export function filmView({ shown, map, on }) {
  const [count, rows, columns] = [...(map?.layout.shape ?? [shown.frames.length]), 1, 1];
  const cells = rows * columns;
  const frames = only(shown.frames.length, count).map((number, at) => frameOf(shown, number, at));
  const element = make("ol.film", {}, frames.map((frame) => frame.element));
  let last = null;

  const paint = () => frames.forEach((frame, at) => {
    const shares = last?.weights.slice(at * cells, (at + 1) * cells);
    const light = shares?.map((weight) => weight / last.top);
    if (frame.image.naturalWidth) overlay(frame.canvas, frame.image, light, rows, columns);
    frame.weight.textContent = shares ? fraction(shares.reduce((sum, weight) => sum + weight, 0)) : "";
  });
  frames.forEach(({ image, source }) => {
    image.addEventListener("load", paint);
    image.src = source;
  });
  painted(element, paint);
  if (map) {
    const placeOf = (event) => {
      const frame = event.target.closest?.("[data-frame]");
      if (!frame) return null;
      return Number(frame.dataset.frame) * cells + cellOf(event, frame.querySelector("canvas"), rows, columns);
    };
    element.addEventListener("pointermove", (event) => on.point(placeOf(event)));
    element.addEventListener("pointerleave", () => on.point(null));
    element.addEventListener("click", (event) => {
      const place = placeOf(event);
      if (place !== null) on.choose(place, addsTo(event));
    });
  }
  return {
    element,
    light(weights, top) {
      last = { weights, top };
      paint();
    },
    clear() {
      last = null;
      paint();
    },
  };
}

// `count` of the frames, evenly spaced, where a place is several of them.
const only = (frames, count) => Array.from({ length: count }, (_, at) => Math.floor(((at + 0.5) * frames) / count));

function frameOf(shown, number, at) {
  const time = `${shown.times[number].toFixed(2)} s`;
  const height = Math.max(1, Math.round((WIDTH * shown.height) / shown.width));
  const canvas = make("canvas", { width: WIDTH, height, role: "img", "aria-label": `frame at ${time}` });
  const weight = make("b");
  const element = make("li", { data: { frame: at } }, canvas, make("span", {}, time, weight));
  return { element, canvas, weight, image: new Image(), source: shown.frames[number] };
}

function cellOf(event, canvas, rows, columns) {
  const box = canvas.getBoundingClientRect();
  const row = within((event.clientY - box.top) / box.height, rows);
  return row * columns + within((event.clientX - box.left) / box.width, columns);
}
