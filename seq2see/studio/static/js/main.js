// The studio: the models that are shown, and their common input.

import * as address from "./address.js";
import * as api from "./api.js";
import { fill, make } from "./dom.js";
import { EntryForm } from "./entry/form.js";
import { Panel } from "./panel.js";
import { themeSwitch } from "./theme.js";

const at = (id) => document.getElementById(id);
const status = at("said");
const failure = at("failure");
const say = (text) => { status.textContent = text; };

const signature = (model) => model.inputs.map((input) => `${input.name}:${input.kind}`).join(" ");

const labelOf = ({ name, task }) => (name === task ? name : `${name} · ${task}`);

// Show errors at the top where there is no panel yet.
async function reportErrors(work) {
  failure.textContent = "";
  try {
    await work;
  } catch (error) {
    failure.textContent = error.message;
    document.body.dataset.state = "failed";
  }
}

class Studio {
  constructor(models) {
    this.models = models;
    this.details = new Map();
    this.onPanel = { say, step: (panel, step) => panel === this.panels[0] && this.name({ step }) };
    this.panels = [new Panel(this.onPanel)];
    this.form = new EntryForm(at("entry"), { ask: (request, options) => this.ask(request, options) });
    const chosen = (options) => this.pick(at("model").value, at("beside").value, options);
    at("model").addEventListener("change", () => reportErrors(chosen()));
    at("beside").addEventListener("change", () => reportErrors(chosen({ keep: true })));
    window.addEventListener("hashchange", () => reportErrors(this.begin()));
  }

  // Show what the address names, or the first model with an example.
  async begin() {
    const view = address.read();
    const known = (name) => this.models.some((model) => model.name === name);
    const lacking = [view.model, view.beside].filter((name) => name && !known(name));
    await this.pick(known(view.model) ? view.model : this.models[0].name, known(view.beside) ? view.beside : "", { view });
    if (lacking.length) failure.textContent = `The address names a model that is not served here: ${lacking.join(", ")}.`;
  }

  // keep: the input stays, and is sent to the second model; view: as the address names it.
  async pick(name, beside, { keep = false, view = null } = {}) {
    const model = await this.load(name);
    const alike = this.models.filter((other) => other.name !== name && signature(other) === signature(model));
    const second = alike.some((other) => other.name === beside) ? await this.load(beside) : null;
    this.options(name, second?.name ?? "", alike);
    const { last } = this;
    if (!keep) {
      this.form.show(model, { keep: !view });
      if (this.panels[0].model !== model) this.panels[0].show(model);
    }
    this.panels.length = 1;
    if (second) {
      this.panels.push(new Panel(this.onPanel));
      this.panels[1].show(second);
    }
    const area = at("panels");
    area.classList.toggle("two", Boolean(second));
    fill(area, this.panels.map((panel) => panel.element));
    if (!keep) this.last = null;
    this.name();
    if (keep && second && last) this.askPanel(this.panels[1], last);
    if (!keep) this.form.start(view ? { ...view, inputs: view.inputs(model) } : {});
    document.body.dataset.state = "ready";
  }

  // Put what is shown into the address.
  name({ step = 0, kept = false } = {}) {
    const [model, beside] = this.panels.map((panel) => panel.model);
    address.write({ model, beside, request: this.last, step }, { kept });
  }

  options(name, second, alike) {
    const option = (other, chosen) =>
      make("option", { value: other.name, selected: other.name === chosen }, labelOf(other));
    fill(at("model"), this.models.map((other) => option(other, name)));
    fill(at("beside"), make("option", { value: "", selected: !second }, "none"), alike.map((other) => option(other, second)));
    at("beside").disabled = !alike.length;
  }

  async load(name) {
    if (!this.details.has(name)) this.details.set(name, await api.model(name));
    return this.details.get(name);
  }

  ask(request, { started }) {
    this.last = request;
    this.name({ step: request.step, kept: !started });
    this.panels.forEach((panel) => this.askPanel(panel, request));
  }

  async askPanel(panel, request) {
    try {
      await panel.ask(await suitable(request, panel.model, this.panels[0].model));
    } catch (error) {
      panel.fail(error);
    }
  }
}

// Examples are numbered by model: another model is sent the file itself.
async function suitable(request, model, owner) {
  if (model === owner || request.input === null) return request;
  const input = {};
  for (const [name, value] of Object.entries(request.input)) {
    input[name] = value?.example === undefined ? value : await api.exampleContent(owner, value.example, name);
  }
  return { ...request, input };
}

themeSwitch(at("theme"));
await reportErrors(api.models().then((models) => new Studio(models).begin()));
