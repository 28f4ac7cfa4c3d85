// The other outputs that the search found; choosing one shows where the model looks while writing it.

import { bdi, make } from "./dom.js";

export function nBest(prediction, choose) {
  const others = prediction.alternatives ?? [];
  if (!others.length) return null;
  const rows = others.map((one) => {
    const parts = [bdi(one.text || "(nothing)"), make("span.quiet", {}, one.score.toFixed(2))];
    return make("li", {}, make("button.other", { type: "button", onclick: () => choose(one.text) }, parts));
  });
  return make("section.others", {}, make("h3", {}, "Other outputs"), make("ol.nbest", {}, rows));
}
