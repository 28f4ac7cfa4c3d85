// The beam search as a tree: a column for each step, the best output along the top; choosing a node continues from there.

import { bdi, fill, make } from "./dom.js";
import { counted, directionOf, isSpecial, logarithm, percent, rightward, running, shortened, visible } from "./symbols.js";

const HINT = "A column is a step of the search, a line is as thick as the probability of its symbol. Choose a node, and the search "
  + "continues from there. × (or Delete) prunes it: the search avoids it. Arrow keys go from node to node; Undo takes back.";
const STATES = {
  kept: "kept: continued",
  pruned: "pruned: not among the best",
  finished: "finished: an output, with its rank",
  stopped: "stopped: the search ended first",
  forced: "forced: where you continued from",
};
const LONGEST = 14; // letters of a symbol that are shown
const [HEIGHT, ROW, GAP, START] = [2.5, 3, 1.9, 1.1]; // rem: of a node, of a row, between columns, before the first

// tree: as the server sends it; kind: tokens of the output; shown: the symbols of the output on the page; forced: how many
// were forced; avoided: paths; view: {left, hidden: whether pruned nodes are}, kept while the page is drawn again.
// on: {force(path), avoid(path), allow(path)}, each with the symbols from the first step on.
export function beamTree({ tree, kind, shown, forced, avoided, view, on }) {
  const nodes = measured(tree.nodes, { shown, forced });
  const direction = directionOf(nodes.map((node) => node.text));
  const place = make("div.tree", { dir: direction, role: "group", "aria-label": "beam tree" });
  const scroll = make("div.scroll", { dir: direction }, place);
  const draw = () => {
    const drawn = nodes.filter((node) => !view.hidden || node.state !== "pruned");
    fill(place, ...drawing(drawn, place, { kind, on }));
  };
  const pruned = nodes.filter((node) => node.state === "pruned").length;
  const toggle = make("input", { type: "checkbox", checked: !view.hidden });
  toggle.addEventListener("change", () => { view.hidden = !toggle.checked; draw(); });
  scroll.addEventListener("scroll", () => { view.left = scroll.scrollLeft; });
  draw();
  requestAnimationFrame(() => { scroll.scrollLeft = view.left; });
  return [
    make("p.quiet.hint", {}, HINT),
    avoided.length ? make("ul.avoided", { "aria-label": "avoided" }, avoided.map((path) => avoidedItem(path, kind, on))) : null,
    scroll,
    make("div.legend.quiet", {},
      Object.entries(STATES).filter(([state]) => nodes.some((node) => node.state === state || (state === "forced" && node.forced)))
        .map(([state, text]) => make("span", {}, make("i.knot", { data: { state }, "aria-hidden": "true" }), text)),
      pruned ? make("label.check", {}, toggle, make("span", {}, `show ${counted(pruned, "pruned node")}`)) : null,
      tree.left_out ? make("span", {}, `${counted(tree.left_out, "node")} of later steps left out`) : null),
  ];
}

function avoidedItem(path, kind, on) {
  const text = running(path, kind);
  const label = `allow ${text} again`;
  return make("li", {}, "avoids ", bdi(`“${text}”`),
    make("button", { type: "button", "aria-label": label, title: label, onclick: () => on.allow(path) }, "×"));
}

// The nodes with their paths, depths and children, ordered so that lines do not cross and the best output is on top.
function measured(nodes, { shown, forced }) {
  const known = nodes.map((node) => ({ ...node, children: [], best: node.output ?? Infinity }));
  for (const node of known) {
    const parent = known[node.parent];
    node.path = [...(parent?.path ?? []), node.text];
    node.depth = node.path.length - 1;
    node.forced = node.depth < forced;
    node.current = node.path.every((symbol, at) => symbol === shown[at]);
    node.above = parent ?? null;
    parent?.children.push(node);
  }
  for (const node of [...known].reverse()) if (node.above) node.above.best = Math.min(node.above.best, node.best);
  const better = (one, other) => (one.best === other.best ? other.log_probability - one.log_probability : one.best - other.best);
  const ordered = [];
  let column = known.filter((node) => !node.above).sort(better);
  while (column.length) {
    ordered.push(...column);
    column = column.flatMap((node) => node.children.sort(better));
  }
  return ordered;
}

