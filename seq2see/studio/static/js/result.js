// One result: the output, the inputs with the weights of the chosen step, the maps, other outputs of the beam.

import { beamTree } from "./beam_tree.js";
import { changes, comparison } from "./comparison.js";
import { fill, folded, keepFocus, make } from "./dom.js";
import { heatmap } from "./heatmap.js";
import { learned } from "./learned.js";
import { looksOf, mapChooser, mapOver, weightsOf } from "./looks.js";
import { measures, nBest } from "./nbest.js";
import { plain, shade } from "./shading.js";
import { sheet } from "./sheet.js";
import { stepDetail } from "./step.js";
import { directionOf, figure, fraction, visible } from "./symbols.js";
import { tokenRow } from "./tokens.js";
import { viewOf } from "./views/index.js";
import { heaviest, top as topOf } from "./weights.js";

const STAYS = 300; // ms after which a pointer has come to rest

export class Result {
  // first: the prediction without edits.
  constructor({ panel, prediction, edits, first, step }) {
    Object.assign(this, { panel, prediction, edits, first, step });
    this.model = panel.model;
    this.tokens = prediction.tokens ?? [];
    this.looks = looksOf(prediction, this.model);
    this.chosen = this.looks.main;
    this.head = null;
    this.pointed = null; // a step under the pointer, which is shown in place of the chosen one
    this.drawn = null; // the step whose details are shown
    this.explanations = new Map();
    this.onStep = { point: (at) => this.point(at), choose: (at) => this.select(at) };
    this.detail = make("section.step", { "aria-label": "the chosen step" });
    this.inputs = make("section.inputs", { "aria-label": "the input, as the model reads it" });
    this.map = make("section.map", { "aria-label": "all steps" });
    this.parts = make("div.parts", {}, this.inputs, this.detail, this.map);
    const others = nBest(prediction, this.model.search, (text) => panel.follow(text));
    this.element = make("div.seen", {}, this.drawOutput(), this.drawComparison(), this.parts, others, this.drawTree(), this.drawLearned());
    this.drawInputs();
    this.drawMap();
    this.show();
  }

  // ------------------------------------------------------------ the output

  drawOutput() {
    const { prediction } = this;
    if (!this.tokens.length) return make("section.said", {}, numericOutput(prediction));
    const marked = this.edited ? changes(this.first, prediction).added : [];
    const describe = (step) => this.describeLooks(step);
    this.row = tokenRow(this.tokens, { marked, selected: this.step, describe, on: this.onStep });
    return make("section.said", { dir: directionOf(this.tokens.map((token) => token.text)) },
      make("p.answer", { dir: "auto" }, (prediction.text ?? prediction.label) || "(nothing)"),
      measures(prediction, this.model),
      this.row.element);
  }

  // Where a step looked, in words.
  describeLooks(step) {
    const map = this.looks.maps[this.looks.main];
    if (!map?.weights[step]) return "";
    const share = ({ weight, place }) => `${visible(map.inputs[place])} ${fraction(weight)}`;
    return `looks at ${heaviest(map.weights[step]).map(share).join(", ")}`;
  }

  get edited() {
    return this.edits.list.length > 0;
  }

  drawComparison() {
    if (!this.edited || !this.tokens.length) return null;
    const places = (name) => (this.looks.maps[name] ?? this.looks.maps[this.looks.main])?.inputs ?? [];
    return comparison({ before: this.first, after: this.prediction, edits: this.edits.list, model: this.model, places });
  }

  // ------------------------------------------------------------ the beam tree

  drawTree() {
    if (this.model.output.kind !== "text") return null;
    const { panel, edits } = this;
    const place = make("div");
    const show = (tree) => fill(place, beamTree({
      tree,
      kind: this.model.output.tokens,
      shown: this.tokens.map((token) => token.text),
      forced: Array.isArray(edits.prefix) ? edits.prefix.length : 0,
      avoided: edits.avoid,
      view: panel.treeView,
      on: { force: (path) => panel.force(path), avoid: (path) => panel.avoid(path), allow: (path) => panel.allow(path) },
    }));
    const build = () => {
      const reason = panel.treeless(edits);
      if (reason) return make("p.quiet", {}, reason);
      if (this.prediction.tree) show(this.prediction.tree);
      else {
        fill(place, make("p.quiet", {}, "Searching …"));
        panel.tree().then(show, (error) => fill(place, make("p.complaint", {}, error.message)));
      }
      return place;
    };
    return make("section.beam", { "aria-label": "the beam as a tree" },
      folded("The beam as a tree", build, { name: "tree", opened: panel.opened }));
  }

