// What a model said, and everything that can be seen of it; one step is chosen, and another may be pointed at.

import { changes, comparison } from "./comparison.js";
import { bdi, fill, folded, make } from "./dom.js";
import { explanation } from "./explanation.js";
import { heatmap } from "./heatmap.js";
import { looksOf, mapOver, weightsOf } from "./looks.js";
import { mapChooser } from "./maps.js";
import { nBest } from "./nbest.js";
import { numbers } from "./numbers.js";
import { runnersUp } from "./runners.js";
import { plain, shade } from "./shade.js";
import { sheet } from "./sheet.js";
import { percent, visible } from "./symbols.js";
import { tokenRow } from "./tokens.js";
import { viewOf } from "./views/index.js";
import { heaviest, top as topOf } from "./weights.js";
import { wheel } from "./wheel.js";

export class Result {
  constructor({ panel, prediction, course, first, step }) {
    Object.assign(this, { panel, prediction, course, first, step });
    this.model = panel.model;
    this.tokens = prediction.tokens ?? [];
    this.looks = looksOf(prediction, this.model);
    this.chosen = this.looks.main;
    this.head = null;
    this.pointed = null;
    this.detail = make("section.step", { "aria-label": "the chosen step" });
    this.inputs = make("section.inputs", { "aria-label": "the input, as the model reads it" });
    this.map = make("section.map");
    this.parts = make("div.parts", {}, this.inputs, this.detail, this.map);
    this.element = make("div.seen", {}, this.said(), this.compared(), this.parts, this.rest());
    this.drawInputs();
    this.drawMap();
    this.select(step);
  }

  // ------------------------------------------------------------ what was said

  said() {
    const { prediction } = this;
    if (!this.tokens.length) return make("section.said", {}, numbers(prediction));
    const on = { point: (step) => this.point(step), choose: (step) => this.select(step) };
    const marked = this.edited ? changes(this.first, prediction).come : [];
    this.row = tokenRow(this.tokens, { marked, selected: this.step, describe: (step) => this.described(step), on });
    const answer = prediction.text ?? prediction.label ?? "";
    const whole = percent(Math.exp(prediction.log_probability));
    return make("section.said", {},
      make("p.answer", { dir: "auto" }, answer || "(nothing)"),
      make("p.quiet", {}, `probability ${whole}, log P ${prediction.log_probability.toFixed(2)}`, prediction.given ? ` (${prediction.given})` : ""),
      this.row.element);
  }

  described(step) {
    const map = this.looks.maps[this.looks.main];
    if (!map?.weights[step]) return "";
    return `looks at ${heaviest(map.weights[step]).map(({ weight, place }) => `${visible(map.inputs[place])} ${percent(weight)}`).join(", ")}`;
  }

  get edited() {
    return this.course.edits.length > 0;
  }

  compared() {
    if (!this.edited || !this.tokens.length) return null;
    const places = (name) => (this.looks.maps[name] ?? this.looks.maps[this.looks.main])?.inputs ?? [];
    return comparison({ before: this.first, after: this.prediction, edits: this.course.edits, tokens: this.model.output.tokens, places });
  }

  // ------------------------------------------------------------ where it looked

  drawInputs() {
    const shown = Object.entries(this.prediction.shown ?? {});
    this.views = shown.map(([name, record]) => {
      const map = mapOver(this.looks, name, this.chosen);
      const tokens = this.model.inputs.find((input) => input.name === name)?.tokens;
      const on = { point: (place) => this.pointPlace(map, place), choose: (place, more) => this.lookAt(map, place, more) };
      return { name, map, ...viewOf({ shown: record, map, looks: this.looks, tokens, on }) };
    });
    const title = (name) => make("h3", {}, "Input", shown.length > 1 ? ` · ${name}` : "");
    fill(this.inputs, this.views.map((view) => make("div.view", { data: { input: view.name } }, title(view.name), view.element)),
      this.looks.reason ? make("p.quiet.reason", {}, this.looks.reason) : null);
  }

