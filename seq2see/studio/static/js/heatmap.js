// A heatmap of outputs by inputs: a table that screen readers read; a canvas where the table would be huge.

import { bdi, make } from "./dom.js";
import { shade } from "./shading.js";
import { counted, directionOf, percent, rightward, short, visible } from "./symbols.js";
import { painted } from "./theme.js";
import { top as topOf } from "./weights.js";

const MOST = 8000; // cells of a table; a browser takes seconds over more

// rows: names of the rows; on: {point(step | null), choose(step)}. A heatmap is {element, mark(step)}.
export function heatmap({ map, weights, rows, on }) {
  const top = topOf(weights);
  if (weights.length * map.inputs.length > MOST) return { element: drawn(map, weights, rows, top), mark() {} };
  const long = map.inputs.some((symbol) => visible(symbol).length > 2);
  const dense = map.inputs.length > 30;
  const heads = map.inputs.map((symbol) => make("th", { scope: "col" }, bdi(label(symbol))));
  const lines = weights.map((line, step) => make("tr", { data: { step } },
    make("th", { scope: "row" }, bdi(label(rows[step] ?? ""))),
    line.map((weight, place) => {
      const cell = make("td", { title: rightward(percent(weight)) }, short(weight));
      if (map.chosen?.[step] === place) cell.classList.add("chosen");
      shade(cell, weight / top);
      return cell;
    })));
  const caption = make("caption.unseen", {}, `${map.name}: weights, outputs in rows, inputs in columns`);
  const head = make("thead", {}, make("tr", {}, make("td"), heads));
  const table = make("table.heat", {}, caption, head, make("tbody", {}, lines));
  table.classList.toggle("long", long);
  table.classList.toggle("dense", dense);
  table.dir = directionOf(map.inputs);
  table.addEventListener("pointerover", (event) => {
    const line = event.target.closest("tbody tr");
    on.point(line ? Number(line.dataset.step) : null);
  });
  table.addEventListener("pointerleave", () => on.point(null));
  table.addEventListener("click", (event) => {
    const line = event.target.closest("tbody tr");
    if (line) on.choose(Number(line.dataset.step));
  });
  const scroll = make("div.scroll", { tabindex: "0", role: "region", "aria-label": `heatmap of ${map.name}` }, table);
  return {
    element: make("div", {}, scroll, key(top)),
    mark: (step) => lines.forEach((line, at) => line.classList.toggle("active", at === step)),
  };
}

// Which colour stands for which weight.
const key = (top) => make("p.key.quiet", { "aria-hidden": "true" },
  make("span", {}, "0"), make("i"), make("span", {}, top.toFixed(2)), make("span", {}, "attention weight"));

const label = (symbol) => {
  const text = visible(symbol);
  return text.length > 24 ? `${text.slice(0, 23)}…` : text;
};

function drawn(map, weights, rows, top) {
  const width = map.inputs.length;
  const canvas = make("canvas.heat", { width, height: weights.length, role: "img" });
  const size = `${counted(weights.length, "output")} by ${counted(width, "place")}`;
  canvas.setAttribute("aria-label", `heatmap of ${map.name}: ${size}`);
  const pen = canvas.getContext("2d");
  const paint = () => {
    const style = getComputedStyle(document.documentElement);
    pen.fillStyle = style.getPropertyValue("--ramp-0");
    pen.fillRect(0, 0, width, weights.length);
    pen.fillStyle = style.getPropertyValue("--ramp-6");
    weights.forEach((line, step) => line.forEach((weight, place) => {
      pen.globalAlpha = Math.min(1, weight / top);
      pen.fillRect(place, step, 1, 1);
    }));
    pen.globalAlpha = 1;
  };
  paint();
  painted(canvas, paint);
  const names = make("ol.names", {}, rows.map((row) => make("li", {}, bdi(label(row)))));
  return make("div", {}, make("div.drawn", {}, names, canvas), key(top));
}
