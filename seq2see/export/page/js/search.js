// Greedy search, beam search and sampling of one input, as in seq2see/search.
//
// A stepper is {begin(width), step(tokens, forced) -> {logProbs: one Float32Array for each hypothesis, looks: for each
// {name: {weights, heads, lower}}}, select(rows), limit, places}. A hypothesis is a chain of nodes {id, logProb, before, likeliest, looks}, its last.

import { EOS, PAD, SOS, UNK } from "./text.js";

const runnersUp = ({ runners_up: count = 5 }) => count;
const LEAST = -1e4; // symbols that a model finds impossible stay apart from forbidden ones
const OVERLOOKED = 1e-6;
const MOST_INSERTED = 200; // of a longer list, sorting is faster than insertion
const PAUSE = 40; // ms of work before the page may draw

// The `count` largest of a list, best first: {id, value}; of equal ones those with lower ids.
export function likeliest(values, count) {
  if (count > MOST_INSERTED) {
    const ids = Array.from(values, (_, id) => id).sort((a, b) => values[b] - values[a] || a - b);
    return ids.slice(0, count).map((id) => ({ id, value: values[id] }));
  }
  const best = [];
  for (let id = 0; id < values.length; id++) {
    const value = values[id];
    if (best.length === count && !(value > best[count - 1].value)) continue;
    if (best.length === count) best.pop();
    let at = best.length;
    while (at > 0 && best[at - 1].value < value) at--;
    best.splice(at, 0, { id, value });
  }
  return best;
}

const normalised = (total, length, options) => total / length ** options.length_penalty;

// The nodes of a hypothesis, from its first.
function pathOf(node) {
  const nodes = [];
  for (let at = node; at; at = at.before) nodes.unshift(at);
  return nodes;
}

// log P of each symbol behind a hypothesis, -Infinity where it is forbidden; avoid: beginnings that are not written.
function allowed(logProbs, step, node, { prefix = [], avoid = [], min_length: least = 0, avoid_unknown: known }) {
  const free = step < prefix.length ? logProbs.map((value, id) => (id === prefix[step] ? value : -Infinity)) : logProbs.slice();
  if (step >= prefix.length) {
    for (const id of [PAD, SOS, ...(known ? [UNK] : []), ...(step < least ? [EOS] : [])]) free[id] = -Infinity;
  }
  const short = avoid.filter((path) => path.length === step + 1);
  const ids = short.length ? pathOf(node).map(({ id }) => id) : [];
  for (const path of short) if (ids.every((id, at) => id === path[at])) free[path[step]] = -Infinity;
  return free;
}

async function stepped(stepper, tokens, forced, clock) {
  if (performance.now() - clock.since > PAUSE) {
    await new Promise((resolve) => { setTimeout(resolve); });
    clock.since = performance.now();
    clock.signal?.throwIfAborted();
  }
  const { logProbs, looks } = stepper.step(tokens, forced);
  if (logProbs.some((row) => Number.isNaN(row[0]))) throw new Error("the model's probabilities are not numbers");
  for (const row of logProbs) for (let id = 0; id < row.length; id++) row[id] = Math.max(row[id], LEAST);
  return { logProbs, looks };
}

// Every continuation is avoided.
export class NothingLeft extends Error {}

// choose(free, step): the symbol; by default the likeliest.
async function searchGreedily(stepper, options, clock, choose = (free) => likeliest(free, 1)[0].id) {
  stepper.begin(1);
  let node = null;
  let token = SOS;
  for (let step = 0; step < options.max_length; step++) {
    const { logProbs: [logProbs], looks: [looks] } = await stepped(stepper, [token], options.oracle?.[step], clock);
    const free = allowed(logProbs, step, node, options);
    if (free.every((value) => value === -Infinity)) throw new NothingLeft();
    token = choose(free, step);
    node = { id: token, logProb: logProbs[token], before: node, likeliest: likeliest(logProbs, runnersUp(options)), looks };
    if (token === EOS) break;
  }
  return [{ node, finished: token === EOS }];
}

