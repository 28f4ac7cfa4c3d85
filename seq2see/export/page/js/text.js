// Text to symbols and back: what seq2see/data/tokens.py does.

import { isSpace, SPACE_CLASS, strip, words } from "./characters.js";
import { MARKS, shortened, splitTexts } from "./sentences.js";

// ------------------------------------------------------------ words

const UNSPACED = "\\u3041-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}"; // each character is a word
const JOINER = "\\u200d";
const MARK = `\\p{M}\\u200c${JOINER}\\u{1f3fb}-\\u{1f3ff}`; // combining marks, joiners, skin tones
const WORDLIKE = "\\p{L}\\p{N}_";

// An acronym (U.S.), a word (don't, well-known, 3.5) or a run of one sign (...), with its combining marks.
const SYMBOL = (() => {
  const acronym = "(?:[\\p{L}\\p{Nl}\\p{No}]\\.){2,}";
  const inside = "(?:['’\\-‑]|(?<=\\p{Nd})[.,:](?=\\p{Nd}))";
  const letter = `(?:(?![${UNSPACED}])[${WORDLIKE}${MARK}])`;
  const sign = `([^${WORDLIKE}${SPACE_CLASS}])\\1*`;
  const marked = `(?:[${MARK}]+(?:(?<=${JOINER})[^${WORDLIKE}${SPACE_CLASS}])?)*`;
  return new RegExp(`${acronym}|${letter}+(?:${inside}${letter}+)*|[${UNSPACED}][${MARK}]*|${sign}${marked}`, "gu");
})();
const FIRST_UNSPACED = new RegExp(`^[${UNSPACED}]`, "u");
const NO_SPACE_BEFORE = new Set(".,;:!?%…‰°·؟،؛।॥։፡።၊။៖");
const NO_SPACE_AFTER = new Set("¿¡$£#@");
const NO_SPACE = new Set("/\\\n");
const QUOTES = new Set("\"'");
const CJK_PUNCTUATION = new Set("、。・「」『』（）！？，：；");

export const splitWords = (text) => words(text).flatMap((part) => part.match(SYMBOL) ?? []);

// With spaces between words, without one before closing and after opening punctuation.
export function joinWords(symbols) {
  const open = new Set();
  let text = "";
  let attached = true;
  let before = "";
  for (const symbol of symbols) {
    const [back, on] = attachment(symbol, open);
    if (!attached && !back && !(FIRST_UNSPACED.test(before) && FIRST_UNSPACED.test(symbol))) text += " ";
    text += symbol;
    attached = on;
    before = symbol;
  }
  return text;
}

// Whether a symbol attaches to the one before it, and to the one after it.
function attachment(symbol, open) {
  const [sign, ...rest] = symbol;
  if (sign === undefined || /^[\p{L}\p{N}]/u.test(sign)) return [false, false];
  if (QUOTES.has(sign) && !rest.length) {
    const closing = open.delete(sign);
    if (!closing) open.add(sign);
    return [closing, !closing];
  }
  if (NO_SPACE.has(sign)) return [true, true];
  if (rest.some((other) => other !== sign)) return [false, false];
  return [
    NO_SPACE_BEFORE.has(sign) || /[\p{Pe}\p{Pf}]/u.test(sign) || CJK_PUNCTUATION.has(sign),
    (NO_SPACE_AFTER.has(sign) && !rest.length) || /[\p{Ps}\p{Pi}]/u.test(sign) || CJK_PUNCTUATION.has(sign),
  ];
}

// ------------------------------------------------------------ byte-pair encoding

