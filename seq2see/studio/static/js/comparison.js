// Before and after an edit, side by side, with the differences marked.

import { bdi, make } from "./dom.js";
import { measures } from "./nbest.js";
import { fraction, gluedTo, isEnd, percent, running, visible } from "./symbols.js";
import { heaviest } from "./weights.js";

const symbolsOf = (prediction) => (prediction.tokens ?? []).map((token) => token.text);

export const changes = (before, after) => difference(symbolsOf(before), symbolsOf(after));

export function comparison({ before, after, edits, model, places }) {
  const { removed, added } = changes(before, after);
  const same = !removed.includes(true) && !added.includes(true);
  const side = (title, prediction, marks, name, tag) => make(`div.side.${name}`, {},
    make("h4", {}, title),
    runningText(prediction, marks, model.output.tokens, tag),
    measures(prediction, model));
  return make("section.comparison", { "aria-label": "before and after" },
    make("ul.edits", {}, edits.map((edit) => make("li", {}, ...describeEdit(edit, places, model)))),
    make("div.sides", {},
      side("Before: the model by itself", before, removed, "before", "del"),
      side("After: with your edits", after, added, "after", "ins")),
    same ? make("p.quiet", {}, sameOutput(before, after)) : null);
}

function sameOutput(before, after) {
  const [first, second] = [before, after].map((prediction) => Math.exp(prediction.log_probability));
  return `The output stays the same; its probability goes from ${percent(first)} to ${percent(second)}.`;
}

// The output as running text, with the differences marked.
function runningText(prediction, marks, kind, tag) {
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

function describeEdit(edit, places, model) {
  const path = edit.begins ?? edit.avoids;
  if (path) return [edit.begins ? "continue from " : "avoid ", bdi(`“${running(path, model.output.tokens)}”`)];
  if (edit.hypothesis !== undefined) return ["force ", bdi(`“${edit.hypothesis}”`)];
  if (edit.says !== undefined) return [`step ${edit.step + 1}: write `, bdi(`“${visible(edit.says)}”`)];
  const [first] = heaviest(edit.weights, 1);
  const where = places(edit.looks)[first.place] ?? `place ${first.place + 1}`;
  return [`step ${edit.step + 1}: look at `, bdi(`“${visible(where)}”`), ` (weight ${fraction(first.weight)})`];
}

// Which symbols of each are not in the longest common subsequence.
function difference(before, after) {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      lengths[i][j] = before[i] === after[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const removed = before.map(() => true);
  const added = after.map(() => true);
  let i = 0;
  let j = 0;
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      removed[i++] = false;
      added[j++] = false;
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return { removed, added };
}
