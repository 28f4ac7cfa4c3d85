// The attention weights of one step as bars to drag; the other bars shrink or grow, so that weights sum to one.
// Keys: up and down (page up and down, home, end) change a bar, left and right go to the next, Enter looks there alone.

import { bdi, make } from "./dom.js";
import { directionOf, percent, short, visible } from "./symbols.js";
import { walk } from "./tokens.js";
import { moved, onto } from "./weights.js";

const KEYS = { ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.25, PageDown: -0.25 };
const KEY_PAUSE = 350; // ms without a further key before the request is sent

// Small weights are seen beside large ones: a bar is as high as the root of its weight.
const height = (weight) => Math.sqrt(weight);

// on: {change(weights) while it is being changed, done(weights)}.
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
    "aria-valuemax": "100",
  },
  make("span.figure", { dir: "ltr", "aria-hidden": "true" }),
  make("span.track", {}, make("i")),
  make("span.label", { "aria-hidden": "true" }, bdi(cut(name)))));
  const element = make("div.bars", { role: "group", "aria-label": label, dir: directionOf(names) }, bars);
  element.classList.toggle("many", names.length > 24);
  element.classList.toggle("letters", names.every((name) => visible(name).length <= 2));

  function show() {
    bars.forEach((bar, place) => {
      bar.style.setProperty("--h", height(now[place]).toFixed(4));
      bar.setAttribute("aria-valuenow", (now[place] * 100).toFixed(1));
      bar.setAttribute("aria-valuetext", percent(now[place]));
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
  dragged(element, (place, share) => change(moved(now, place, share ** 2)), () => on.done(now));
  show();
  return { element };
}

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

const cut = (name) => {
  const text = visible(name);
  return text.length > 14 ? `${text.slice(0, 13)}…` : text;
};
