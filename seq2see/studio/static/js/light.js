// A picture lit where it was looked at: in its colours there, elsewhere a ghost on paper (as seeing/scenes.py draws it).

import { colour } from "./theme.js";

const GHOST = 0.3;
const GLOW = 0.3;
const EYE = 0.55; // light by weight to this power: broad looks are seen beside narrow ones

// shares: rows x columns in one list, 0 to 1; without them the picture as it is.
export function lit(canvas, image, shares, rows, columns) {
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
  pen.globalAlpha = GHOST;
  pen.filter = "grayscale(1)";
  pen.drawImage(image, 0, 0, width, height);
  pen.globalAlpha = 1;
  pen.filter = "none";
  pen.drawImage(bright(image, mask(shares, rows, columns), width, height), 0, 0);
}

function mask(shares, rows, columns) {
  const made = document.createElement("canvas");
  made.width = columns;
  made.height = rows;
  const pen = made.getContext("2d");
  const pixels = pen.createImageData(columns, rows);
  shares.forEach((share, at) => {
    pixels.data[at * 4 + 3] = 255 * Math.min(1, Math.max(0, share)) ** EYE;
  });
  pen.putImageData(pixels, 0, 0);
  return made;
}

function bright(image, shape, width, height) {
  const made = document.createElement("canvas");
  made.width = width;
  made.height = height;
  const pen = made.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(shape, 0, 0, width, height);
  pen.globalCompositeOperation = "source-in";
  pen.drawImage(image, 0, 0, width, height);
  pen.globalCompositeOperation = "source-atop";
  pen.globalAlpha = GLOW;
  pen.fillStyle = colour("--glow");
  pen.fillRect(0, 0, width, height);
  return made;
}

// The cells of a map as a grid, whichever way it is read: {rows, columns, turned}.
export function gridOf(layout) {
  const shape = layout.shape;
  const columns = shape[shape.length - 1];
  const rows = layout.kind === "grid" ? shape[0] : 1;
  return { rows, columns, turned: layout.direction === "right-to-left" };
}

// The cell in which a point lies that is so far along.
export const within = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));

// Weights in the order in which cells are seen, from the left.
export function seen(weights, grid) {
  if (!grid.turned) return weights;
  return weights.map((_, at) => {
    const row = Math.floor(at / grid.columns);
    return weights[row * grid.columns + (grid.columns - 1 - (at % grid.columns))];
  });
}
