// The chosen step: other symbols it could have written, its attention weights, and the numbers behind it.

import { bdi, fill, folded, make } from "./dom.js";
import { explanation } from "./explanation.js";
import { runnersUp } from "./runners.js";
import { visible } from "./symbols.js";
import { attentionBars } from "./attention_bars.js";

const HINT = "The weights of this step, which sum to 1; a bar is as high as the square root of its weight. Drag a bar, or click a place in the input, and it goes on from there. "
  + "Shift-click adds a place; arrow keys work too.";
const PAINT = " Or paint: press and drag over what it should look at; with Shift, over more of it.";

// map: the one whose weights can be handed in, if any; text: whether the output is written symbol by symbol.
// on: {choose(symbol), change(weights), done(weights), explain() -> promise}; opened: parts that are open.
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
      (told) => fill(place, explanation(told.explanation)),
      (error) => fill(place, make("p.complaint", {}, error.message)),
    );
    return place;
  };
  return folded("The numbers behind it", build, { name: "numbers", opened });
}