function drawing(nodes, place, { kind, on }) {
  const rows = [];
  for (const node of nodes) {
    node.row = rows[node.depth] ?? 0;
    rows[node.depth] = node.row + 1;
  }
  const letters = Math.min(LONGEST, Math.max(...nodes.map((node) => [...visible(node.text)].length)));
  const width = Math.max(3.6, 1.4 + 0.58 * letters);
  const size = [START + rows.length * (width + GAP), Math.max(...rows) * ROW];
  place.style.setProperty("--width", `${size[0]}rem`);
  place.style.setProperty("--height", `${size[1]}rem`);
  const left = (node) => START + GAP / 2 + node.depth * (width + GAP);
  const lines = new Map(nodes.map((node) => {
    const from = node.above ? [left(node.above) + width, (node.above.row + 0.5) * ROW] : [START / 2, 0.5 * ROW];
    return [node, line(from, [left(node), (node.row + 0.5) * ROW], node)];
  }));
  const alongs = (node, mark) => {
    for (let each = node; each; each = each.above) {
      lines.get(each).classList.toggle("along", mark);
      buttons.get(each).classList.toggle("along", mark);
    }
  };
  const buttons = new Map(nodes.map((node) => [node, button(node, { kind, on, alongs })]));
  const current = nodes.findLast((node) => node.current) ?? nodes[0];
  buttons.get(current).tabIndex = 0;
  place.onkeydown = (event) => walk(event, nodes, buttons, on);
  const style = (node) => ({ "--x": `${left(node)}rem`, "--y": `${node.row * ROW + (ROW - HEIGHT) / 2}rem`, "--w": `${width}rem` });
  return [
    drawn("svg", { viewBox: `0 0 ${size.join(" ")}`, "aria-hidden": "true" },
      drawn("circle", { cx: START / 2, cy: 0.5 * ROW, r: 0.22 }), ...lines.values()),
    ...nodes.map((node) => make("div.branch", { style: style(node) }, buttons.get(node), pruning(node, { kind, on }))),
  ];
}

function button(node, { kind, on, alongs }) {
  const { text, probability, state, output } = node;
  const rank = output === undefined ? "" : `, output ${output + 1}`;
  const label = `${running(node.path, kind)}: ${visible(text)}, ${percent(probability)}, ${node.forced ? "forced, " : ""}${state}${rank}`;
  return make("button.node.knot", {
    type: "button",
    tabindex: -1,
    "aria-label": label,
    "aria-current": node.current ? "true" : null,
    title: rightward(`${percent(probability)}, ${state}${rank}; log P ${logarithm(node.log_probability)} so far`),
    data: { state: node.forced ? "forced" : state, path: JSON.stringify(node.path) },
    onclick: () => on.force(node.path),
    onpointerenter: () => alongs(node, true),
    onpointerleave: () => alongs(node, false),
    onfocus: () => alongs(node, true),
    onblur: () => alongs(node, false),
  },
  make(isSpecial(text) ? "bdi.symbol.special" : "bdi.symbol", {}, shortened(text, LONGEST)),
  make("span.probability", { dir: "ltr" }, percent(probability)),
  output === undefined ? null : make("b.rank", {}, String(output + 1)));
}

const canPrune = (node) => node.state !== "pruned";

function pruning(node, { kind, on }) {
  if (!canPrune(node)) return null;
  const label = `prune ${running(node.path, kind)}`;
  return make("button.prune", { type: "button", tabindex: -1, "aria-label": label, title: label, onclick: () => on.avoid(node.path) }, "×");
}

// Arrow keys: to the parent or the best child along the text, up and down within a step.
function walk(event, nodes, buttons, on) {
  const node = nodes.find((each) => buttons.get(each) === event.target);
  if (!node) return;
  if (event.key === "Delete" || event.key === "Backspace") {
    event.preventDefault();
    if (canPrune(node)) on.avoid(node.path);
    return;
  }
  const leftward = getComputedStyle(event.currentTarget).direction === "rtl";
  const [back, forth] = leftward ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  const beside = (by) => nodes.find((each) => each.depth === node.depth && each.row === node.row + by);
  const to = {
    [back]: () => node.above,
    [forth]: () => node.children.find((each) => buttons.has(each)),
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
    Home: () => nodes[0],
  }[event.key]?.();
  if (to === undefined) return;
  event.preventDefault();
  if (!to) return;
  event.target.tabIndex = -1;
  buttons.get(to).tabIndex = 0;
  buttons.get(to).focus();
}

// ------------------------------------------------------------ lines

function drawn(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function line([x, y], [toX, toY], node) {
  const middle = (x + toX) / 2;
  const path = drawn("path", { d: `M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`, "stroke-width": 0.06 + 0.34 * node.probability });
  path.classList.add("link", node.state);
  path.classList.toggle("current", node.current);
  return path;
}