  drawMap() {
    const map = this.looks.maps[this.chosen];
    this.heat = null;
    const inSight = map?.layout.kind === "sentences" && map.weights.length === 1; // beside the sentences themselves
    if (!map || inSight) {
      fill(this.map);
      return;
    }
    const weights = weightsOf(map, this.head);
    const rows = map.rows ?? this.looks.outputs;
    const on = map.rows ? { point() {}, choose() {} } : { point: (step) => this.point(step), choose: (step) => this.select(step) };
    const picture = this.prediction.shown?.[map.input];
    const pictured = picture?.picture && picture.kind === "image" && !map.rows;
    this.heat = pictured ? sheet({ shown: picture, map, weights, tokens: this.tokens, on }) : heatmap({ map, weights, rows, on });
    const chooser = mapChooser(this.looks, this.chosen, this.head, (name, head) => {
      this.chosen = name;
      this.head = head;
      this.drawInputs();
      this.drawMap();
      this.select(this.step);
    });
    this.parts.classList.toggle("pictured", Boolean(pictured));
    fill(this.map, make("h3", {}, pictured ? "Where each symbol looked" : "All steps"), chooser, this.heat.element);
  }

  // ------------------------------------------------------------ one step

  select(step) {
    const changed = step !== this.step || !this.detail.hasChildNodes();
    this.step = step;
    this.row?.select(step);
    this.light(step);
    if (changed) this.drawStep();
  }

  restore() {
    this.drawStep();
    this.light(this.step);
  }

  point(step) {
    this.pointed = step;
    this.light(step ?? this.step);
  }

  light(step, changed = null) {
    this.row?.buttons.forEach(plain);
    for (const view of this.views) {
      if (!view.map) continue;
      const all = weightsOf(view.map, view.map.name === this.chosen ? this.head : null);
      const row = changed && view.map === this.editable ? changed : all[step];
      if (row) view.light(row, Math.max(topOf(all), changed ? topOf([row]) : 0));
    }
    this.heat?.mark(step);
  }

  // Pointing at a place shades the outputs by how much each looked there.
  pointPlace(map, place) {
    if (place === null || !map) {
      this.light(this.pointed ?? this.step);
      return;
    }
    const weights = weightsOf(map, map.name === this.chosen ? this.head : null);
    const top = topOf(weights);
    this.row?.buttons.forEach((button, step) => weights[step] && shade(button, (weights[step][place] ?? 0) / top));
  }

  // The map whose weights can be handed in: one that the decoder itself looks through.
  get editable() {
    const over = this.model.attention.over;
    const names = [this.chosen, this.looks.main, ...over];
    const name = names.find((one) => over.includes(one) && this.looks.maps[one] && !this.looks.maps[one].rows);
    return name ? this.looks.maps[name] : null;
  }

  lookAt(map, place, more) {
    if (!map || map !== this.editable) return;
    this.panel.lookAt(this.step, map.name, place, map.inputs.length, more);
  }

  drawStep() {
    const token = this.tokens[this.step];
    if (!token) {
      fill(this.detail);
      return;
    }
    const text = this.model.output.kind === "text";
    const map = this.editable;
    const bars = map && wheel({
      names: map.inputs,
      weights: map.weights[this.step],
      label: `weights of step ${this.step + 1}`,
      on: {
        change: (weights) => this.light(this.step, weights),
        done: (weights) => this.panel.look(this.step, map.name, weights),
      },
    });
    fill(this.detail,
      make("h3", {}, text ? `Step ${this.step + 1} · ` : "", bdi(visible(token.text))),
      runnersUp(token, { canChoose: text, choose: (symbol) => this.panel.choose(this.step, symbol) }),
      bars ? [make("h4", {}, "The wheel"), bars.element, make("p.quiet.hint", {}, "Drag a bar, or click a place in the input, and it goes on from there. Shift-click adds a place; arrow keys work too.")] : null,
      this.numbersOf(this.step));
  }

  numbersOf(step) {
    if (this.model.ensemble > 1) return null;
    const place = make("div", { role: "status" }, make("p.quiet", {}, "Working it out …"));
    return folded("The numbers behind it", () => {
      this.panel.explain(step).then((told) => fill(place, explanation(told.explanation)), (error) => fill(place, make("p.complaint", {}, error.message)));
      return place;
    }, { name: "numbers", opened: this.panel.opened });
  }

  rest() {
    return nBest(this.prediction, (text) => this.panel.follow(text));
  }
}
