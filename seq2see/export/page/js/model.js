// The model in the page: what it reads, computes, searches and says. It answers as the server does (docs/serving.md).

import { constantReader, decodeBase64, Graph } from "./graph.js";
import { NothingLeft, rankLabels, search } from "./search.js";
import { EOS, makeColumn, UNK } from "./text.js";
import { sizeOf } from "./tensors.js";

const END = "<eos>";

// Options that are numbers, with the limits of the server (studio/schemas.py): [least, most, whole numbers only].
const NUMBERS = {
  beam: [1, 64, true],
  n_best: [1, 64, true],
  length_penalty: [0, 10],
  coverage_penalty: [0, 1000],
  consensus: [0, 100],
  patience: [1, 1e6],
  max_length: [1, 2000, true],
  min_length: [0, 2000, true],
  temperature: [0.001, 1000],
  top_k: [0, 1e6, true],
  top_p: [1e-9, 1],
  seed: [0, 9007199254740991, true],
  runners_up: [0, 50, true],
};
const SWITCHES = ["sample", "avoid_unknown", "replace_unknown", "tree"];
const OTHERS = ["prefix", "target", "avoid_prefixes", "oracle"];
const DRAWING = { temperature: 1, top_k: 0, top_p: 1 }; // without effect where nothing is drawn
const TOLERANCE = 1e-3; // of the sum of weights

// An error that is the person's to mend, and is shown as it stands.
export class InputError extends Error {}

