// The outputs of the beam with their scores, the shown one first; choosing another shows where the model looks while
// writing it.

import { bdi, make } from "./dom.js";
import { logarithm } from "./symbols.js";

// search: the settings of the recipe.
export function nBest(prediction, search, choose) {
  const others = prediction.alternatives ?? [];
  if (!others.length) return null;
  const first = { ...prediction, text: prediction.text ?? prediction.label };
  const head = make("div.ranked.head", { "aria-hidden": "true" }, make("span", {}, "Output"),
    make("span.figure", { title: scoreMeans(search) }, "score"),
    make("span.figure", { title: LOG_P }, "log P"));
  const shown = make("li", {}, make("div.ranked", { "aria-current": "true" }, ...columns(first), spoken(first)));
  const rows = others.map((other) =>
    make("li", {}, make("button.ranked.other", { type: "button", onclick: () => choose(other.text) }, ...columns(other), spoken(other))));
  return make("section.others", {}, make("h3", {}, "Outputs found"), make("p.quiet.order", {}, order(search)), head,
    make("ol.nbest", {}, shown, rows));
}

const columns = ({ text, score, log_probability }) => [
  bdi(text || "(nothing)"),
  make("span.figure.score", { "aria-hidden": "true" }, logarithm(score)),
  make("span.figure.sum", { "aria-hidden": "true" }, logarithm(log_probability)),
];

const spoken = ({ score, log_probability }) =>
  make("span.unseen", {}, `, score ${logarithm(score)}, log P ${logarithm(log_probability)}`);

export const LOG_P = "log P: the sum of the logarithms of the symbols' probabilities, the end included";

export function scoreMeans({ length_penalty: penalty = 1 }) {
  if (penalty === 0) return "score: what the search ranks by, here log P itself";
  const length = penalty === 1 ? "the number of symbols" : `the number of symbols to the power of ${penalty}`;
  return `score: what the search ranks by, log P divided by ${length}, the end included`;
}

function order(search) {
  const score = scoreMeans(search).replace("score: what the search ranks by", "Score is what the search ranks by");
  if (!search.consensus) return `${score}; the highest comes first.`;
  return `In the order of consensus: the output most like all the others comes first, so that scores need not fall. ${score}.`;
}
