// Who has the keyboard keeps it while a part of the page is made anew.

const NAMES = [".bar[data-place]", ".token[data-step]", "summary"];

// The selector that finds the same thing again: the bar of that place, the symbol of that step.
function nameOf(element) {
  const kind = NAMES.find((selector) => element.matches(selector));
  if (!kind) return ".token[aria-current]";
  const { place, step } = element.dataset;
  if (place !== undefined) return `.bar[data-place="${place}"]`;
  if (step !== undefined) return `.token[data-step="${step}"]`;
  return `details[data-part="${element.parentElement.dataset.part}"] > summary`;
}

export function keepingFocus(container, change) {
  const held = document.activeElement;
  const name = container.contains(held) ? nameOf(held) : null;
  change();
  const found = name && (container.querySelector(name) ?? container.querySelector(".token[aria-current]"));
  found?.focus({ preventScroll: true });
}
