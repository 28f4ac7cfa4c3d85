// One model's answer to an input: asked for, shown, changed by hand, taken back.

import * as api from "./api.js";
import { answers } from "./answers.js";
import { free, looking, saying } from "./course.js";
import { fill, folded, make } from "./dom.js";
import { keepingFocus } from "./focus.js";
import { Result } from "./result.js";
import { onto, painted } from "./weights.js";

export class Panel {
  constructor(say) {
    this.say = say;
    this.moments = [];
    this.opened = new Set();
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
    this.moments = [];
    const described = (model.description || model.task).replaceAll("->", "→");
    fill(this.title, make("span.name", { dir: "auto" }, model.name), " ", make("span.quiet", {}, described));
    const address = `live?model=${encodeURIComponent(model.name)}`;
    const learned = model.run ? make("a.quiet", { href: address }, "How it learned") : null;
    fill(this.about, folded("The five answers", () => answers(model), { name: "answers" }), learned);
    this.element.setAttribute("aria-label", model.name);
    this.clear();
  }

  clear() {
    fill(this.body, make("p.quiet.nothing", {}, "What it says, and where it looked, will stand here."));
    fill(this.notices);
    this.state("empty");
  }

  // A new input: all edits are gone.
  async ask({ input, options }) {
    this.input = input;
    this.options = options;
    await this.go({ ...free(), prefix: options.prefix ?? null }, { begin: true });
  }

  // The weights of a step, handed in.
  look(step, map, weights) {
    const label = this.model.output.kind === "label";
    return this.go(looking(this.now.course, { symbols: this.symbols, step, map, weights, label }), { step });
  }

  // All weight on one place, or shared with those chosen before.
  lookAt(step, map, place, count, more) {
    const held = this.now.course.oracle[step]?.[map] ?? [];
    const chosen = more ? held.flatMap((weight, at) => (weight > 0 && at !== place ? [at] : [])) : [];
    return this.look(step, map, onto([...chosen, place], count));
  }

  // The weights of a stroke over places, on top of those handed in before or in their stead.
  stroke(step, map, places, count, more) {
    return painted((more && this.now.course.oracle[step]?.[map]) || [], places, count);
  }

  choose(step, symbol) {
    return this.go(saying(this.now.course, { symbols: this.symbols, step, symbol }), { step });
  }

  follow(text) {
    return this.go({ ...free(), target: text, edits: [{ step: 0, hypothesis: text }] }, { step: 0 });
  }

  back(to = this.moments.length - 2) {
    if (to < 0 || this.moments.length < 2) return;
    this.request?.abort();
    this.moments = this.moments.slice(0, to + 1);
    this.draw(this.result?.step ?? 0);
  }

  explain(step) {
    const { course } = this.now;
    const body = { model: this.model.name, input: this.input, step };
    if (this.model.output.kind === "text") body.target = this.symbols;
    if (Object.keys(course.oracle).length) body.oracle = course.oracle;
    return api.ask("explain", body);
  }

  get now() {
    return this.moments[this.moments.length - 1];
  }

  get symbols() {
    return (this.now.prediction.tokens ?? []).map((token) => token.text);
  }

  async go(course, { begin = false, step = 0 } = {}) {
    this.request?.abort();
    const request = new AbortController();
    this.request = request;
    this.state("waiting");
    try {
      const told = await api.ask("predict", this.bodyOf(course), request.signal);
      const moment = { course, prediction: told.predictions[0], notices: told.notices };
      this.moments = begin ? [moment] : [...this.moments, moment];
      this.draw(step);
    } catch (error) {
      if (error.name === "AbortError" || request !== this.request) return;
      this.fail(error);
      if (!begin) this.result?.restore();
    }
  }

  // What the server refuses is told; what is a fault of ours is also the console's to tell.
  fail(error) {
    this.status.textContent = error.message;
    this.state("failed");
    if (!(error instanceof api.Refusal)) throw error;
  }

  bodyOf(course) {
    const body = { model: this.model.name, input: this.input, maps: true };
    if (course.target !== undefined) return { ...body, target: course.target };
    const { prefix, ...options } = this.options;
    if (course.prefix?.length) body.prefix = course.prefix;
    if (Object.keys(course.oracle).length) body.oracle = course.oracle;
    return { ...body, ...options };
  }

  draw(step) {
    const { prediction, course, notices } = this.now;
    this.status.textContent = "";
    fill(this.notices, notices.map((notice) => make("li", {}, notice)));
    const within = Math.max(0, Math.min(step, this.symbols.length - 1));
    this.result = new Result({ panel: this, prediction, course, first: this.moments[0].prediction, step: within });
    keepingFocus(this.body, () => fill(this.body, this.result.element));
    this.state("ready");
    this.say(`${this.model.name} says: ${prediction.text ?? prediction.label ?? "numbers"}`);
  }

  state(name) {
    this.element.dataset.state = name;
    this.element.dataset.edits = Math.max(0, this.moments.length - 1);
    this.element.setAttribute("aria-busy", String(name === "waiting"));
    if (name === "waiting") this.status.textContent = "";
    this.undo.disabled = this.moments.length < 2 || name === "waiting";
    this.reset.disabled = this.undo.disabled;
  }

  key(event) {
    const typing = event.target.closest("input, textarea");
    if (typing || event.key !== "z" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    this.back();
  }
}
