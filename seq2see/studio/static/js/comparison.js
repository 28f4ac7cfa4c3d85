// Before and after: what the model said by itself, what it says now, and what differs.

import { bdi, make } from "./dom.js";
import { difference } from "./diff.js";
import { gluedTo, isEnd, logarithm, percent, visible } from "./symbols.js";
import { heaviest } from "./weights.js";

const symbolsOf = (prediction) => (prediction.tokens ?? []).map((token) => token.text);

export const changes = (before, after) => difference(symbolsOf(before), symbolsOf(after));

export function comparison({ before, after, edits, tokens, places }) {
  const { gone, come } = changes(before, after);
  const same = !gone.includes(true) && !come.includes(true);
  const side = (title, prediction, marks, name, tag) => make(`div.side.${name}`, {},
    make("h4", {}, title),
    running(prediction, marks, tokens, tag),
    make("p.quiet", {}, `log P ${logarithm(prediction.log_probability)}`));
  return make("section.comparison", { "aria-label": "before and after" },
    make("ul.edits", {}, edits.map((edit) => make("li", {}, ...told(edit, after, places)))),
    make("div.sides", {},
      side("Before: the model by itself", before, gone, "before", "del"),
      side("After: with your edits", after, come, "after", "ins")),
    same ? make("p.quiet", {}, sameWords(before, after)) : null);
}

function sameWords(before, after) {
  const [one, two] = [before, after].map((prediction) => Math.exp(prediction.log_probability));
  return `The output stays the same; its probability goes from ${percent(one)} to ${percent(two)}.`;
}

// The output as running text, with what differs marked.
function running(prediction, marks, kind, tag) {
  const symbols = symbolsOf(prediction);
  const glued = gluedTo(symbols, kind);
  const runs = [];
  symbols.forEach((symbol, at) => {
    if (isEnd(symbol)) return;
    const shown = (at && !glued[at] ? " " : "") + (kind === "character" ? symbol : visible(symbol));
    const last = runs[runs.length - 1];
    if (last && last.marked === marks[at]) last.text += shown;
    else runs.push({ marked: marks[at], text: shown });
  });
  return make("p.running", { dir: "auto" }, runs.flatMap(({ marked, text }) => {
    const words = text.trimStart();
    return [words.length < text.length ? " " : "", marked ? make(tag, {}, words) : words];
  }));
}

function told(edit, after, places) {
  if (edit.hypothesis !== undefined) return ["follow ", bdi(`“${edit.hypothesis}”`)];
  if (edit.says !== undefined) return [`step ${edit.step + 1}: say `, bdi(`“${visible(edit.says)}”`)];
  const [first] = heaviest(edit.weights, 1);
  const where = places(edit.looks)[first.place] ?? `place ${first.place + 1}`;
  return [`step ${edit.step + 1}: look at `, bdi(`“${visible(where)}”`), ` (${percent(first.weight)})`];
}
