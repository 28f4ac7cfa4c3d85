// Sentences of a text, by the rule of seq2see/data/sentences.py or by a mark.

import { isLower, SPACE_CLASS, strip } from "./characters.js";

const END = new RegExp(`[。！？｡]+["'”’»）)\\]」』]*|[.!?…।॥۔؟።။։]+["'”’»)\\]]*(?=[${SPACE_CLASS}]|$)|\\n[${SPACE_CLASS}]*\\n`, "gu");
const AMBIGUOUS = ".!?…";
const WORD = new RegExp(`[^${SPACE_CLASS}(\\["'“‘«]+$`, "u");
const NOT_SPACE = new RegExp(`[^${SPACE_CLASS}]`, "u");
const INITIAL = /^[\p{L}\p{Nl}\p{No}]$/u;
const ABBREVIATION = new RegExp("^(?:mrs?|ms|messrs|drs?|profs?|st|sr|jr|rev|gen|col|sgt|capt|lt|gov|sen|rep|hon|mt"
  + "|e\\.g|i\\.e|cf|vs|viz|approx|ca|resp|al|eds?|inc|ltd|co|corp"
  + "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|u\\.s|u\\.k|u\\.n|a\\.m|p\\.m|ph\\.d"
  + "|z\\.b|d\\.h|bzw|usw|hr|fr)$", "u");
const BEFORE_NUMBER = /^(?:nos?|nr|figs?|eqs?|secs?|tabs?|vols?|chaps?|pp?)$/u;
const LONGEST_WORD = 40;
export const MARKS = new Map([["rule", "\n\n"], ["newline", "\n"], ["tab", "\t"]]);

function byRule(whole) {
  const text = strip(whole);
  const capitals = text !== text.toLowerCase();
  const sentences = [];
  let start = 0;
  for (const match of text.matchAll(END)) {
    if (continues(text, match, capitals)) continue;
    const end = match.index + match[0].length;
    sentences.push(text.slice(start, end));
    start = end;
  }
  return [...sentences, text.slice(start)];
}

// Whether the sentence continues after a possible end.
function continues(text, { 0: mark, index }, capitals) {
  const following = NOT_SPACE.exec(text.slice(index + mark.length))?.[0] ?? "";
  if (AMBIGUOUS.includes(mark[0]) && capitals && isLower(following)) return true;
  if (mark[0] !== "." || mark.startsWith("..") || !following) return false;
  const word = WORD.exec(text.slice(Math.max(0, index - LONGEST_WORD), index))?.[0].toLowerCase();
  if (word === undefined) return false;
  if (BEFORE_NUMBER.test(word)) return /\p{Nd}/u.test(following);
  return ABBREVIATION.test(word) || INITIAL.test(word);
}

// by: "rule", or the mark between sentences; empty ones are dropped.
export function splitTexts(text, by) {
  const parts = by === "rule" ? byRule(text) : text.split(MARKS.get(by) ?? by);
  return parts.map(strip).filter(Boolean);
}

// The sentences that have symbols: at most so many, the first or the last ones, each of at most so many; 0: no limit.
export function shortened(sentences, { most, keep, longest }) {
  let rows = sentences.filter((row) => row.length);
  if (most) rows = keep === "last" ? rows.slice(-most) : rows.slice(0, most);
  return longest ? rows.map((row) => row.slice(0, longest)) : rows;
}
