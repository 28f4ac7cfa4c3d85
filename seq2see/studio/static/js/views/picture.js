// A picture under a grid of places; a line of writing is one whose grid has one row. With an axis it is a wide strip
// whose columns are places in time: a spectrogram, the plot of a series.

import { make } from "../dom.js";
import { gridOf, overlay, inReadingOrder, within } from "../shading.js";
import { counted } from "../symbols.js";
import { painted } from "../theme.js";
import { painting } from "./pointing.js";

const STRIP = { width: 720, height: 180 };

export function pictureView({ shown, map, on }) {
  const { width, height } = shown.axis ? STRIP : shown;
  const canvas = make("canvas", { width, height, role: "img", "aria-label": shown.alt ?? describe(shown) });
  const marker = make("i.cell", { hidden: true });
  const stage = make("div.stage", { style: { "--ratio": `${width} / ${height}` } }, canvas, marker);
  const element = make(shown.axis ? "figure.picture.strip" : "figure.picture", {}, stage);
  if (shown.axis) element.append(make("figcaption.axis", {}, shown.axis.map((label) => make("span", {}, label))));
  const image = new Image();
  const grid = map ? gridOf(map.layout) : null;
  let last = null;

  const draw = () => {
    if (!image.complete || !image.naturalWidth) return;
    const shares = last && inReadingOrder(last.weights, grid).map((weight) => weight / last.top);
    overlay(canvas, image, shares, grid?.rows, grid?.columns);
  };
  image.addEventListener("load", draw);
  image.src = shown.picture;
  painted(element, draw);
  if (grid) listen(stage, marker, grid, on);
  return {
    element,
    light(weights, top) {
      last = { weights, top };
      draw();
    },
    clear() {
      last = null;
      draw();
    },
  };
}

const describe = (shown) => `picture, ${counted(shown.width, "pixel")} by ${shown.height}`;

// Which cell is pointed at, marked by a frame, and which are painted.
function listen(stage, marker, grid, on) {
  const cellOf = (event) => {
    const box = stage.getBoundingClientRect();
    const column = within((event.clientX - box.left) / box.width, grid.columns);
    const row = within((event.clientY - box.top) / box.height, grid.rows);
    marker.hidden = false;
    marker.style.setProperty("--x", column / grid.columns);
    marker.style.setProperty("--y", row / grid.rows);
    marker.style.setProperty("--dx", 1 / grid.columns);
    marker.style.setProperty("--dy", 1 / grid.rows);
    return { row, column };
  };
  const placeOf = ({ row, column }) => row * grid.columns + (grid.turned ? grid.columns - 1 - column : column);
  stage.addEventListener("pointermove", (event) => on.point(placeOf(cellOf(event))));
  stage.addEventListener("pointerleave", () => {
    marker.hidden = true;
    on.point(null);
  });
  painting(stage, cellOf, {
    stroke: (cells, more) => on.stroke(cells && cells.map(placeOf), more),
    painted: (cells, more) => (cells.length > 1 ? on.paint(cells.map(placeOf), more) : on.choose(placeOf(cells[0]), more)),
  });
}
