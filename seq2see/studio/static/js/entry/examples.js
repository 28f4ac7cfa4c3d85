// Examples of the model to click on.

import { exampleFile } from "../api.js";
import { make } from "../dom.js";

const LONGEST = 60;

export function exampleRow(model, take) {
  if (!model.inputs.length || !model.examples.length) return null;
  const picture = model.inputs.find((input) => input.media === "image/*");
  const buttons = model.examples.map((example) => {
    const text = words(model, example);
    const number = example.example;
    const source = picture && exampleFile(model.name, number, picture.name);
    const content = picture ? make("img", { src: source, alt: "", loading: "lazy" }) : make("bdi", {}, text);
    const attributes = { type: "button", data: { example: number }, "aria-label": `example: ${text}` };
    return make("li", {}, make("button.example", { ...attributes, onclick: () => take(example) }, content));
  });
  const title = make("span.quiet", { id: "examples" }, "Examples");
  return make("div.examples", {}, title, make("ul", { "aria-labelledby": "examples" }, buttons));
}

function words(model, example) {
  const parts = model.inputs.map(({ name }) => example.inputs[name]?.file ?? String(example.inputs[name] ?? ""));
  const text = parts.join(" · ");
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
