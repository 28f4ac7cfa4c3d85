// The form of a model: a field for each input, examples, search options.

import { fill, make } from "../dom.js";
import { exampleRow } from "./examples.js";
import { fileField } from "./file.js";
import { searchFields } from "./search.js";
import { textField } from "./text.js";

// on.ask({input, options, step}, {started}) when the form is submitted.
export class EntryForm {
  constructor(element, on) {
    this.element = element;
    this.on = on;
    element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
  }

  // keep: what a person typed stays where the next model has an input of the same name and kind.
  show(model, { keep }) {
    const own = (keep ? this.fields ?? [] : []).filter((field) => field.own());
    const kept = Object.fromEntries(own.map((field) => [`${field.name}/${field.kind}`, field.value()]));
    const submit = () => this.submit();
    this.model = model;
    this.fields = model.inputs.map((input) => (input.file ? fileField(input, submit) : textField(input, submit)));
    for (const field of this.fields) {
      const value = kept[`${field.name}/${field.kind}`];
      if (value !== undefined) field.set(value, { typed: true });
    }
    this.search = searchFields(model, submit);
    const button = make("button.primary", { type: "submit" }, model.inputs.length ? "See where it looks" : "Write");
    const hint = "This model has no input: it writes a text of its own, or continues yours.";
    const none = model.inputs.length ? null : make("p.quiet", {}, hint);
    fill(this.element, none, make("div.fields", {}, this.fields.map((field) => field.element)),
      make("div.actions", {}, button, this.search.element), exampleRow(model, (example) => this.take(example)));
  }

  // Send the first input: that of an address, what was typed before, or an example, so that no page starts empty.
  start({ inputs = {}, options = {}, step = 0 } = {}) {
    this.search.set(options);
    const shared = this.fields.map((field) => this.shared(field, inputs[field.name]));
    if (shared.every((value) => value !== undefined)) {
      this.fields.forEach((field, at) => field.set(shared[at], { model: this.model.name, typed: true }));
    } else if (this.model.examples.length && !this.fields.some((field) => field.own())) this.set(this.model.examples[0]);
    if (this.fields.every((field) => field.value() !== undefined)) this.submit({ step, started: true });
  }

  // The value of a field that an address names: a text, or the number of an example whose file it is.
  shared(field, text) {
    if (text === undefined || !this.model.inputs.find((input) => input.name === field.name).file) return text;
    return this.model.examples.find((example) => String(example.example) === text)?.inputs[field.name];
  }

  set(example) {
    for (const field of this.fields) field.set(example.inputs[field.name], { model: this.model.name });
  }

  take(example) {
    this.set(example);
    this.submit();
  }

  // started: by the page itself, and not by a person.
  submit({ step = 0, started = false } = {}) {
    const missing = this.fields.find((field) => field.value() === undefined);
    if (missing) {
      missing.focus();
      missing.complain();
      return;
    }
    const input = this.fields.length ? Object.fromEntries(this.fields.map((field) => [field.name, field.value()])) : null;
    this.on.ask({ input, options: this.search.value(), step }, { started });
  }
}
