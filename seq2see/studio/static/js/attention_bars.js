// The attention weights of one step as bars to drag; the other bars shrink or grow, so that weights sum to one.
// Keys: up and down (page up and down, home, end) change a bar, left and right go to the next, Enter looks there alone.

import { bdi, make } from "./dom.js";
import { directionOf, fraction, isUpright, short, shortened, visible } from "./symbols.js";
import { walk } from "./tokens.js";
import { moved, onto } from "./weights.js";

const KEYS = { ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.25, PageDown: -0.25 };
const KEY_PAUSE = 350; // ms without a further key before the request is sent
const LONGEST = 14; // letters of a label
const FLAT = { places: 8, letters: 9 }; // labels that fit side by side are not turned

// on: {change(weights) while it is being changed, done(weights), point(place | null)}.
export function attentionBars({ names, weights, label, on }) {
  let now = [...weights];
  let timer = null;
  const bars = names.map((name, place) => make("div.bar", {
    role: "slider",
    tabindex: place === 0 ? "0" : "-1",
    data: { place },
    "aria-label": `weight of ${visible(name)}`,
    "aria-orientation": "vertical",
    "aria-valuemin": "0",
    "aria-valuemax": "1",
  },
  make("span.figure", { dir: "ltr", "aria-hidden": "true" }),
  make("span.track", {}, make("i")),
  make(isUpright(name) ? "span.label.upright" : "span.label", { "aria-hidden": "true" }, bdi(shortened(name, LONGEST)))));
  const element = make("div.bars", { role: "group", "aria-label": label }, bars);
  element.classList.toggle("many", names.length > 24);
  element.classList.toggle("flat", areFlat(names));

  function show() {
    bars.forEach((bar, place) => {
      bar.style.setProperty("--h", now[place].toFixed(4));
      bar.setAttribute("aria-valuenow", now[place].toFixed(3));
      bar.setAttribute("aria-valuetext", fraction(now[place]));
      bar.firstChild.textContent = short(now[place]);
    });
  }
  function change(next) {
    now = next;
    show();
    on.change(now);
  }
  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => element.isConnected && on.done(now), KEY_PAUSE);
  }

  element.addEventListener("keydown", (event) => {
    const place = bars.indexOf(document.activeElement);
    if (place < 0) return;
    const to = { Home: 0, End: 1 }[event.key] ?? (event.key in KEYS ? now[place] + KEYS[event.key] : null);
    if (to !== null) change(moved(now, place, to));
    else if (event.key === "Enter" || event.key === " ") change(onto([place], now.length));
    else {
      walk(event, bars);
      return;
    }
    event.preventDefault();
    later();
  });
  element.addEventListener("focusin", (event) => {
    bars.forEach((bar) => bar.setAttribute("tabindex", bar === event.target ? "0" : "-1"));
  });
  element.addEventListener("pointerover", (event) => {
    const bar = event.target.closest(".bar");
    on.point(bar ? Number(bar.dataset.place) : null);
  });
  element.addEventListener("pointerleave", () => on.point(null));
  dragged(element, (place, share) => change(moved(now, place, share)), () => on.done(now));
  show();
  return {
    element: make("div.weights", { dir: directionOf(names) }, scale(), element),
    mark: (place) => bars.forEach((bar, at) => bar.classList.toggle("pointed", at === place)),
  };
}

// Whether labels fit side by side.
export const areFlat = (names) =>
  names.length <= FLAT.places && names.some((name) => !isUpright(name)) && names.every((name) => [...visible(name)].length <= FLAT.letters);

// The axis of the bars: their heights are proportional to the weights.
const scale = () => make("div.scale", { "aria-hidden": "true", dir: "ltr" }, ["1", ".5", "0"].map((at) => make("span", {}, at)));

function dragged(element, move, done) {
  let held = null;
  const shareOf = (event) => {
    const box = held.querySelector(".track").getBoundingClientRect();
    return Math.min(1, Math.max(0, (box.bottom - event.clientY) / box.height));
  };
  element.addEventListener("pointerdown", (event) => {
    held = event.button === 0 ? event.target.closest(".track")?.closest(".bar") : null;
    if (!held) return;
    event.preventDefault();
    held.focus();
    held.setPointerCapture(event.pointerId);
    move(Number(held.dataset.place), shareOf(event));
  });
  element.addEventListener("pointermove", (event) => held && move(Number(held.dataset.place), shareOf(event)));
  const end = () => {
    if (held) done();
    held = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
}
