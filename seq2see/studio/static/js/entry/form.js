// The form of a model: a field for each input, examples, search options.

import { fill, make } from "../dom.js";
import { exampleRow } from "./examples.js";
import { fileField } from "./file.js";
import { searchFields } from "./search.js";
import { textField } from "./text.js";

// on.ask({input, options}) when the form is submitted.
export class EntryForm {
  constructor(element, on) {
    this.element = element;
    this.on = on;
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  // What was typed stays where the next model has an input of the same name and kind.
  show(model) {
    const kept = Object.fromEntries((this.fields ?? []).map((field) => [`${field.name}/${field.kind}`, field.value()]));
    const submit = () => this.submit();
    this.model = model;
    this.fields = model.inputs.map((input) => (input.file ? fileField(input, submit) : textField(input, submit)));
    for (const field of this.fields) {
      const value = kept[`${field.name}/${field.kind}`];
      if (value !== undefined && !("example" in Object(value))) field.set(value);
    }
    this.search = searchFields(model, submit);
    const button = make("button.primary", { type: "submit" }, model.inputs.length ? "See where it looks" : "Write");
    const hint = "This model has no input: it continues a text of yours, or starts its own.";
    const none = model.inputs.length ? null : make("p.quiet", {}, hint);
    fill(this.element, none, make("div.fields", {}, this.fields.map((field) => field.element)),
      make("div.actions", {}, button, this.search.element), exampleRow(model, (example) => this.take(example)));
  }

  take(example) {
    for (const field of this.fields) field.set(example.inputs[field.name], this.model.name);
    this.submit();
  }

  submit() {
    const missing = this.fields.find((field) => field.value() === undefined);
    if (missing) {
      missing.focus();
      missing.complain();
      return;
    }
    const input = this.fields.length ? Object.fromEntries(this.fields.map((field) => [field.name, field.value()])) : null;
    this.on.ask({ input, options: this.search.value() });
  }
}
