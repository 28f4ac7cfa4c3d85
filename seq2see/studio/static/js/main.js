// The studio: which models are shown, and the input that they share.

import * as api from "./api.js";
import { fill, make } from "./dom.js";
import { EntryForm } from "./entry/form.js";
import { Panel } from "./panel.js";
import { themeSwitch } from "./theme.js";

const at = (id) => document.getElementById(id);
const said = at("said");
const failure = at("failure");
const say = (text) => { said.textContent = text; };

const signature = (model) => model.inputs.map((input) => `${input.name}:${input.kind}`).join(" ");

const labelOf = ({ name, task }) => (name === task ? name : `${name} · ${task}`);

// Whatever fails before there is a panel to say so is said at the top.
async function told(work) {
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
    this.panels = [new Panel(say)];
    this.form = new EntryForm(at("entry"), { ask: (asked) => this.ask(asked) });
    const chosen = (options) => this.pick(at("model").value, at("beside").value, options);
    at("model").addEventListener("change", () => told(chosen()));
    at("beside").addEventListener("change", () => told(chosen({ keep: true })));
    window.addEventListener("hashchange", () => told(this.begin()));
  }

  // The models that the address names, or the first.
  async begin() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    const known = (name) => this.models.some((model) => model.name === name);
    const [first, second] = [wanted.get("model"), wanted.get("beside")];
    await this.pick(known(first) ? first : this.models[0].name, known(second) ? second : "");
  }

  // keep: the input stays, and whoever comes in is asked about it.
  async pick(name, beside, { keep = false } = {}) {
    const model = await this.described(name);
    const alike = this.models.filter((one) => one.name !== name && signature(one) === signature(model));
    const second = alike.some((one) => one.name === beside) ? await this.described(beside) : null;
    this.options(name, second?.name ?? "", alike);
    const shown = second ? { model: name, beside: second.name } : { model: name };
    history.replaceState(null, "", `#${new URLSearchParams(shown)}`);
    const last = this.asked;
    if (!keep) {
      this.form.show(model);
      this.panels[0].show(model);
    }
    this.panels.length = 1;
    if (second) {
      this.panels.push(new Panel(say));
      this.panels[1].show(second);
    }
    const area = at("panels");
    area.classList.toggle("two", Boolean(second));
    fill(area, this.panels.map((panel) => panel.element));
    if (keep && second && last) this.one(this.panels[1], last);
    if (!keep) this.asked = null;
    document.body.dataset.state = "ready";
  }

  options(name, second, alike) {
    const option = (one, chosen) =>
      make("option", { value: one.name, selected: one.name === chosen }, labelOf(one));
    fill(at("model"), this.models.map((one) => option(one, name)));
    fill(at("beside"), make("option", { value: "", selected: !second }, "none"), alike.map((one) => option(one, second)));
    at("beside").disabled = !alike.length;
  }

  async described(name) {
    if (!this.details.has(name)) this.details.set(name, await api.model(name));
    return this.details.get(name);
  }

  ask(asked) {
    this.asked = asked;
    this.panels.forEach((panel) => this.one(panel, asked));
  }

  async one(panel, asked) {
    try {
      await panel.ask(await suited(asked, panel.model, this.panels[0].model));
    } catch (error) {
      panel.fail(error);
    }
  }
}

// Examples are numbered by model: another model is sent the file itself.
async function suited(asked, model, owner) {
  if (model === owner || asked.input === null) return asked;
  const input = {};
  for (const [name, value] of Object.entries(asked.input)) {
    input[name] = value?.example === undefined ? value : await api.exampleContent(owner, value.example, name);
  }
  return { ...asked, input };
}

themeSwitch(at("theme"));
await told(api.models().then((models) => new Studio(models).begin()));