// At each step the best `beam` hypotheses continue; of 2 * beam candidates those that end compete by score.
async function beamSearch(stepper, options, clock) {
  const width = options.beam;
  const kept = options.consensus > 0 ? width : options.n_best;
  let slots = Array.from({ length: width }, (_, slot) => ({ node: null, total: slot ? -Infinity : 0, covered: {}, number: -1 }));
  let tokens = slots.map(() => SOS);
  let ended = 0;
  const done = [];
  const cut = [];
  const tree = options.tree ? new Tree() : null;
  stepper.begin(width);
  for (let step = 0; step < options.max_length; step++) {
    const { logProbs, looks } = await stepped(stepper, tokens, options.oracle?.[step], clock);
    const runners = logProbs.map((row) => likeliest(row, runnersUp(options)));
    const covered = slots.map((slot, at) => (options.coverage_penalty ? sums(slot.covered, looks[at]) : {}));
    const candidates = slots.flatMap(({ total }, slot) =>
      likeliest(allowed(logProbs[slot], step, slots[slot].node, options), 2 * width).map(({ id, value }) => ({ slot, id, total: Math.fround(total + value) })));
    candidates.sort((a, b) => b.total - a.total || a.slot - b.slot || a.id - b.id);
    const best = candidates.slice(0, 2 * width).map(({ slot, id, total }) => ({
      slot,
      total,
      node: { id, logProb: logProbs[slot][id], before: slots[slot].node, likeliest: runners[slot], looks: looks[slot] },
      covered: covered[slot],
      score: Math.fround(normalised(total, step + 1, options)) + penalty(covered[slot], options),
    }));
    const ends = best.slice(0, width).filter(({ node, total }) => node.id === EOS && total > -Infinity);
    ended += ends.length;
    keep(done, ends, kept);
    if (step === options.max_length - 1) keep(cut, best.filter(({ node }) => node.id !== EOS), kept);
    const before = slots;
    slots = [...best.filter(({ node }) => node.id !== EOS), ...best.filter(({ node }) => node.id === EOS)].slice(0, width);
    tree?.add(best, before, slots);
    if (isOver({ live: slots[0].total, done, ended, length: step + 1, kept }, options)) break;
    stepper.select(slots.map(({ slot }) => slot));
    tokens = slots.map(({ node }) => node.id);
  }
  if (!done.length && !cut.length) throw new NothingLeft();
  tree?.end(slots);
  return [...done.map(({ node }) => ({ node, finished: true, tree })), ...cut.map(({ node }) => ({ node, finished: false, tree }))];
}

// Every continuation that a beam considered, and what became of it: kept, pruned, finished or stopped with the search.
const MOST_NODES = 4096; // as tree.py

class Tree {
  constructor() {
    this.nodes = []; // {node, parent, state}
    this.leftOut = 0;
  }

  // best: the candidates of a step, which get their numbers; before, after: the hypotheses around it.
  add(best, before, after) {
    const possible = best.filter(({ total }) => total > -Infinity);
    if (this.leftOut || this.nodes.length + possible.length > MOST_NODES) {
      this.leftOut += possible.length;
      return;
    }
    for (const each of possible) {
      const ends = each.node.id === EOS;
      const kept = ends ? best.indexOf(each) < before.length && "finished" : after.includes(each) && "kept";
      each.number = this.nodes.length;
      this.nodes.push({ node: each.node, parent: before[each.slot].number, state: kept || "pruned" });
    }
  }

  end(slots) {
    for (const { number } of slots) if (this.nodes[number]?.state === "kept") this.nodes[number].state = "stopped";
  }
}

function keep(list, ended, most) {
  list.push(...ended.filter(({ score }) => score > -Infinity));
  list.sort((a, b) => b.score - a.score);
  list.length = Math.min(list.length, most);
}

// Whether no live hypothesis can change the list any more, or enough outputs have ended and it is behind them.
function isOver({ live, done, ended, length, kept }, options) {
  const worst = done.length < kept ? -Infinity : done[kept - 1].score;
  const first = done[0]?.score ?? -Infinity;
  const hopeless = worst >= normalised(live, options.max_length, options);
  const behind = first >= normalised(live, length, options);
  return hopeless || (behind && ended >= width(options)) || live === -Infinity;
}
const width = ({ beam, patience }) => beam * (patience ?? 1);

// ------------------------------------------------------------ coverage and consensus

// The sums of the looks so far, without those of lower layers.
function sums(before, looks) {
  const own = Object.entries(looks).filter(([, { lower }]) => !lower);
  return Object.fromEntries(own.map(([name, { weights }]) =>
    [name, weights.map((weight, place) => weight + (before[name]?.[place] ?? 0))]));
}

// beta sum_j log(min(sum_t a_tj, 1))
function penalty(covered, { coverage_penalty: beta }) {
  if (!beta) return 0;
  let total = 0;
  for (const row of Object.values(covered)) {
    for (const sum of row) total += Math.log(Math.min(1, Math.max(OVERLOOKED, sum)));
  }
  return beta * total;
}

const LONGEST = 4; // symbols of a phrase

