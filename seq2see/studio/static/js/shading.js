// Weights as colours: of elements (the ramp of seeing), and over pictures, which keep their colours where the model
// looked and are pale elsewhere (as the overlays of seeing).

import { colour } from "./theme.js";

const PALE = 0.3;
const GLOW = 0.3;
const GAMMA = 0.55; // brightness is the weight to this power: broad looks are visible beside narrow ones

// shares: rows x columns in one list, 0 to 1; without them the picture as it is.
export function overlay(canvas, image, shares, rows, columns) {
  const { width, height } = canvas;
  const pen = canvas.getContext("2d");
  pen.globalAlpha = 1;
  pen.filter = "none";
  if (!shares) {
    pen.drawImage(image, 0, 0, width, height);
    return;
  }
  pen.fillStyle = colour("--paper");
  pen.fillRect(0, 0, width, height);
  pen.globalAlpha = PALE;
  pen.filter = "grayscale(1)";
  pen.drawImage(image, 0, 0, width, height);
  pen.globalAlpha = 1;
  pen.filter = "none";
  pen.drawImage(bright(image, mask(shares, rows, columns), width, height), 0, 0);
}

function mask(shares, rows, columns) {
  const layer = document.createElement("canvas");
  layer.width = columns;
  layer.height = rows;
  const pen = layer.getContext("2d");
  const pixels = pen.createImageData(columns, rows);
  shares.forEach((share, at) => {
    pixels.data[at * 4 + 3] = 255 * Math.min(1, Math.max(0, share)) ** GAMMA;
  });
  pen.putImageData(pixels, 0, 0);
  return layer;
}

function bright(image, shape, width, height) {
  const layer = document.createElement("canvas");
  layer.width = width;
  layer.height = height;
  const pen = layer.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(shape, 0, 0, width, height);
  pen.globalCompositeOperation = "source-in";
  pen.drawImage(image, 0, 0, width, height);
  pen.globalCompositeOperation = "source-atop";
  pen.globalAlpha = GLOW;
  pen.fillStyle = colour("--glow");
  pen.fillRect(0, 0, width, height);
  return layer;
}

// The cells of a map as a grid, whichever way it is read: {rows, columns, turned}.
export function gridOf(layout) {
  const shape = layout.shape;
  const columns = shape[shape.length - 1];
  const rows = layout.kind === "grid" ? shape[0] : 1;
  return { rows, columns, turned: layout.direction === "right-to-left" };
}

// The cell at this share of the length.
export const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));

// Weights in the order of cells on the page, from the left.
export function inReadingOrder(weights, grid) {
  if (!grid.turned) return weights;
  return weights.map((_, at) => {
    const row = Math.floor(at / grid.columns);
    return weights[row * grid.columns + (grid.columns - 1 - (at % grid.columns))];
  });
}

// Colour an element by its share of the scale; strong colours turn the text.
export function shade(element, share) {
  const bounded = Math.min(1, Math.max(0, share));
  element.classList.add("shade");
  element.classList.toggle("s1", bounded > 0.42);
  element.classList.toggle("s2", bounded > 0.57);
  element.style.setProperty("--w", bounded.toFixed(4));
}

export function plain(element) {
  element.classList.remove("shade", "s1", "s2");
}
