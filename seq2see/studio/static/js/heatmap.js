// A heatmap of outputs by inputs: a table that screen readers read; a canvas where the table would be huge.

import { areFlat } from "./attention_bars.js";
import { bdi, make } from "./dom.js";
import { shade } from "./shading.js";
import { counted, directionOf, fraction, isUpright, rightward, short, shortened } from "./symbols.js";
import { painted } from "./theme.js";
import { top as topOf } from "./weights.js";

const MOST = 8000; // cells of a table; a browser takes seconds over more

const LONGEST = 24; // letters of a label

// The heads of a table's columns, which is given the shape that they need; dense: columns beyond which cells are small.
export function columnHeads(table, symbols, dense) {
  table.classList.toggle("long", !symbols.every(isUpright));
  table.classList.toggle("flat", areFlat(symbols));
  table.classList.toggle("dense", symbols.length > dense);
  table.dir = directionOf(symbols);
  return symbols.map((symbol) =>
    make("th", { scope: "col" }, make(isUpright(symbol) ? "bdi.upright" : "bdi", {}, shortened(symbol, LONGEST))));
}

// rows: names of the rows; on: {point(step | null), choose(step)}. A heatmap is {element, mark(step), markPlace(place)}.
export function heatmap({ map, weights, rows, on }) {
  const top = topOf(weights);
  if (weights.length * map.inputs.length > MOST) return { element: drawn(map, weights, rows, top), mark() {}, markPlace() {} };
  const table = make("table.heat");
  const heads = columnHeads(table, map.inputs, 30);
  const lines = weights.map((line, step) => make("tr", { data: { step } },
    make("th", { scope: "row" }, bdi(shortened(rows[step] ?? "", LONGEST))),
    line.map((weight, place) => {
      const cell = make("td", { title: rightward(`weight ${fraction(weight)}`) }, short(weight));
      if (map.chosen?.[step] === place) cell.classList.add("chosen");
      shade(cell, weight / top);
      return cell;
    })));
  const caption = make("caption.unseen", {}, `${map.name}: weights, outputs in rows, inputs in columns`);
  const head = make("thead", {}, make("tr", {}, make("td"), heads));
  table.append(caption, head, make("tbody", {}, lines));
  table.addEventListener("pointerover", (event) => {
    const line = event.target.closest("tbody tr");
    on.point(line ? Number(line.dataset.step) : null);
  });
  table.addEventListener("pointerleave", () => on.point(null));
  table.addEventListener("click", (event) => {
    const line = event.target.closest("tbody tr");
    if (line) on.choose(Number(line.dataset.step));
  });
  const scroll = make("div.scroll", { tabindex: "0", role: "region", "aria-label": `heatmap of ${map.name}`, dir: table.dir }, table);
  return {
    element: make("div", {}, scroll, key(top)),
    mark: (step) => lines.forEach((line, at) => line.classList.toggle("active", at === step)),
    markPlace: (place) => heads.forEach((head, at) => head.classList.toggle("pointed", at === place)),
  };
}

// Which colour stands for which weight.
const key = (top) => make("p.key.quiet", { dir: "ltr", "aria-hidden": "true" },
  make("span", {}, "0"), make("i"), make("span", {}, top.toFixed(2)), make("span", {}, "attention weight"));

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
  const names = make("ol.names", {}, rows.map((row) => make("li", {}, bdi(shortened(row, LONGEST)))));
  return make("div", {}, make("div.drawn", {}, names, canvas), key(top));
}
