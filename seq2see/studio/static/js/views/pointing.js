// Whether a click is meant in addition to those before.
export const addsTo = (event) => event.shiftKey || event.ctrlKey || event.metaKey;

// Pointing and clicking, for elements that carry data-place.
export function listen(element, on) {
  const placeOf = (event) => {
    const found = event.target.closest?.("[data-place]");
    return found && element.contains(found) ? Number(found.dataset.place) : null;
  };
  element.addEventListener("pointerover", (event) => on.point(placeOf(event)));
  element.addEventListener("pointerleave", () => on.point(null));
  element.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place !== null) on.choose(place, addsTo(event));
  });
}
