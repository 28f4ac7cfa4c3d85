// The panel of one model: sends requests, shows results, keeps the history of edits.

import * as api from "./api.js";
import { answers } from "./answers.js";
import { editAllow, editAvoid, editLooks, editPath, editSymbol, noEdits } from "./edits.js";
import { fill, folded, keepFocus, make, quoting } from "./dom.js";
import { Result } from "./result.js";
import { onto, painted } from "./weights.js";

export class Panel {
  // on: {say(text) to screen readers, step(number) when a step is chosen}.
  constructor(on) {
    this.on = on;
    this.history = [];
    this.opened = new Set();
    this.treeView = { left: 0, hidden: false };
    this.title = make("h2");
    this.about = make("div.about");
    this.status = make("p.status", { role: "alert" });
    this.notices = make("ul.notices", { "aria-label": "notices" });
    this.undo = make("button", { type: "button", disabled: true, onclick: () => this.back() }, "Undo");
    this.reset = make("button", { type: "button", disabled: true, onclick: () => this.back(0) }, "Reset");
    this.body = make("div.result");
    const head = make("header.panelhead", {}, this.title, make("div.buttons", {}, this.undo, this.reset));
    this.element = make("article.panel", {}, head, this.about, this.status, this.notices, this.body);
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  show(model) {
    this.request?.abort();
    this.model = model;
    this.history = [];
    const described = (model.description || model.task).replaceAll("->", "→");
    fill(this.title, make("span.name", { dir: "auto" }, model.name), " ", make("span.quiet", {}, described));
    const address = `live?model=${encodeURIComponent(model.name)}`;
    const learned = model.run ? make("a.quiet", { href: address }, "How it learned") : null;
    fill(this.about, folded("The five answers", () => answers(model), { name: "answers" }), learned);
    this.element.setAttribute("aria-label", model.name);
    this.clear();
  }

  clear() {
    fill(this.body, make("p.quiet.nothing", {}, "Type an input above to see the output, and where the model looks."));
    fill(this.notices);
    this.state("empty");
  }

  // A new input, without edits.
  async ask({ input, options, step = 0 }) {
    this.input = input;
    this.options = options;
    this.treeView.left = 0;
    await this.predict({ ...noEdits(), prefix: options.prefix ?? null }, { begin: true, step });
  }

  // Edit the weights of a step.
  look(step, map, weights) {
    const label = this.model.output.kind === "label";
    return this.predict(editLooks(this.now.edits, { symbols: this.symbols, step, map, weights, label }), { step });
  }

  // All weight on one place; more: shared with the places chosen before.
  lookAt(step, map, place, count, more) {
    const held = this.now.edits.oracle[step]?.[map] ?? [];
    const chosen = more ? held.flatMap((weight, at) => (weight > 0 && at !== place ? [at] : [])) : [];
    return this.look(step, map, onto([...chosen, place], count));
  }

  // The weights of a stroke over places; more: added to the edited weights.
  stroke(step, map, places, count, more) {
    return painted((more && this.now.edits.oracle[step]?.[map]) || [], places, count);
  }

  choose(step, symbol) {
    return this.predict(editSymbol(this.now.edits, { symbols: this.symbols, step, symbol }), { step });
  }

  // Continue from a node of the beam tree, prune it, or take that back.
  force(path) {
    return this.predict(editPath(this.now.edits, path), { step: path.length - 1 });
  }

  avoid(path) {
    return this.predict(editAvoid(this.now.edits, path), { step: path.length - 1 });
  }

  allow(path) {
    return this.predict(editAllow(this.now.edits, path), { step: path.length - 1 });
  }

  // Why there is no beam tree; empty where there is one.
  treeless(edits) {
    if (edits.target !== undefined) return "This output is forced as a whole: there was no search. Undo shows the search again.";
    if (this.options.sample || !this.model.inputs.length) return "Outputs are sampled: there is no beam.";
    const width = this.options.beam ?? this.model.search.beam ?? 1;
    return width > 1 ? "" : "The search is greedy, so there is no tree. Set Beam above 1 under Search.";
  }

  // The tree of the search, asked for once it is to be seen.
  async tree() {
    const { now } = this;
    if (!now.prediction.tree) {
      const body = { ...this.bodyOf(now.edits), maps: false, looks: false, shown: false, tree: true };
      now.prediction.tree = (await api.ask("predict", body)).predictions[0].tree;
    }
    return now.prediction.tree;
  }

  // The training rows nearest to the input, or to a step of the output; asked for once.
  nearest(step) {
    const { now } = this;
    now.nearest ??= new Map();
    if (!now.nearest.has(step)) {
      const body = { model: this.model.name, input: this.input };
      if (step !== null) body.step = step;
      if (step !== null && this.model.output.kind === "text") body.target = this.symbols;
      now.nearest.set(step, api.ask("nearest", body).then(({ rows }) => rows).catch((error) => {
        now.nearest.delete(step); // it may be answered the next time
        throw error;
      }));
    }
    return now.nearest.get(step);
  }

  follow(text) {
    return this.predict({ ...noEdits(), target: text, list: [{ step: 0, hypothesis: text }] }, { step: 0 });
  }

  back(to = this.history.length - 2) {
    if (to < 0 || this.history.length < 2) return;
    this.request?.abort();
    this.history = this.history.slice(0, to + 1);
    this.draw(this.result?.step ?? 0);
  }

  explain(step) {
    const { edits } = this.now;
    const body = { model: this.model.name, input: this.input, step };
    if (this.model.output.kind === "text") body.target = this.symbols;
    if (Object.keys(edits.oracle).length) body.oracle = edits.oracle;
    return api.ask("explain", body);
  }

  get now() {
    return this.history[this.history.length - 1];
  }

  get symbols() {
    return (this.now.prediction.tokens ?? []).map((token) => token.text);
  }

  async predict(edits, { begin = false, step = 0 } = {}) {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.state("waiting");
    try {
      const response = await api.ask("predict", this.bodyOf(edits), request.signal);
      const entry = { edits, prediction: response.predictions[0], notices: response.notices };
      this.history = begin ? [entry] : [...this.history, entry];
      this.draw(step);
    } catch (error) {
      if (error.name === "AbortError" || request !== this.request) return;
      this.fail(error);
      if (!begin) this.result?.restore();
    }
  }

  // Errors of the server are shown; errors of this page go to the console as well.
  fail(error) {
    this.status.textContent = error.message;
    this.state("failed");
    if (!(error instanceof api.RequestError)) throw error;
  }

  bodyOf(edits) {
    const body = { model: this.model.name, input: this.input, maps: true };
    if (edits.target !== undefined) return { ...body, target: edits.target };
    const { prefix, ...options } = this.options;
    if (edits.prefix?.length) body.prefix = edits.prefix;
    if (edits.avoid.length) body.avoid_prefixes = edits.avoid;
    if (this.opened.has("tree") && this.model.output.kind === "text" && !this.treeless(edits)) body.tree = true;
    if (Object.keys(edits.oracle).length) body.oracle = edits.oracle;
    return { ...body, ...options };
  }

  draw(step) {
    const { prediction, edits, notices } = this.now;
    this.status.textContent = "";
    fill(this.notices, notices.map((notice) => make("li", {}, quoting(notice))));
    const within = Math.max(0, Math.min(step, this.symbols.length - 1));
    this.result = new Result({ panel: this, prediction, edits, first: this.history[0].prediction, step: within });
    keepFocus(this.body, () => fill(this.body, this.result.element));
    this.state("ready");
    this.on.say(`Output of ${this.model.name}: ${prediction.text ?? prediction.label ?? "numbers"}`);
  }

  state(name) {
    this.element.dataset.state = name;
    this.element.dataset.edits = Math.max(0, this.history.length - 1);
    this.element.setAttribute("aria-busy", String(name === "waiting"));
    if (name === "waiting") this.status.textContent = "";
    this.undo.disabled = this.history.length < 2 || name === "waiting";
    this.reset.disabled = this.undo.disabled;
  }

  key(event) {
    const typing = event.target.closest("input, textarea");
    if (typing || event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.back();
  }
}
