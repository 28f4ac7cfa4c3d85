// The output, symbol by symbol, each with its probability; pointing at one or tabbing to it shows where it looked.

import { make } from "./dom.js";
import { directionOf, isSpecial, percent, rightward, visible } from "./symbols.js";

// on: {point(step | null), choose(step)}; marked: which symbols are not in the output that this is compared with.
export function tokenRow(tokens, { marked = [], selected = 0, describe, on }) {
  const buttons = tokens.map((token, step) => make(
    "button.token",
    {
      type: "button",
      data: { step },
      "aria-current": step === selected ? "step" : null,
      "aria-label": `${visible(token.text)}, ${percent(token.probability)}. ${describe(step)}`,
      onpointerenter: () => on.point(step),
      onfocus: () => on.choose(step),
      onclick: () => on.choose(step),
      style: { "--p": token.probability.toFixed(4) },
      title: rightward(`probability of this symbol: ${percent(token.probability)}`),
    },
    make(isSpecial(token.text) ? "bdi.symbol.special" : "bdi.symbol", {}, visible(token.text)),
    make("i.meter", { "aria-hidden": "true" }),
    make("span.probability", { dir: "ltr", "aria-hidden": "true" }, percent(token.probability)),
  ));
  buttons.forEach((button, step) => button.classList.toggle("changed", Boolean(marked[step])));
  const dir = directionOf(tokens.map((token) => token.text));
  const row = make("div.tokens", { dir, role: "group", "aria-label": "output, symbol by symbol" }, buttons);
  row.addEventListener("pointerleave", () => on.point(null));
  row.addEventListener("keydown", (event) => walk(event, buttons));
  return {
    element: row,
    select(step) {
      buttons.forEach((button) => button.removeAttribute("aria-current"));
      buttons[step]?.setAttribute("aria-current", "step");
    },
    buttons,
  };
}

// Arrow keys go along the row as it is seen, so to the left is forwards where the script runs that way.
export function walk(event, items) {
  const at = items.indexOf(document.activeElement);
  if (at < 0) return;
  const leftward = getComputedStyle(items[at].parentElement).direction === "rtl";
  const steps = { ArrowRight: leftward ? -1 : 1, ArrowLeft: leftward ? 1 : -1 };
  const to = event.key === "Home" ? 0 : event.key === "End" ? items.length - 1 : at + (steps[event.key] ?? 0);
  if (to === at || !items[to]) return;
  event.preventDefault();
  items[to].focus();
}