const mean = (rows) => rows[0].map((_, place) => rows.reduce((sum, row) => sum + row[place], 0) / rows.length);
const real = (row, mask) => Array.from(row).filter((_, place) => mask[place]);
const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export class Model {
  // known: what graph.py and __init__.py write; weights: base64.
  constructor(known, weights) {
    this.known = known;
    const read = constantReader(decodeBase64(weights));
    this.encoder = new Graph(known.graphs.encoder, read);
    this.step = new Graph(known.graphs.step, read);
    this.columns = new Map(known.columns.map(([name, settings]) => [name, makeColumn(settings)]));
    this.output = known.one_step ? null : makeColumn(known.output);
    this.symbols = known.output.symbols;
  }

  // ------------------------------------------------------------ reading

  // What is read of each input, by name.
  read(values) {
    for (const name of Object.keys(values)) {
      if (!this.columns.has(name)) throw new InputError(`${name}: not an input; allowed: ${[...this.columns.keys()].join(", ")}.`);
      if (typeof (values[name] ?? "") !== "string") throw new InputError(`${name}: a text is expected.`);
    }
    const missing = this.known.required.filter((name) => !(values[name] ?? "").trim());
    if (missing.length) {
      throw new InputError(this.columns.size === 1 ? "The input is empty." : `Empty input: ${missing.join(", ")}.`);
    }
    return new Map([...this.columns].map(([name, column]) => [name, column.read(String(values[name] ?? ""))]));
  }

  // What the person should know of the input: symbols that the model has never seen, and what was cut off.
  notices(inputs) {
    return [...inputs].flatMap(([name, { symbols, rows, cut }]) => {
      const ids = rows.flat();
      const unknown = [...new Set(symbols.filter((_, at) => ids[at] === UNK))];
      const of = this.columns.size > 1 ? ` in ${name}` : "";
      const copied = this.known.copied?.input === name;
      return [
        ...(unknown.length && !copied ? [`Unknown to the model${of}: ${unknown.slice(0, 5).map((symbol) => `'${symbol}'`).join(", ")}${unknown.length > 5 ? ", …" : ""}`] : []),
        ...(cut ? [`The input${of} is too long: ${counted(cut, "symbol")} at its ${this.known.columns.find(([own]) => own === name)[1].keep === "last" ? "beginning" : "end"} ${cut === 1 ? "is" : "are"} not read`] : []),
      ];
    });
  }

  // The tensors of the inputs, and the words that can be copied from one of them and have no id.
  feed(inputs) {
    const feed = { rows: { data: new Int32Array(1), shape: [1] } };
    let further = [];
    for (const [name, { rows, shape, symbols }] of inputs) {
      const ids = new Int32Array(sizeOf(shape));
      const mask = new Uint8Array(ids.length);
      const wide = shape[shape.length - 1];
      rows.forEach((row, at) => row.forEach((id, place) => {
        ids[at * wide + place] = id;
        mask[at * wide + place] = 1;
      }));
      feed[`${name}/ids`] = { data: ids, shape };
      feed[`${name}/mask`] = { data: mask, shape };
      if (this.known.copied?.input !== name) continue;
      const own = this.copyIds(symbols);
      further = own.further;
      const copyable = new Int32Array(ids.length);
      copyable.set(own.ids);
      feed[`${name}/copyable/ids`] = { data: copyable, shape: [1, ids.length] };
    }
    return { feed, further };
  }

  // Words that the output's vocabulary does not have are numbered from its end on.
  copyIds(symbols) {
    const further = new Map();
    const ids = symbols.map((symbol) => {
      const word = this.output.normalise(symbol);
      const known = this.output.ids.get(word);
      if (known !== undefined) return known;
      if (!further.has(word)) further.set(word, this.symbols.length + further.size);
      return further.get(word);
    });
    return { ids, further: [...further.keys()] };
  }

  // ------------------------------------------------------------ answering

  // options: beam, n_best, sample, .., prefix and target (texts, or lists of symbols), oracle {step: {name: weights}}.
  async predict(values, options = {}, signal = null) {
    const inputs = this.read(values);
    const { feed, further } = this.feed(inputs);
    const stepper = new Stepper(this, feed, inputs, further);
    const chosen = this.options(options, further, stepper);
    const outputs = this.known.one_step ? rankLabels(stepper, chosen) : await this.search(stepper, chosen, signal);
    const [{ answer, ...best }, ...others] = outputs.map((output) => this.describe(output, stepper, options));
    const shown = Object.fromEntries([...inputs].map(([name, { symbols, sentences }]) =>
      [name, { text: String(values[name] ?? ""), ...(sentences ? { sentences } : { symbols }) }]));
    const late = Object.keys(options.oracle ?? {}).filter((step) => outputs.every(({ nodes }) => nodes.length <= step));
    const unreached = late.map((step) => `Step ${Number(step) + 1} is not reached: the output has ${counted(best.tokens.length, "symbol")}`);
    const alternatives = others.map(({ answer: text, score, log_probability: total }) => ({ text, score, log_probability: total }));
    const prediction = { [this.known.one_step ? "label" : "text"]: answer, ...best, alternatives, shown };
    if (outputs[0].tree) prediction.tree = this.tree(outputs, stepper);
    if (this.known.given) prediction.given = this.known.given;
    return { predictions: [prediction], notices: [...this.notices(inputs), ...unreached] };
  }

  // The model's own settings with those of the request, checked.
  options(request, further, stepper) {
    const changes = checkedOptions(request);
    const own = { ...this.known.search, ...changes };
    if (own.sample && changes.beam > 1) throw new InputError("sample has no beam: leave beam at 1.");
    if (own.sample) own.beam = 1;
    else if (changes.beam === undefined) own.beam = Math.max(own.beam ?? 1, changes.n_best ?? 1);
    own.n_best = changes.n_best ?? (own.sample || this.known.one_step ? 1 : own.beam);
    own.oracle = this.oracle(changes.oracle ?? {}, stepper);
    if (this.known.one_step) return own;
    if (!own.sample && own.n_best > own.beam) throw new InputError(`n_best ${own.n_best} needs a beam at least as wide; beam is ${own.beam}.`);
    const shaping = Object.keys(DRAWING).filter((name) => !own.sample && (changes[name] ?? DRAWING[name]) !== DRAWING[name]);
    if (shaping.length) throw new InputError(`${shaping.join(", ")}: no effect without sample.`);
    if (own.min_length > own.max_length) throw new InputError(`min_length ${own.min_length} is more than max_length ${own.max_length}.`);
    const ids = (text) => this.ids(text, further);
    if (changes.target !== undefined) {
      const target = ids(changes.target).filter((id) => id !== EOS);
      const { length_penalty: penalty = 1, runners_up, oracle } = own;
      return { length_penalty: penalty, runners_up, oracle, beam: 1, n_best: 1, prefix: [...target, EOS], max_length: target.length + 1 };
    }
    own.tree = Boolean(own.tree) && own.beam > 1;
    own.avoid = (changes.avoid_prefixes ?? []).map(ids);
    own.prefix = ids(changes.prefix ?? []);
    if (own.prefix.length > own.max_length) throw new InputError(`The beginning has ${own.prefix.length} symbols; the output has at most ${own.max_length}.`);
    return own;
  }

  async search(stepper, options, signal) {
    try {
      return await search(stepper, options, signal);
    } catch (error) {
      throw error instanceof NothingLeft ? new InputError("Nothing is left to write: prune less, or use a wider beam.") : error;
    }
  }

  // The ids of a beginning: a text, or symbols.
  ids(text, further) {
    const symbols = Array.isArray(text) ? text : this.output.whole(text);
    const beyond = new Map(further.map((word, at) => [word, this.symbols.length + at]));
    return symbols.map((symbol) => (symbol === END ? EOS : this.output.ids.get(symbol) ?? beyond.get(symbol) ?? UNK));
  }

  // {step: {name: weights}} as it came, once its names, lengths and sums are right.
  oracle(steps, stepper) {
    if (typeof steps !== "object" || !Object.keys(steps).every((step) => /^\d+$/.test(step))) throw new InputError("oracle: {step: weights} expected, steps counted from 0.");
    for (const [step, maps] of Object.entries(steps)) {
      for (const [name, weights] of Object.entries(maps ?? {})) {
        const count = stepper.places.get(name)?.names.length;
        if (count === undefined) throw new InputError(`'${name}' is not looked at.`);
        if (!Array.isArray(weights) || weights.length !== count) throw new InputError(`${counted(weights?.length ?? 0, "weight")} for ${counted(count, "place")}.`);
        if (!weights.every((weight) => Number.isFinite(weight) && weight >= 0)) throw new InputError(`Step ${step}: weights are numbers of at least 0.`);
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        if (Math.abs(total - 1) > TOLERANCE) throw new InputError(`Step ${step}: the weights must sum to 1, got ${Number(total.toPrecision(4))}.`);
      }
    }
    return steps;
  }

  // ------------------------------------------------------------ describing

  nameOf(id, further) {
    return this.symbols[id] ?? further[id - this.symbols.length] ?? "<unk>";
  }

  describe({ nodes, logProbability, score }, stepper, options) {
    const name = (id) => this.nameOf(id, stepper.further);
    const outputs = nodes.map(({ id }) => name(id));
    const looks = this.looks(nodes, stepper, outputs);
    const main = looks.maps?.[this.known.looked_at[0]];
    if ((options.replace_unknown ?? this.known.replace_unknown) && main) {
      nodes.forEach(({ id }, step) => {
        const row = main.weights[step];
        if (id === UNK && row.length) outputs[step] = main.inputs[row.indexOf(Math.max(...row))];
      });
    }
    const text = this.known.one_step ? outputs[0] : this.output.join(outputs.filter((_, step) => nodes[step].id !== EOS));
    return {
      answer: text,
      log_probability: logProbability,
      score,
      tokens: nodes.map((node, step) => ({
        text: outputs[step],
        probability: Math.exp(node.logProb),
        runners_up: node.likeliest.map(({ id, value }) => ({ text: name(id), probability: Math.exp(value) })),
      })),
      looks,
    };
  }

  // The tree of a beam search, as the server tells it; output: the rank of the output that ends at a node.
  tree(outputs, stepper) {
    const { nodes, leftOut } = outputs[0].tree;
    const ranks = new Map(outputs.map(({ nodes: path }, rank) => [path.at(-1), rank]));
    const records = [];
    for (const { node, parent, state } of nodes) {
      const total = node.logProb + (parent < 0 ? 0 : records[parent].log_probability);
      const record = { text: this.nameOf(node.id, stepper.further), parent, probability: Math.exp(node.logProb), log_probability: total, state };
      records.push(ranks.has(node) ? { ...record, output: ranks.get(node) } : record);
    }
    return { nodes: records, left_out: leftOut };
  }

  // All maps of an output: {inputs, weights (steps, places), layout, heads?, chosen?, rows?} by name.
  looks(nodes, stepper, outputs) {
    const maps = {};
    for (const [name, { names, layout }] of stepper.places) {
      const rows = nodes.map(({ looks }) => looks[name].weights);
      const heads = nodes[0].looks[name].heads;
      maps[name] = { inputs: names, weights: rows, layout };
      if (heads) maps[name].heads = heads.map((_, head) => nodes.map(({ looks }) => looks[name].heads[head]));
      if (this.known.hard && !heads && names.length) maps[name].chosen = rows.map((row) => row.indexOf(Math.max(...row)));
    }
    for (const [name, map] of stepper.inner) maps[maps[name] ? `${name} (encoder)` : name] = map;
    const main = maps[this.known.looked_at[0]] ?? Object.values(maps)[0];
    if (!main) return { inputs: [], outputs, weights: [], layout: {}, reason: this.known.why_no_looks };
    return { inputs: main.inputs, outputs, weights: main.weights, layout: main.layout, maps };
  }
}

