// Where did it learn this? The training rows nearest to the input, and to the chosen step of the output.

import { bdi, fill, folded, make } from "./dom.js";
import { figure, gluedTo, visible } from "./symbols.js";

const SAME_INPUT = "The inputs that the encoder finds most like this one, by the cosine of their vectors.";
const SAME_STEP = "The rows where the decoder was in the most similar state when it wrote the marked symbol.";
const NO_INDEX = "This model has no index of its training rows. If you have the table that it was trained on, and the model is a folder (packed models have no index), make one, then load the model again: ";
const UNEDITED = " The attention that you edited is not taken into account.";

// index: whether the model has one; reads: whether it has inputs; steps: whether its output has states; edited:
// whether weights were edited; kind: tokens of the output; nearest(step | null) gives the promise of rows; opened: names of the parts that are open.
// Gives {element, show(step, symbol)}: the chosen step, drawn while the part is open.
export function learned({ index, reads, steps, edited, kind, nearest, opened }) {
  const [body, ofInput, ofStep] = [make("div"), make("div"), make("div")];
  const title = make("h4");
  let chosen = null;
  const wanted = (step) => step === null || step === chosen?.step;
  const list = (place, step) => {
    fill(place, make("p.quiet", {}, "Searching …"));
    nearest(step).then(
      (rows) => wanted(step) && fill(place, table(rows, kind)),
      (error) => wanted(step) && fill(place, make("p.complaint", {}, error.message)),
    );
  };
  const drawStep = () => {
    fill(title, `Nearest to step ${chosen.step + 1} · `, bdi(visible(chosen.symbol)));
    list(ofStep, chosen.step);
  };
  const build = () => {
    if (!index) return make("p.quiet", {}, NO_INDEX, make("code", {}, "seq2see nearest FOLDER --data TABLE"));
    fill(body,
      reads ? [make("h4", {}, "Nearest to the input"), make("p.quiet", {}, SAME_INPUT), ofInput] : null,
      steps ? [title, make("p.quiet", {}, SAME_STEP + (edited ? UNEDITED : "")), ofStep] : null);
    if (reads) list(ofInput, null);
    if (steps && chosen) drawStep();
    return body;
  };
  const part = folded("Where did it learn this?", build, { name: "learned", opened });
  return {
    element: make("section.learned", { "aria-label": "nearest training rows" }, part),
    show(step, symbol) {
      if (chosen?.step === step) return;
      chosen = { step, symbol };
      if (index && steps && part.open) drawStep();
    },
  };
}

function table(rows, kind) {
  return make("ol.near", {}, rows.map((row) => make("li", {},
    make("span.similarity", { title: "cosine similarity, at most 1", style: { "--p": Math.max(0, row.cosine).toFixed(4) } },
      make("i.meter", { "aria-hidden": "true" }), make("span.figure", { dir: "ltr" }, figure(row.cosine))),
    inputs(row.input),
    make("p.to", { dir: "auto" }, output(row, kind)))));
}

function inputs(value) {
  if (value === undefined || value === null) return null;
  const values = typeof value === "string" ? [value] : Object.values(value);
  return make("div.from", {}, values.map((text) => make("p", { dir: "auto" }, text)));
}

// The output of a row, with the symbol of its nearest step marked.
function output(row, kind) {
  if (row.step === undefined || row.symbols.length < 2) return row.output;
  const glued = gluedTo(row.symbols, kind);
  return row.symbols.flatMap((symbol, at) => {
    if (at !== row.step && symbol === "<eos>") return [];
    return [at && !glued[at] ? " " : "", at === row.step ? make("mark", {}, visible(symbol)) : visible(symbol)];
  });
}
