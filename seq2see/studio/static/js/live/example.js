// One example of the film: what it is, what the model says of it, where it looks for what it should say.

import { bdi, make } from "../dom.js";
import { gridOf, lit, seen } from "../light.js";
import { shade } from "../shade.js";
import { directionOf, percent, rightward, short, visible } from "../symbols.js";
import { painted } from "../theme.js";

// An example is {element, show(one example of a frame, the heaviest weight of its film)}.
export function example(scene, number) {
  const says = make("dd.says", {});
  const facts = Object.entries(scene.inputs).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, bdi(value))]);
  const list = make("dl", {}, facts, make("dt", {}, "should be"), make("dd", {}, bdi(scene.reference)), make("dt", {}, "says"), says);
  const map = scene.reason ? reasoned(scene) : scene.picture && scene.layout.kind === "grid" ? sheet(scene) : table(scene);
  const element = make("article.example", { "aria-label": `example ${number + 1}`, data: { example: number } }, list, map.element, cut(scene));
  return {
    element,
    show(shown, top) {
      says.replaceChildren(bdi(shown.says));
      map.show(shown, top);
    },
  };
}

// A film is written with few digits: 0 is a little, not nothing.
const likely = (probability) => percent(probability || 1e-9);

const reasoned = (scene) => ({ element: make("p.quiet", {}, scene.reason), show() {} });

function cut(scene) {
  if (!scene.of) return null;
  const [steps, places] = scene.of;
  return make("p.quiet", {}, `The first ${scene.outputs.length} of ${steps} steps and ${scene.places.length} of ${places} places are shown.`);
}

function table(scene) {
  const heads = scene.places.map((symbol) => make("th", { scope: "col" }, bdi(visible(symbol))));
  const lines = scene.outputs.map((symbol) => {
    const cells = scene.places.map(() => make("td"));
    const chance = make("td.probability", { title: "how likely the model finds it" });
    return { cells, chance, row: make("tr", {}, make("th", { scope: "row" }, bdi(visible(symbol))), cells, chance) };
  });
  const caption = make("caption.unseen", {}, "weights, outputs in rows, inputs in columns, the probability of the output last");
  const corner = make("td");
  const head = make("thead", {}, make("tr", {}, corner, heads, make("th", { scope: "col", title: "how likely the model finds each symbol" }, "P")));
  const made = make("table.heat", {}, caption, head, make("tbody", {}, lines.map((one) => one.row)));
  made.classList.toggle("long", scene.places.some((symbol) => visible(symbol).length > 2));
  made.classList.toggle("dense", scene.places.length > 16);
  made.dir = directionOf(scene.places);
  return {
    element: make("div.scroll", { tabindex: "0", role: "region", "aria-label": "heatmap" }, made),
    show({ weights, probabilities = [] }, top) {
      lines.forEach(({ cells, chance }, step) => {
        chance.textContent = step in probabilities ? likely(probabilities[step]) : "";
        cells.forEach((cell, place) => {
          const weight = weights[step][place] ?? 0;
          cell.dataset.weight = weight;
          cell.title = rightward(percent(weight));
          cell.textContent = short(weight);
          shade(cell, weight / top);
        });
      });
    },
  };
}

// The picture once for each step, lit where it was looked at.
function sheet(scene) {
  const image = new Image();
  const grid = gridOf(scene.layout);
  const steps = scene.outputs.map((symbol) => {
    const chance = make("span");
    const canvas = make("canvas", { role: "img", "aria-label": `where it looks for ${visible(symbol)}` });
    const caption = make("figcaption", {}, make("b", {}, bdi(visible(symbol))), chance);
    return { canvas, chance, figure: make("figure.scene", {}, caption, canvas) };
  });
  const element = make("div.sheet", {}, steps.map((one) => one.figure));
  let last = null;
  const draw = () => {
    if (!last || !image.naturalWidth) return;
    steps.forEach(({ canvas }, step) => {
      Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
      const shares = seen(last.weights[step], grid).map((weight) => weight / last.top);
      lit(canvas, image, shares, grid.rows, grid.columns);
    });
  };
  image.addEventListener("load", draw);
  image.src = scene.picture;
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