// The options of a request that are set; an unknown name, or a value that is not allowed, is an InputError.
function checkedOptions(request) {
  const set = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined && value !== null));
  const text = (value) => typeof value === "string" || (Array.isArray(value) && value.every((symbol) => typeof symbol === "string"));
  for (const [name, value] of Object.entries(set)) {
    if (name in NUMBERS) {
      const [least, most, whole] = NUMBERS[name];
      const allowed = typeof value === "number" && value >= least && value <= most && (!whole || Number.isInteger(value));
      if (!allowed) throw new InputError(`${name}: a ${whole ? "whole " : ""}number from ${least} to ${most}.`);
    } else if (SWITCHES.includes(name)) {
      if (typeof value !== "boolean") throw new InputError(`${name}: true or false.`);
    } else if (!OTHERS.includes(name)) {
      throw new InputError(`${name}: not an option; allowed: ${[...Object.keys(NUMBERS), ...SWITCHES, ...OTHERS].join(", ")}.`);
    }
  }
  for (const name of ["prefix", "target"]) if (name in set && !text(set[name])) throw new InputError(`${name}: a text, or a list of symbols.`);
  const { avoid_prefixes: avoided = [] } = set;
  if (!Array.isArray(avoided) || !avoided.every(text)) throw new InputError("avoid_prefixes: a list of texts, or of lists of symbols.");
  return set;
}

