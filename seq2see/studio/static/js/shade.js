// The ramp of seeing/style.py on an element: its share of the scale picks the colour, strong colours turn the text.

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
