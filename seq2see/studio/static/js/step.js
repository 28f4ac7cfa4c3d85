// The chosen step: other symbols it could have written, its attention weights, and the numbers behind it.

import { bdi, fill, folded, make } from "./dom.js";
import { explanation } from "./explanation.js";
import { isEnd, isSpecial, percent, visible } from "./symbols.js";
import { attentionBars } from "./attention_bars.js";

const HINT = "The weights of this step, which sum to 1; a bar is as high as the square root of its weight. Drag a bar, or click a place in the input, and the model continues from there. "
  + "Shift-click adds a place; arrow keys work too.";
const PAINT = " Or paint: press and drag over what it should look at; with Shift, over more of it.";

// map: whose weights can be edited, if any; text: whether the output is written symbol by symbol.
// on: {choose(symbol), change(weights), done(weights), explain() -> promise}; opened: names of the parts that are open.
export function stepDetail({ token, step, text, map, explained, opened, on }) {
  return [
    make("h3", {}, text ? `Step ${step + 1} · ` : "", bdi(visible(token.text))),
    runnersUp(token, { canChoose: text, choose: on.choose }),
    map ? bars(map, step, on) : null,
    explained ? numbers(on.explain, opened) : null,
  ];
}

function bars(map, step, on) {
  const editor = attentionBars({ names: map.inputs, weights: map.weights[step], label: `weights of step ${step + 1}`, on });
  return [make("h4", {}, "Edit attention"), editor.element, make("p.quiet.hint", {}, map.layout.kind === "grid" ? HINT + PAINT : HINT)];
}

function numbers(explain, opened) {
  const place = make("div", { role: "status" }, make("p.quiet", {}, "Working it out …"));
  const build = () => {
    explain().then(
      (record) => fill(place, explanation(record.explanation)),
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
    const label = `say ${visible(runner.text)} instead, ${percent(runner.probability)}`;
    const attributes = { type: "button", style, "aria-label": label, data: { symbol: runner.text } };
    return make("li", {}, make("button.runner", { ...attributes, onclick: () => choose(runner.text) }, parts));
  });
  return make("ol.runners", {}, items);
}