// The hypotheses of one input in the graphs of a model: see search.js.
class Stepper {
  constructor(model, feed, inputs, further) {
    this.model = model;
    this.further = further;
    this.limit = model.symbols.length + further.length;
    this.encoded = model.encoder.run(feed);
    const names = Object.keys(this.encoded);
    this.first = names.filter((name) => name.startsWith("state/"));
    this.places = new Map(Object.entries(model.known.layouts).map(([name, layout]) => [name, this.placesOf(name, layout, inputs)]));
    this.inner = new Map(Object.entries(model.known.maps).map(([name, layout]) => [name, this.encoderLook(name, layout, inputs)]));
  }

  placesOf(name, layout, inputs) {
    const [own, lower] = name.split(".layer-");
    const mask = this.encoded[`looks/${name}/mask`].data;
    const parent = this.encoded[`looks/${name}/parent`]?.data;
    return { mask, lower: lower !== undefined, names: namesOf(own, inputs, mask), layout: layoutOf(layout, mask, parent) };
  }

  // The encoder's own attention, such as words within sentences.
  encoderLook(name, layout, inputs) {
    const part = (own) => this.encoded[`map/${name}/${own}`];
    const [asking, over, weights] = [part("rows").data, part("places").data, part("weights")];
    const [rows, places] = weights.shape.slice(-2);
    const block = (head) => Array.from({ length: rows }, (_, row) => real(weights.data.subarray((head * rows + row) * places, (head * rows + row + 1) * places), over)).filter((_, row) => asking[row]);
    const heads = weights.shape.length > 3 ? Array.from({ length: weights.shape[1] }, (_, head) => block(head)) : null;
    const at = name.lastIndexOf(".");
    const numbered = (count) => Array.from({ length: count }, (_, place) => String(place + 1));
    const columns = namesOf(name, inputs, over, null) ?? namesOf(name.slice(at + 1), inputs, over, null);
    const queries = at < 0 ? null : namesOf(name.slice(0, at), inputs, asking, null);
    const shown = heads ? heads[0].map((_, row) => mean(heads.map((each) => each[row]))) : block(0);
    return {
      inputs: columns ?? numbered(shown[0]?.length ?? 0),
      rows: queries ?? numbered(shown.length),
      weights: shown,
      layout: layoutOf(layout, over, part("parent")?.data),
      ...(heads ? { heads } : {}),
    };
  }

