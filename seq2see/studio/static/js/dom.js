// Elements without markup: whatever comes from a model or a person becomes a text node, never HTML.

// make("button.token", { type: "button", onclick: f, "aria-label": "…" }, "text", otherElement)
// Keys that begin with "on" are listeners, `data` is a set of data-*, `style` custom properties; null leaves a key out.
export function make(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) set(element, key, value);
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

function set(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
  else if (key === "data") Object.assign(element.dataset, value);
  else if (key === "style") for (const [name, setting] of Object.entries(value)) element.style.setProperty(name, setting);
  else element.setAttribute(key, value === true ? "" : value);
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

// Text that keeps its own direction among other text.
export const bdi = (text) => make("bdi", {}, text);

// A message in which names stand in quotes: each keeps its own direction.
export const quoting = (text) => text.split(/('[^']*')/).map((part) => (part.startsWith("'") ? bdi(part) : part));

// A part that can be opened; `built` is called the first time it is opened. opened: the names of the parts that
// are open, so that they stay open when the page is drawn again.
export function folded(title, built, { name, opened = new Set() }) {
  const body = make("div.folded");
  const part = make("details", { data: { part: name } }, make("summary", {}, title), body);
  let done = false;
  const show = () => {
    opened[part.open ? "add" : "delete"](name);
    if (done || !part.open) return;
    done = true;
    fill(body, built());
  };
  part.addEventListener("toggle", show);
  if (opened.has(name)) {
    part.open = true;
    show();
  }
  return part;
}

// ------------------------------------------------------------ focus while a part is drawn again

const FOCUSABLE = [".bar[data-place]", ".token[data-step]", ".node[data-path]", "summary"];

// The selector that finds the same thing again: the bar of that place, the symbol of that step, a node of the tree.
function selectorOf(element) {
  const kind = FOCUSABLE.find((candidate) => element.matches(candidate));
  if (!kind) return element.closest(".beam") ? NODE : ".token[aria-current]";
  const { place, step, path } = element.dataset;
  if (path !== undefined) return `.node[data-path="${CSS.escape(path)}"]`;
  if (place !== undefined) return `.bar[data-place="${place}"]`;
  if (step !== undefined) return `.token[data-step="${step}"]`;
  return `details[data-part="${element.parentElement.dataset.part}"] > summary`;
}

const NODE = '.node[tabindex="0"]';

export function keepFocus(container, change) {
  const held = document.activeElement;
  const selector = container.contains(held) ? selectorOf(held) : null;
  const top = selector && held.closest(".beam")?.getBoundingClientRect().top;
  change();
  const others = [selector?.startsWith(".node") ? NODE : null, ".token[aria-current]"];
  const target = selector && [selector, ...others].reduce((found, each) => found ?? (each && container.querySelector(each)), null);
  target?.focus({ preventScroll: true });
  // What comes above the tree may be new: the tree stays where it was in the window.
  const beam = Number.isFinite(top) && container.querySelector(".beam");
  if (beam) window.scrollBy(0, beam.getBoundingClientRect().top - top);
}
