// Options of the search; empty fields keep the recipe's values.

import { make } from "../dom.js";

export function searchFields(model, submit) {
  if (model.output.kind !== "text") return { element: null, value: () => ({}), set() {} };
  const reads = model.inputs.length > 0;
  const number = (name, title, attributes) => {
    const field = make("input", { type: "number", id: `search-${name}`, ...attributes });
    return { name, field, element: make("label", { for: field.id }, make("span", {}, title), field) };
  };
  const begin = make("input", { type: "text", id: "search-prefix", dir: "auto", autocomplete: "off" });
  begin.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  const sample = make("input", { type: "checkbox", id: "search-sample", checked: !reads });
  const beam = number("beam", "Beam", { min: 1, max: 64, placeholder: model.search.beam ?? "" });
  const temperature = number("temperature", "Temperature", { min: 0.05, max: 5, step: "any", placeholder: "1" });
  const seed = number("seed", "Seed", { min: 0, step: 1, placeholder: "any" });
  const drawn = [temperature, seed];
  const show = () => {
    drawn.forEach(({ field, element }) => { field.disabled = !sample.checked; element.hidden = !sample.checked; });
    beam.field.disabled = sample.checked;
    beam.element.hidden = sample.checked;
  };
  sample.addEventListener("change", show);
  show();
  const parts = [
    make("label", { for: begin.id }, make("span", {}, "Begins with"), begin),
    beam.element,
    reads ? make("label.check", { for: sample.id }, sample, make("span", {}, "Sample")) : null,
    ...drawn.map(({ element }) => element),
  ];
  const details = make("details.search", { open: !reads }, make("summary", {}, "Search"), make("div.options", {}, parts));
  return {
    element: details,
    // Options as texts, those of an address.
    set(options) {
      begin.value = options.prefix ?? "";
      if (reads) sample.checked = "sample" in options;
      for (const { name, field } of [beam, ...drawn]) field.value = options[name] ?? "";
      if (Object.keys(options).length) details.open = true;
      show();
    },
    value() {
      const options = {};
      if (begin.value) options.prefix = begin.value;
      if (sample.checked && reads) options.sample = true;
      for (const { name, field } of [beam, ...drawn]) {
        if (!field.disabled && field.value !== "") options[name] = Number(field.value);
      }
      if (sample.checked) options.seed ??= Math.floor(Math.random() * 1e6);
      return options;
    },
  };
}
