// One result: the output, the inputs with the weights of the chosen step, the maps, other outputs of the beam.

import { changes, comparison } from "./comparison.js";
import { fill, make } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { looksOf, mapChooser, mapOver, weightsOf } from "./looks.js";
import { LOG_P, nBest, scoreMeans } from "./nbest.js";
import { plain, shade } from "./shading.js";
import { sheet } from "./sheet.js";
import { stepDetail } from "./step.js";
import { figure, logarithm, percent, visible } from "./symbols.js";
import { tokenRow } from "./tokens.js";
import { viewOf } from "./views/index.js";
import { heaviest, top as topOf } from "./weights.js";

export class Result {
  // first: the prediction without edits.
  constructor({ panel, prediction, edits, first, step }) {
    Object.assign(this, { panel, prediction, edits, first, step });
    this.model = panel.model;
    this.tokens = prediction.tokens ?? [];
    this.looks = looksOf(prediction, this.model);
    this.chosen = this.looks.main;
    this.head = null;
    this.pointed = null;
    this.onStep = { point: (at) => this.point(at), choose: (at) => this.select(at) };
    this.detail = make("section.step", { "aria-label": "the chosen step" });
    this.inputs = make("section.inputs", { "aria-label": "the input, as the model reads it" });
    this.map = make("section.map", { "aria-label": "all steps" });
    this.parts = make("div.parts", {}, this.inputs, this.detail, this.map);
    const others = nBest(prediction, this.model.search, (text) => panel.follow(text));
    this.element = make("div.seen", {}, this.drawOutput(), this.drawComparison(), this.parts, others);
    this.drawInputs();
    this.drawMap();
    this.select(step);
  }

  // ------------------------------------------------------------ the output

  drawOutput() {
    const { prediction } = this;
    if (!this.tokens.length) return make("section.said", {}, numericOutput(prediction));
    const marked = this.edited ? changes(this.first, prediction).added : [];
    const describe = (step) => this.describeLooks(step);
    this.row = tokenRow(this.tokens, { marked, selected: this.step, describe, on: this.onStep });
    return make("section.said", {},
      make("p.answer", { dir: "auto" }, (prediction.text ?? prediction.label) || "(nothing)"),
      this.measures(),
      this.row.element);
  }

  // Probability, score and log P of the whole output; a label has no score.
  measures() {
    const { prediction } = this;
    const measure = (name, value, title) => make("span.measure", { title, data: { measure: name } }, `${name} `, make("b", {}, value));
    return make("p.quiet.measures", {},
      measure("probability", percent(Math.exp(prediction.log_probability)), "of the whole output, given the input"),
      this.model.output.kind === "text" ? measure("score", logarithm(prediction.score), scoreMeans(this.model.search)) : null,
      measure("log P", logarithm(prediction.log_probability), LOG_P),
      prediction.given ? make("span.measure", {}, prediction.given) : null);
  }

  // Where a step looked, in words.
  describeLooks(step) {
    const map = this.looks.maps[this.looks.main];
    if (!map?.weights[step]) return "";
    const share = ({ weight, place }) => `${visible(map.inputs[place])} ${percent(weight)}`;
    return `looks at ${heaviest(map.weights[step]).map(share).join(", ")}`;
  }

  get edited() {
    return this.edits.list.length > 0;
  }

  drawComparison() {
    if (!this.edited || !this.tokens.length) return null;
    const places = (name) => (this.looks.maps[name] ?? this.looks.maps[this.looks.main])?.inputs ?? [];
    const { tokens } = this.model.output;
    return comparison({ before: this.first, after: this.prediction, edits: this.edits.list, tokens, places });
  }

  // ------------------------------------------------------------ inputs and maps

  drawInputs() {
    const shown = Object.entries(this.prediction.shown ?? {});
    this.views = shown.map(([name, record]) => {
      const map = mapOver(this.looks, name, this.chosen);
      const tokens = this.model.inputs.find((input) => input.name === name)?.tokens;
      const choose = (place, more) => this.lookAt(map, place, more);
      const on = {
        point: (place) => this.pointPlace(map, place),
        choose,
        stroke: (places, more) => this.light(this.step, places && this.painted(map, places, more)),
        paint: (places, more) => this.paint(map, places, more),
      };
      return { name, map, ...viewOf({ shown: record, map, looks: this.looks, tokens, on }) };
    });
    const title = (name) => make("h3", {}, "Input", shown.length > 1 ? ` · ${name}` : "");
    const boxes = this.views.map((view) =>
      make("div.view", { data: { input: view.name } }, title(view.name), view.element));
    fill(this.inputs, boxes, this.looks.reason ? make("p.quiet.reason", {}, this.looks.reason) : null);
  }

