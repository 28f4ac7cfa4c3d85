// The outputs of the beam with their scores, the shown one first; choosing another shows where the model looks while
// writing it.

import { bdi, make } from "./dom.js";
import { directionOf, logarithm, percent } from "./symbols.js";

// search: the settings of the recipe.
export function nBest(prediction, search, choose) {
  const others = prediction.alternatives ?? [];
  if (!others.length) return null;
  const first = { ...prediction, text: prediction.text ?? prediction.label };
  const head = make("div.ranked.head", { "aria-hidden": "true" }, make("span", { dir: directionOf([first, ...others].map((output) => output.text ?? "")) }, "Output"),
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

// Probability, score and log P of a whole output; a label has no score.
export function measures(prediction, model) {
  const measure = (name, value, title) =>
    make("span.measure", { title, dir: "ltr", data: { measure: name } }, `${name} `, make("b", {}, value));
  return make("p.quiet.measures", {},
    measure("probability", percent(Math.exp(prediction.log_probability)), "probability of the whole output, given the input"),
    model.output.kind === "text" ? measure("score", logarithm(prediction.score), scoreMeans(model.search)) : null,
    measure("log P", logarithm(prediction.log_probability), LOG_P),
    prediction.given ? make("span.measure", { dir: "ltr" }, prediction.given) : null);
}

const LOG_P = "log P: natural logarithm of the probability, the sum over all symbols, <eos> included";

function scoreMeans({ length_penalty: penalty = 1 }) {
  if (penalty === 0) return "score: what the search ranks by, here log P itself";
  const length = penalty === 1 ? "the number of symbols" : `the number of symbols to the power of ${penalty}`;
  return `score: what the search ranks by, log P divided by ${length}, <eos> included`;
}

function order(search) {
  const score = scoreMeans(search).replace("score: what the search ranks by", "Score is what the search ranks by");
  const unit = "Both are natural logarithms; 0 means certain.";
  if (!search.consensus) return `${score}; the highest comes first. ${unit}`;
  return `Ordered by consensus: the output most like all the others comes first, so scores need not fall. ${score}. ${unit}`;
}