const START = "▁";
const PUNCTUATION = /[!-/:-@[-`{-~\p{P}]|[^!-/:-@[-`{-~\p{P}]+/gu; // one sign, or what stands between two

// pieces: all symbols; merges: pairs, the first to be joined first.
export function bytePairs({ pieces, merges }) {
  const known = new Set(pieces);
  const ranks = new Map(merges.map(([first, second], rank) => [`${first}\n${second}`, rank]));
  const kept = new Map();

  function pieceOf(text) {
    // Unknown characters keep their spelling, and are never joined.
    const parts = [...text].map((character) => ({ text: character, known: known.has(character) }));
    for (;;) {
      let best = Infinity;
      let place = -1;
      for (let at = 0; at + 1 < parts.length; at++) {
        if (!parts[at].known || !parts[at + 1].known) continue;
        const rank = ranks.get(`${parts[at].text}\n${parts[at + 1].text}`) ?? Infinity;
        if (rank < best) [best, place] = [rank, at];
      }
      if (place < 0) return parts.map((part) => part.text);
      parts.splice(place, 2, { text: parts[place].text + parts[place + 1].text, known: true });
    }
  }

  function split(word) {
    if (!kept.has(word)) kept.set(word, (START + word).match(PUNCTUATION).flatMap(pieceOf));
    return kept.get(word);
  }
  return {
    split: (text) => words(text.replaceAll(START, "_")).flatMap(split),
    join: (symbols) => symbols.join("").replaceAll(START, " ").split("\n").map(strip).join("\n"),
  };
}

// ------------------------------------------------------------ kinds of tokens

const SPLITTERS = {
  word: () => ({ split: splitWords, join: joinWords }),
  character: () => ({ split: (text) => [...strip(text)], join: (symbols) => symbols.join("") }),
  symbol: () => ({
    split: words,
    join: (symbols) => symbols.join(" ").replaceAll(" \n ", "\n").replaceAll(" \n", "\n").replaceAll("\n ", "\n"),
  }),
  bpe: ({ bpe }) => bytePairs(bpe),
};

function separated(name) {
  const mark = MARKS.get(name) ?? name;
  return {
    split: (text) => text.split(mark).map(strip).filter(Boolean),
    join: (symbols) => symbols.join(isSpace(mark) ? mark : `${mark} `),
  };
}

// ------------------------------------------------------------ columns

export const [PAD, UNK, SOS, EOS] = [0, 1, 2, 3];
const SPECIALS = 4;

// A column of text: settings as in the recipe, symbols in the order of their ids, those of labels from 0 on.
export class TextColumn {
  constructor(settings) {
    this.settings = settings;
    this.symbols = settings.symbols;
    this.ids = new Map(settings.symbols.map((symbol, id) => [symbol, id]).slice(SPECIALS));
    const separator = settings.separator ?? null;
    this.splitter = separator === null ? SPLITTERS[settings.tokens](settings) : separated(separator);
  }

  normalise(value) {
    const { case: letters, unicode, punctuation } = this.settings;
    let text = value.isWellFormed?.() === false ? value.toWellFormed() : value;
    if (punctuation !== "keep") text = text.replace(/\p{P}/gu, "");
    if (letters === "lower") text = text.toLowerCase();
    return unicode === "none" ? text : text.normalize(unicode);
  }

  // All symbols of a value.
  whole(value) {
    return this.splitter.split(this.normalise(value));
  }

  encode(symbols) {
    return symbols.map((symbol) => this.ids.get(symbol) ?? UNK);
  }

  join(symbols) {
    return this.splitter.join(symbols);
  }

  // What the model reads of a value: {rows: ids, symbols, shape, sentences?}, ids padded to the shape with zeros.
  read(value) {
    const all = this.whole(value);
    const symbols = this.settings.max_length ? all.slice(0, this.settings.max_length) : all;
    return { symbols, rows: [this.encode(symbols)], shape: [1, Math.max(symbols.length, 1)], cut: all.length - symbols.length };
  }
}

// Text as sentences of symbols.
export class DocumentColumn extends TextColumn {
  read(value) {
    const { sentences: by, max_sentences: most, keep, max_length: longest } = this.settings;
    const all = splitTexts(value, by).map((text) => this.splitter.split(this.normalise(text)));
    const sentences = shortened(all, { most, keep, longest });
    const symbols = sentences.flat();
    const widest = Math.max(1, ...sentences.map((row) => row.length));
    return {
      symbols,
      sentences,
      texts: sentences.map((row) => this.join(row)),
      rows: sentences.length ? sentences.map((row) => this.encode(row)) : [[]],
      shape: [1, Math.max(sentences.length, 1), widest],
      cut: all.flat().length - symbols.length,
    };
  }
}

export const makeColumn = (settings) => new (settings.kind === "texts" ? DocumentColumn : TextColumn)(settings);