function phrasesOf(ids) {
  return Array.from({ length: LONGEST }, (_, at) => {
    const counts = new Map();
    for (let start = 0; start + at < ids.length; start++) {
      const phrase = ids.slice(start, start + at + 1).join(" ");
      counts.set(phrase, (counts.get(phrase) ?? 0) + 1);
    }
    return counts;
  });
}

// The mean over lengths of the F1 of common phrases.
function similarity(first, second) {
  const count = (phrases) => [...phrases.values()].reduce((a, b) => a + b, 0);
  const shares = first.flatMap((mine, at) => {
    const both = count(mine) + count(second[at]);
    const common = [...mine].reduce((sum, [phrase, n]) => sum + Math.min(n, second[at].get(phrase) ?? 0), 0);
    return both ? [(2 * common) / both] : [];
  });
  return shares.length ? shares.reduce((a, b) => a + b, 0) / shares.length : 1;
}

// The output most like all the others first, weighted by P ** (1 / temperature).
function byAgreement(outputs, temperature) {
  const phrases = outputs.map(({ nodes }) => phrasesOf(nodes.map(({ id }) => id)));
  const top = Math.max(...outputs.map((output) => output.logProbability));
  const shares = outputs.map((output) => Math.exp((output.logProbability - top) / temperature));
  const agreement = new Map(outputs.map((output, at) =>
    [output, shares.reduce((sum, share, other) => sum + share * similarity(phrases[at], phrases[other]), 0)]));
  return [...outputs].sort((a, b) =>
    Number(b.finished) - Number(a.finished) || agreement.get(b) - agreement.get(a) || b.score - a.score);
}

// ------------------------------------------------------------ sampling

// Random numbers from 0 to 1 that a seed fixes (mulberry32).
function randomNumbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function drawer({ seed = 0, temperature = 1, top_k: most = 0, top_p: share = 1 }, sample) {
  const random = randomNumbers(Math.imul(seed + 1, 0x9e3779b1) + sample);
  return (free) => {
    const ranked = likeliest(Array.from(free, (value) => value / temperature), most > 0 ? most : free.length)
      .filter(({ value }) => value > -Infinity);
    const sizes = ranked.map(({ value }) => Math.exp(value - ranked[0].value));
    const total = sizes.reduce((a, b) => a + b, 0);
    let sum = 0;
    const inside = sizes.findIndex((size) => { sum += size / total; return sum >= share; });
    const kept = inside < 0 ? sizes : sizes.slice(0, inside + 1);
    let left = random() * kept.reduce((a, b) => a + b, 0);
    const at = kept.findIndex((size) => { left -= size; return left < 0; });
    return ranked[at < 0 ? kept.length - 1 : at].id;
  };
}

// ------------------------------------------------------------ outputs

// The outputs of an input, best first: {nodes, logProbability, score, finished}. signal: ends the search.
export async function search(stepper, options, signal = null) {
  const clock = { since: performance.now(), signal };
  const hypotheses = [];
  if (options.sample) {
    for (let sample = 0; sample < options.n_best; sample++) {
      hypotheses.push(...await searchGreedily(stepper, options, clock, drawer(options, sample)));
    }
  } else hypotheses.push(...await (options.beam > 1 ? beamSearch : searchGreedily)(stepper, options, clock));
  const outputs = hypotheses.map(({ node, finished, tree }) => {
    const nodes = pathOf(node);
    const logProbability = nodes.reduce((sum, { logProb }) => sum + logProb, 0);
    const covered = options.coverage_penalty ? nodes.reduce((before, { looks }) => sums(before, looks), {}) : {};
    const score = normalised(logProbability, nodes.length, options) + penalty(covered, options);
    return { nodes, logProbability, score, finished, tree };
  });
  outputs.sort((a, b) => Number(b.finished) - Number(a.finished) || b.score - a.score);
  const ranked = options.consensus > 0 && options.beam > 1 ? byAgreement(outputs, options.consensus) : outputs;
  return ranked.slice(0, options.n_best);
}

// The likeliest labels of an input, as outputs of one symbol.
export function rankLabels(stepper, options) {
  stepper.begin(1);
  const { logProbs: [logProbs], looks: [looks] } = stepper.step([SOS], options.oracle?.[0]);
  const runners = likeliest(logProbs, runnersUp(options));
  return likeliest(logProbs, options.n_best ?? 1).map(({ id, value }) => ({
    nodes: [{ id, logProb: value, before: null, likeliest: runners, looks }],
    logProbability: value,
    score: value,
    finished: true,
  }));
}