  drawMap() {
    const map = this.looks.maps[this.chosen];
    this.heat = null;
    const visibleAlready = map?.layout.kind === "sentences" && map.weights.length === 1; // beside the sentences
    if (!map || visibleAlready) {
      fill(this.map);
      return;
    }
    const weights = weightsOf(map, this.head);
    const rows = map.rows ?? this.looks.outputs;
    const on = map.rows ? { point() {}, choose() {} } : this.onStep;
    const shown = this.prediction.shown?.[map.input];
    const pictured = Boolean(shown?.picture) && !shown.axis && !map.rows && this.tokens.length > 0;
    this.heat = pictured ? sheet({ shown, map, weights, tokens: this.tokens, on }) : heatmap({ map, weights, rows, on });
    this.parts.classList.toggle("pictured", pictured);
    const title = make("h3", {}, pictured ? "Where each symbol looked" : "All steps");
    const chooser = mapChooser(this.looks, this.chosen, this.head, (name, head) => this.choose(name, head));
    fill(this.map, title, chooser, this.heat.element);
  }

  // Another map, or another head of it.
  choose(name, head) {
    this.chosen = name;
    this.head = head;
    this.drawInputs();
    this.drawMap();
    this.light(this.step);
  }

  // ------------------------------------------------------------ one step

  select(step) {
    const changed = step !== this.step || !this.detail.hasChildNodes();
    this.step = step;
    this.row?.select(step);
    this.light(step);
    if (changed) this.drawStep();
  }

  // Draw the step again after an edit that was refused.
  restore() {
    this.drawStep();
    this.light(this.step);
  }

  point(step) {
    this.pointed = step;
    this.light(step ?? this.step);
  }

  // changed: weights of the editable map that are being dragged, in place of its own.
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
    if (place === null) {
      this.light(this.pointed ?? this.step);
      return;
    }
    const weights = weightsOf(map, map.name === this.chosen ? this.head : null);
    const top = topOf(weights);
    this.row?.buttons.forEach((button, step) => weights[step] && shade(button, (weights[step][place] ?? 0) / top));
  }

  // The map whose weights can be edited: one of the decoder's own attention.
  get editable() {
    const { over } = this.model.attention;
    const canEdit = (name) => over.includes(name) && this.looks.maps[name] && !this.looks.maps[name].rows;
    return this.looks.maps[[this.chosen, this.looks.main, ...over].find(canEdit)] ?? null;
  }

  lookAt(map, place, more) {
    if (map !== this.editable || place >= map.inputs.length || !this.tokens.length) return;
    this.panel.lookAt(this.step, map.name, place, map.inputs.length, more);
  }

  // The weights after a stroke over a picture; null where they cannot be edited.
  painted(map, places, more) {
    const count = map.inputs.length;
    if (map !== this.editable || !this.tokens.length || places.some((place) => place >= count)) return null;
    return this.panel.stroke(this.step, map.name, places, count, more);
  }

  paint(map, places, more) {
    const weights = this.painted(map, places, more);
    if (weights) this.panel.look(this.step, map.name, weights);
  }

  drawStep() {
    const { step, editable: map } = this;
    const token = this.tokens[step];
    if (!token) return;
    const on = {
      choose: (symbol) => this.panel.choose(step, symbol),
      change: (weights) => this.light(step, weights),
      done: (weights) => this.panel.look(step, map.name, weights),
      explain: () => this.panel.explain(step),
    };
    const text = this.model.output.kind === "text";
    const explained = this.model.ensemble === 1;
    fill(this.detail, stepDetail({ token, step, text, map, explained, opened: this.panel.opened, on }));
  }
}

// An output of numbers: a picture, or a vector.
function numericOutput(prediction) {
  if (prediction.image) return make("img.made", { src: prediction.image, alt: "the picture that the model gives" });
  return make("p.numbers", { dir: "ltr" }, (prediction.vector ?? []).flat().map((number) => make("span", {}, figure(number))));
}