  begin(width) {
    this.width = width;
    this.position = 0;
    this.state = Object.fromEntries(this.first.map((name) => {
      const { data, shape } = this.encoded[name];
      const wide = new data.constructor(data.length * width);
      for (let row = 0; row < width; row++) wide.set(data, row * data.length);
      return [name, { data: wide, shape: [1, width, ...shape.slice(1)] }];
    }));
  }

  step(tokens, forced = {}) {
    const feed = { ...this.encoded, ...this.state };
    feed.token = { data: Int32Array.from(tokens), shape: [1, this.width] };
    feed.position = { data: Int32Array.of(this.position), shape: [] };
    for (const [name, { mask, lower }] of this.places) {
      if (!lower) feed[`forced/${name}`] = this.forced(forced[name], mask);
    }
    const made = this.model.step.run(feed);
    this.position += 1;
    for (const name of this.first) this.state[name] = made[`next/${name}`];
    const { data, shape: [rows, symbols] } = made.log_probs;
    const logProbs = Array.from({ length: rows }, (_, row) => data.slice(row * symbols, row * symbols + Math.min(symbols, this.limit)));
    const looks = Array.from({ length: rows }, (_, row) =>
      Object.fromEntries([...this.places].map(([name, { mask, lower }]) =>
        [name, { lower, ...look(made[`next/weights/${name}`], row, mask) }])));
    return { logProbs, looks };
  }

  // Weights of the person for every hypothesis; NaN: the model's own.
  forced(weights, mask) {
    const row = new Float32Array(mask.length).fill(NaN);
    if (weights) {
      const rest = weights.values();
      mask.forEach((there, place) => { row[place] = there ? rest.next().value : 0; });
    }
    const data = new Float32Array(this.width * row.length);
    for (let at = 0; at < this.width; at++) data.set(row, at * row.length);
    return { data, shape: [1, this.width, row.length] };
  }

  select(rows) {
    if (rows.every((row, at) => row === at)) return;
    for (const name of this.first) {
      const { data, shape } = this.state[name];
      const length = sizeOf(shape.slice(2));
      const chosen = new data.constructor(data.length);
      rows.forEach((row, at) => chosen.set(data.subarray(row * length, (row + 1) * length), at * length));
      this.state[name] = { data: chosen, shape };
    }
  }
}

// The weights of one hypothesis over the real places: those of each head, and their mean.
function look({ data, shape }, row, mask) {
  const places = shape[shape.length - 1];
  const line = (at) => real(data.subarray(at * places, (at + 1) * places), mask);
  if (shape.length === 2) return { weights: line(row), heads: null };
  const heads = Array.from({ length: shape[1] }, (_, head) => line(row * shape[1] + head));
  return { weights: mean(heads), heads };
}

// The names of the real places of an input, or of its words.
function namesOf(name, inputs, mask, otherwise = undefined) {
  const [own, part] = name.split(".");
  const input = inputs.get(own);
  if (!input || (part && !(part === "words" && input.sentences))) {
    return otherwise === undefined ? real(mask.map((_, place) => place + 1), mask).map(String) : otherwise;
  }
  if (part || !input.sentences) return input.symbols;
  return input.texts;
}

// How the real places lie; parts: how many of them each larger place has.
function layoutOf({ kind, leftward }, mask, parent) {
  const count = mask.reduce((sum, there) => sum + there, 0);
  const layout = { kind, shape: [count], ...(leftward ? { direction: "right-to-left" } : {}) };
  if (!parent) return layout;
  const parts = [];
  mask.forEach((there, place) => { if (there) parts[parent[place]] = (parts[parent[place]] ?? 0) + 1; });
  return { ...layout, parts: Array.from(parts, (sum) => sum ?? 0) };
}
