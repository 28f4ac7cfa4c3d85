// One example of the film: its inputs, its reference, the output of the model, and the weights for the reference.

import { bdi, make } from "../dom.js";
import { gridOf, overlay, inReadingOrder } from "../shading.js";
import { shade } from "../shading.js";
import { columnHeads } from "../heatmap.js";
import { fraction, percent, rightward, short, visible } from "../symbols.js";
import { painted } from "../theme.js";

// description: as in the film's first line. An example is {element, show(example of a frame, largest weight of the film)}.
export function example(description, number) {
  const says = make("dd.says", {});
  const facts = Object.entries(description.inputs).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, bdi(value))]);
  const list = make("dl", {}, facts, make("dt", {}, "expected"), make("dd", {}, bdi(description.reference)), make("dt", {}, "output"), says);
  const map = description.reason ? withoutMap(description) : description.picture && description.layout.kind === "grid" ? sheet(description) : table(description);
  const element = make("article.example", { "aria-label": `example ${number + 1}`, data: { example: number } }, list, map.element, cut(description));
  return {
    element,
    show(shown, top) {
      says.replaceChildren(bdi(shown.says));
      map.show(shown, top);
    },
  };
}

// A film is written with few digits: 0 is very little, not nothing.
const likely = (probability) => percent(probability || 1e-9);

const withoutMap = (description) => ({ element: make("p.quiet", {}, description.reason), show() {} });

function cut(description) {
  if (!description.of) return null;
  const [steps, places] = description.of;
  return make("p.quiet", {}, `The first ${description.outputs.length} of ${steps} steps and ${description.places.length} of ${places} places are shown.`);
}

function table(description) {
  const heat = make("table.heat");
  const heads = columnHeads(heat, description.places, 16);
  const lines = description.outputs.map((symbol) => {
    const cells = description.places.map(() => make("td"));
    const chance = make("td.probability", { title: "its probability" });
    return { cells, chance, row: make("tr", {}, make("th", { scope: "row" }, bdi(visible(symbol))), cells, chance) };
  });
  const caption = make("caption.unseen", {}, "weights, outputs in rows, inputs in columns, the probability of the output last");
  const corner = make("td");
  const head = make("thead", {}, make("tr", {}, corner, heads, make("th", { scope: "col", title: "probability of each symbol" }, "P")));
  heat.append(caption, head, make("tbody", {}, lines.map((line) => line.row)));
  return {
    element: make("div.scroll", { tabindex: "0", role: "region", "aria-label": "heatmap" }, heat),
    show({ weights, probabilities = [] }, top) {
      lines.forEach(({ cells, chance }, step) => {
        chance.textContent = step in probabilities ? likely(probabilities[step]) : "";
        cells.forEach((cell, place) => {
          const weight = weights[step][place] ?? 0;
          cell.dataset.weight = weight;
          cell.title = rightward(`weight ${fraction(weight)}`);
          cell.textContent = short(weight);
          shade(cell, weight / top);
        });
      });
    },
  };
}

// The picture once for each step, lit where it was looked at.
function sheet(description) {
  const image = new Image();
  const grid = gridOf(description.layout);
  const steps = description.outputs.map((symbol) => {
    const chance = make("span");
    const canvas = make("canvas", { role: "img", "aria-label": `where it looks for ${visible(symbol)}` });
    const caption = make("figcaption", {}, make("b", {}, bdi(visible(symbol))), chance);
    return { canvas, chance, figure: make("figure.scene", {}, caption, canvas) };
  });
  const element = make("div.sheet", {}, steps.map((step) => step.figure));
  let last = null;
  const draw = () => {
    if (!last || !image.naturalWidth) return;
    steps.forEach(({ canvas }, step) => {
      Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
      const shares = inReadingOrder(last.weights[step], grid).map((weight) => weight / last.top);
      overlay(canvas, image, shares, grid.rows, grid.columns);
    });
  };
  image.addEventListener("load", draw);
  image.src = description.picture;
  painted(element, draw);
  return {
    element,
    show({ weights, probabilities = [] }, top) {
      last = { weights, top };
      steps.forEach(({ chance, canvas }, step) => {
        chance.textContent = step in probabilities ? likely(probabilities[step]) : "";
        canvas.dataset.weights = weights[step].join(" ");
      });
      draw();
    },
  };
}