  // The training rows that are nearest; an ensemble has states of several models.
  drawLearned() {
    if (this.model.ensemble > 1) return null;
    this.learned = learned({
      index: this.model.index,
      reads: this.model.inputs.length > 0,
      steps: this.tokens.length > 0,
      edited: Object.keys(this.edits.oracle).length > 0,
      kind: this.model.output.tokens,
      nearest: (step) => this.panel.nearest(step),
      opened: this.panel.opened,
    });
    return this.learned.element;
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
      make("div.view", { data: { input: view.name }, dir: directionOf(view.map?.inputs ?? []) }, title(view.name), view.element));
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
    this.map.dir = pictured ? "ltr" : directionOf(map.inputs);
    fill(this.map, title, chooser, this.heat.element);
  }

  // Another map, or another head of it.
  choose(name, head) {
    this.chosen = name;
    this.head = head;
    this.drawInputs();
    this.drawMap();
    this.light(this.shown);
  }

  // ------------------------------------------------------------ one step

  // The step that the whole page shows.
  get shown() {
    return this.pointed ?? this.step;
  }

  show() {
    this.row?.select(this.shown);
    this.light(this.shown);
    if (this.drawn !== this.shown) this.drawStep();
    if (this.pointed === null && this.tokens[this.step]) this.learned?.show(this.step, this.tokens[this.step].text);
  }

  select(step) {
    if (step !== this.step) this.panel.on.step(this.panel, step);
    this.step = step;
    this.pointed = null;
    this.show();
  }

  // Draw the step again after an edit that was refused.
  restore() {
    this.drawStep();
    this.light(this.shown);
  }

  // While a step is pointed at all parts show it, and nothing changes its place.
  point(step) {
    if (step === this.pointed) return;
    if (this.pointed === null) this.detail.style.minHeight = `${this.detail.getBoundingClientRect().height}px`;
    this.pointed = step;
    this.show();
    if (step === null) this.detail.style.minHeight = "";
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

  // Pointing at a place shades the outputs by how much each looked there, and marks its column and its bar.
  pointPlace(map, place) {
    if (map.name === this.chosen) this.heat?.markPlace?.(place);
    if (map === this.editable) this.bars?.mark(place);
    if (place === null) {
      this.light(this.shown);
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

  // The numbers of a step; those of a pointed one only if the pointer stays.
  async explain(step) {
    if (!this.explanations.has(step)) {
      if (this.pointed !== null) await new Promise((resolve) => { setTimeout(resolve, STAYS); });
      if (this.shown !== step) return null;
      this.explanations.set(step, await this.panel.explain(step));
    }
    return this.explanations.get(step);
  }

  drawStep() {
    const { shown: step, editable: map } = this;
    const token = this.tokens[step];
    if (!token) return;
    this.drawn = step;
    const on = {
      choose: (symbol) => this.panel.choose(step, symbol),
      change: (weights) => this.light(step, weights),
      done: (weights) => this.panel.look(step, map.name, weights),
      explain: () => this.explain(step),
      point: (place) => this.pointPlace(map, place),
    };
    const text = this.model.output.kind === "text";
    const explained = this.model.explains ?? this.model.ensemble === 1;
    const { elements, editor } = stepDetail({ token, step, text, map, explained, opened: this.panel.opened, on });
    this.bars = editor;
    keepFocus(this.detail, () => fill(this.detail, elements));
  }
}

// An output of numbers: a picture, or a vector.
function numericOutput(prediction) {
  if (prediction.image) return make("img.made", { src: prediction.image, alt: "the picture that the model gives" });
  return make("p.numbers", { dir: "ltr" }, (prediction.vector ?? []).flat().map((number) => make("span", {}, figure(number))));
}
