// Pointing at places, choosing them, and painting over the cells of a grid.

// Whether a click adds to those before.
export const addsTo = (event) => event.shiftKey || event.ctrlKey || event.metaKey;

// Pointing and clicking, for elements with data-place.
export function listen(element, on) {
  const placeOf = (event) => {
    const target = event.target.closest?.("[data-place]");
    return target && element.contains(target) ? Number(target.dataset.place) : null;
  };
  element.addEventListener("pointerover", (event) => on.point(placeOf(event)));
  element.addEventListener("pointerleave", () => on.point(null));
  element.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place !== null) on.choose(place, addsTo(event));
  });
}

// Painting: press and drag, and the model looks at the cells that the stroke passes. A stroke of one cell is a click.
// cellOf(event) -> {row, column}; on: {stroke(cells, more) while it is drawn, stroke(null) where it is cancelled,
// painted(cells, more)}; a cell that is passed twice is there twice; more: it adds to the strokes before.
export function painting(stage, cellOf, on) {
  let cells = null;
  let more = false;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    stage.setPointerCapture(event.pointerId);
    cells = [cellOf(event)];
    more = addsTo(event);
  });
  stage.addEventListener("pointermove", (event) => {
    if (!cells) return;
    const passed = between(cells.at(-1), cellOf(event));
    cells.push(...passed);
    if (passed.length) on.stroke(cells, more);
  });
  stage.addEventListener("pointerup", () => {
    if (cells) on.painted(cells, more);
    cells = null;
  });
  stage.addEventListener("pointercancel", () => {
    if (cells) on.stroke(null);
    cells = null;
  });
}

// The cells on the way, without the first: a quick hand skips some between two events.
function between(from, to) {
  const steps = Math.max(Math.abs(to.row - from.row), Math.abs(to.column - from.column));
  const along = (start, end, at) => Math.round(start + ((end - start) * at) / steps);
  return Array.from({ length: steps }, (_, at) => ({
    row: along(from.row, to.row, at + 1),
    column: along(from.column, to.column, at + 1),
  }));
}
