// A document: sentences with the weight of each, their words shaded by the weight that each has in its sentence.

import { make } from "../dom.js";
import { plain, shade } from "../shading.js";
import { fraction, rightward, visible } from "../symbols.js";
import { top as topOf } from "../weights.js";
import { listen } from "./pointing.js";

export function documentView({ shown, map, looks, on }) {
  const wordMap = looks.maps[`${map?.input ?? ""}.words`];
  const byWord = Boolean(map) && map === wordMap;
  const counts = wordMap?.layout?.parts ?? shown.sentences.map((words) => words.length);
  const words = [];
  const badges = [];
  const element = make("ol.document", { dir: "auto" });
  counts.forEach((count, sentence) => {
    const badge = make("b.share", { dir: "ltr" }, "");
    badges.push(badge);
    const text = make("span.sentence");
    for (let at = 0; at < count; at++) {
      const symbol = shown.sentences[sentence]?.[at] ?? wordMap.inputs[words.length];
      const word = make("span.word", byWord ? { data: { place: words.length } } : {}, visible(symbol));
      words.push(word);
      text.append(word, " ");
    }
    element.append(make("li", map && !byWord ? { data: { place: sentence } } : {}, badge, text));
  });
  if (wordMap && !byWord) within(words, wordMap);
  if (map) listen(element, on);

  function show(weights, top) {
    const shaded = byWord ? words : badges;
    shaded.forEach((part, place) => {
      shade(part, weights[place] / top);
      part.title = rightward(`weight ${fraction(weights[place])}`);
      if (!byWord) part.textContent = fraction(weights[place]);
    });
    if (!byWord) return;
    sums(weights, counts).forEach((sum, at) => {
      badges[at].textContent = fraction(sum);
    });
  }
  return { element, light: show, clear: () => (byWord ? words : badges).forEach(plain) };
}

// The encoder's own look at the words of each sentence: row i of the map is sentence i.
function within(words, map) {
  const top = topOf(map.weights);
  let at = 0;
  map.layout.parts.forEach((count, sentence) => {
    for (const end = at + count; at < end; at++) {
      const weight = map.weights[sentence]?.[at] ?? 0;
      shade(words[at], (weight / top) * 0.8);
      words[at].title = rightward(`weight in its sentence ${fraction(weight)}`);
    }
  });
}

function sums(weights, counts) {
  let at = 0;
  return counts.map((count) => {
    const sum = weights.slice(at, at + count).reduce((a, b) => a + b, 0);
    at += count;
    return sum;
  });
}
