// Inputs to begin with.

import { exampleFile } from "../api.js";
import { make } from "../dom.js";

const LONGEST = 60;

export function exampleRow(model, take) {
  if (!model.inputs.length || !model.examples.length) return null;
  const picture = model.inputs.find((input) => input.kind === "image");
  const buttons = model.examples.map((example) => {
    const text = words(model, example);
    const image = picture && make("img", { src: exampleFile(model.name, example.example, picture.name), alt: "", loading: "lazy" });
    const content = image ?? make("bdi", {}, text);
    return make("li", {}, make("button.example", { type: "button", data: { example: example.example }, "aria-label": `example: ${text}`, onclick: () => take(example) }, content));
  });
  return make("div.examples", {}, make("span.quiet", { id: "examples" }, "Examples"), make("ul", { "aria-labelledby": "examples" }, buttons));
}

function words(model, example) {
  const text = model.inputs.map(({ name }) => example.inputs[name]?.file ?? String(example.inputs[name] ?? "")).join(" · ");
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
