// A curve over the updates of a run, drawn by hand as SVG: labelled axes, a trivial model as a line, the frame shown.

import { make } from "../dom.js";
import { amount, whole } from "./words.js";

const HEIGHT = 260;
const EDGE = { top: 12, right: 16, bottom: 40, left: 60 };

// titled: what stands above it, an element or a text.
export function curve(titled) {
  const drawing = svg("svg", { role: "img", height: HEIGHT });
  const element = make("figure.curve", {}, make("figcaption", {}, titled), drawing);
  let last = null;
  const draw = () => last && paint(drawing, drawing.clientWidth || 480, last);
  new ResizeObserver(draw).observe(element);
  return {
    element,
    // {name, points: [{x, y, best}], baseline: {name, value} | null, now: the update that the film shows | null}
    show(given) {
      last = given;
      draw();
    },
  };
}

function paint(drawing, width, { name, points, baseline, now }) {
  const values = points.map((one) => one.y).concat(baseline ? [baseline.value] : []);
  const [low, high] = spread(values);
  const most = Math.max(1, now ?? 0, ...points.map((one) => one.x));
  const x = (update) => EDGE.left + ((width - EDGE.left - EDGE.right) * update) / most;
  const y = (value) => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * (value - low)) / (high - low);
  const made = [];
  for (const value of ticks(low, high, 5)) {
    made.push(svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }));
    made.push(text(amount(value), { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }));
  }
  for (const update of ticks(0, most, Math.max(2, Math.floor(width / 130)))) {
    made.push(text(whole(update), { x: x(update), y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }));
  }
  made.push(text("updates", { x: width - EDGE.right, y: HEIGHT - 4, "text-anchor": "end" }));
  made.push(text(name, { x: 14, y: (HEIGHT - EDGE.bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(HEIGHT - EDGE.bottom) / 2})` }));
  if (now !== null) made.push(svg("line", { class: "now", x1: x(now), x2: x(now), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }));
  if (baseline) {
    const at = y(baseline.value);
    made.push(svg("line", { class: "baseline", x1: EDGE.left, x2: width - EDGE.right, y1: at, y2: at }));
    made.push(text(baseline.name, { class: "baseline-name", x: width - EDGE.right, y: at - 6 < EDGE.top + 8 ? at + 15 : at - 6, "text-anchor": "end" }));
  }
  if (points.length > 1) made.push(svg("polyline", { class: "line", points: points.map((one) => `${x(one.x)},${y(one.y)}`).join(" ") }));
  if (points.length <= 60) {
    made.push(...points.map((one) => svg("circle", { class: one.best ? "best" : "dot", cx: x(one.x), cy: y(one.y), r: one.best ? 4 : 2.5 })));
  }
  drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  drawing.setAttribute("aria-label", said(name, points, baseline));
  drawing.replaceChildren(...made);
}

const said = (name, points, baseline) => {
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

// Round numbers between two, about so many.
export function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

function svg(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function text(content, attributes) {
  const made = svg("text", attributes);
  made.textContent = content;
  return made;
}
