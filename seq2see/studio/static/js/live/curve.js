// A curve over the updates of a run, as SVG: labelled axes, the trivial model as a line, the update of the film.

import { make } from "../dom.js";
import { amount, whole } from "./format.js";

const HEIGHT = 260;
const EDGE = { top: 12, right: 16, bottom: 40, left: 60 };

// title: an element or a text.
export function curve(title) {
  const drawing = svg("svg", { role: "img", height: HEIGHT });
  const element = make("figure.curve", {}, make("figcaption", {}, title), drawing);
  let last = null;
  const draw = () => last && paint(drawing, drawing.clientWidth || 480, last);
  new ResizeObserver(draw).observe(element);
  return {
    element,
    // {name, points: [{x, y, best}], baseline: {name, value} | null, now: the update that the film shows | null}
    show(data) {
      last = data;
      draw();
    },
  };
}

function paint(drawing, width, { name, points, baseline, now }) {
  const values = points.map((point) => point.y).concat(baseline ? [baseline.value] : []);
  const [low, high] = spread(values);
  const most = Math.max(1, now ?? 0, ...points.map((point) => point.x));
  const x = (update) => EDGE.left + ((width - EDGE.left - EDGE.right) * update) / most;
  const y = (value) => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * (value - low)) / (high - low);
  const parts = [];
  for (const value of ticks(low, high, 5)) {
    parts.push(svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    parts.push(text(amount(value), { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }));
  }
  for (const update of ticks(0, most, Math.max(2, Math.floor(width / 130)))) {
    parts.push(text(whole(update), { x: x(update), y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }));
  }
  parts.push(text("updates", { x: width - EDGE.right, y: HEIGHT - 4, "text-anchor": "end" }));
  parts.push(text(name, { x: 14, y: (HEIGHT - EDGE.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(HEIGHT - EDGE.bottom) / 2})` }));
  if (now !== null) parts.push(svg("line", { class: "now", x1: x(now), x2: x(now), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }));
  if (baseline) {
    const at = y(baseline.value);
    parts.push(svg("line", { class: "baseline", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }));
    parts.push(text(baseline.name, { class: "baseline-name", x: width - EDGE.right, y: at - 6 < EDGE.top + 8 ? at + 15 : at - 6, "text-anchor": "end" }));
  }
  if (points.length > 1) parts.push(svg("polyline", { class: "line", points: points.map((point) => `${x(point.x)},${y(point.y)}`).join(" ") }));
  if (points.length <= 60) {
    parts.push(...points.map((point) => svg("circle", { class: point.best ? "best" : "dot", cx: x(point.x), cy: y(point.y), r: point.best ? 4 : 2.5 })));
  }
  drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  drawing.setAttribute("aria-label", describe(name, points, baseline));
  drawing.replaceChildren(...parts);
}

const describe = (name, points, baseline) => {
  if (!points.length) return `${name}: no report yet`;
  const [first, last] = [points[0], points[points.length - 1]];
  const beside = baseline ? `; ${baseline.name}: ${amount(baseline.value)}` : "";
  return `${name}: ${amount(first.y)} at update ${whole(first.x)}, ${amount(last.y)} at update ${whole(last.x)}${beside}`;
};

function spread(values) {
  if (!values.length) return [0, 1];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low >= 0 && low - room < 0 ? 0 : low - room, high + room];
}

// About `wanted` round numbers between two.
export function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999);
  const marks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) marks.push(at * step + 0); // -0 is 0
  return marks;
}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function text(content, attributes) {
  const element = svg("text", attributes);
  element.textContent = content;
  return element;
}
