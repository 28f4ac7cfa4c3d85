// The chosen step: other symbols it could have written, its attention weights, and the numbers behind it.

import { bdi, fill, folded, make } from "./dom.js";
import { explanation } from "./explanation.js";
import { isEnd, isSpecial, percent, visible } from "./symbols.js";
import { attentionBars } from "./attention_bars.js";

const HINT = "The attention weights of this step; they sum to 1. Drag a bar, or click a place in the input, and the model "
  + "continues from there. Shift-click adds a place; arrow keys work too.";
const PAINT = " Or paint: press and drag over what it should look at; hold Shift to add to it.";

// map: whose weights can be edited, if any; text: whether the output is written symbol by symbol.
// on: {choose(symbol), change(weights), done(weights), point(place | null), explain() -> promise, of null where it is
// no longer wanted}; opened: names of the parts that are open. Gives {elements, editor}: of the weights, if any.
export function stepDetail({ token, step, text, map, explained, opened, on }) {
  const editor = map ? attentionBars({ names: map.inputs, weights: map.weights[step], label: `weights of step ${step + 1}`, on }) : null;
  const elements = [
    make("h3", {}, text ? `Step ${step + 1} · ` : "", bdi(visible(token.text))),
    runnersUp(token, { canChoose: text, choose: on.choose }),
    editor ? [make("h4", {}, "Edit attention"), editor.element, make("p.quiet.hint", {}, map.layout.kind === "grid" ? HINT + PAINT : HINT)] : null,
    explained ? numbers(on.explain, opened) : null,
  ];
  return { elements, editor };
}

function numbers(explain, opened) {
  const place = make("div", { role: "status" }, make("p.quiet", {}, "Calculating …"));
  const build = () => {
    explain().then(
      (record) => record && fill(place, explanation(record.explanation)),
      (error) => fill(place, make("p.complaint", {}, error.message)),
    );
    return place;
  };
  return folded("The numbers behind it", build, { name: "numbers", opened });
}

// The likeliest symbols of the step; choosing one continues the output from there.
function runnersUp(token, { canChoose, choose }) {
  const items = (token.runners_up ?? []).map((runner) => {
    const written = runner.text === token.text;
    const parts = [
      make("span.name", {}, bdi(visible(runner.text))),
      make("i.meter", { "aria-hidden": "true" }),
      make("span.probability", { dir: "ltr" }, percent(runner.probability)),
    ];
    const style = { "--p": runner.probability.toFixed(4) };
    if (written || !canChoose || (isSpecial(runner.text) && !isEnd(runner.text))) {
      return make("li", {}, make("span.runner", { style, "aria-current": written ? "true" : null }, parts));
    }
    const label = `write ${visible(runner.text)} instead, ${percent(runner.probability)}`;
    const attributes = { type: "button", style, "aria-label": label, data: { symbol: runner.text } };
    return make("li", {}, make("button.runner", { ...attributes, onclick: () => choose(runner.text) }, parts));
  });
  return make("ol.runners", {}, items);
}
