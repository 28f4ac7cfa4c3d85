// The five answers of a model: data, encoder, decoder, parameters, loss.

import { make } from "./dom.js";

const QUESTIONS = [
  ["data", "What is the data?"],
  ["encoder", "What is the encoder?"],
  ["decoder", "What is the decoder?"],
  ["parameters", "What are the parameters?"],
  ["loss", "What is the loss, and how is it minimised?"],
];

export function answers(model) {
  const several = model.answers.length > 1;
  return model.answers.map((record, at) => make("div.answers", {},
    several ? make("h4", {}, `Model ${at + 1} of ${model.answers.length}`) : null,
    QUESTIONS.map(([key, question]) => [make("h4", {}, question), answer(record, key)]),
    (record.notes ?? []).map((note) => make("p.quiet", {}, note))));
}

function answer(record, key) {
  return key === "parameters" ? parameters(record) : make("pre", { dir: "ltr" }, record[key].join("\n"));
}

// Parts with their sums; `seq2see show` lists every matrix.
function parameters(record) {
  const parts = new Map();
  for (const { part, count } of record.parameters) parts.set(part, (parts.get(part) ?? 0) + count);
  const rows = [...parts, ["total", record.total]].map(([part, count]) => make("tr", {},
    make("th", { scope: "row" }, part),
    make("td", {}, count.toLocaleString("en"))));
  return make("table.figures", {}, make("tbody", {}, rows));
}
