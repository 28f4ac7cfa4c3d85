// Symbols as text for people; the server sends them as in the vocabulary: "▁Kopf", " ", "<eos>".

const START = "▁";
// Maps: any word may be a symbol, and an object knows some that nobody gave it ("constructor").
const BLANKS = new Map([[" ", "␣"], ["\n", "⏎"], ["\t", "⇥"], ["\u00a0", "⍽"], ["", "∅"]]);
const SPECIAL = new Set(["<eos>", "<sos>", "<unk>", "<pad>"]); // named as in the API, the command line and the pictures

export const isEnd = (symbol) => symbol === "<eos>";
export const isSpecial = (symbol) => SPECIAL.has(symbol);

// A label that never looks empty: a mark that stands on a letter gets a circle to stand on.
export function visible(symbol) {
  const name = BLANKS.get(symbol);
  if (name !== undefined) return name;
  const text = symbol.startsWith(START) ? symbol.slice(1) || "␣" : symbol;
  return /^\p{M}/u.test(text) ? `\u25cc${text}` : text;
}

// A letter or two, with their marks: such labels stand upright where words are turned.
export const isUpright = (symbol) => [...visible(symbol).replace(/[\p{M}\u25cc]/gu, "")].length <= 2;

export const shortened = (symbol, most) => {
  const letters = [...visible(symbol)];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : letters.join("");
};

// How symbols follow each other in running text: pieces of words and characters stick together, words do not.
export function gluedTo(symbols, tokens) {
  const pieces = symbols.some((symbol) => symbol.startsWith(START));
  return symbols.map((symbol, at) => at > 0 && (pieces ? !symbol.startsWith(START) : tokens === "character"));
}

// Symbols as running text, the end of an output included.
export function running(symbols, tokens) {
  const glued = gluedTo(symbols, tokens);
  return symbols.map((symbol, at) => (at && !(glued[at] && !isSpecial(symbol)) ? " " : "") + visible(symbol)).join("");
}

// The way most letters run: Hebrew, Arabic and their kin to the left.
export function directionOf(symbols) {
  const text = symbols.filter((symbol) => !isSpecial(symbol)).join("");
  const leftward = text.match(/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/g)?.length ?? 0;
  return leftward > (text.match(/\p{L}/gu)?.length ?? 0) / 2 ? "rtl" : "ltr";
}

// Units of the page: probabilities in percent, attention weights as fractions that sum to 1, log P and scores as
// natural logarithms.
export const percent = (share) => {
  const hundred = share * 100;
  if (hundred > 0 && hundred < 0.1) return "< 0.1 %";
  return `${hundred < 9.95 ? hundred.toFixed(1) : Math.round(hundred)} %`;
};
export const figure = (number) => {
  const size = Math.abs(number);
  return size !== 0 && (size < 0.001 || size >= 10000) ? number.toExponential(2) : number.toFixed(3);
};
export const logarithm = (number) => number.toFixed(3);
export const fraction = (weight) => (weight > 0 && weight < 0.005 ? "< 0.01" : weight.toFixed(2));
// A weight in little room: .98
export const short = (weight) => (weight < 0.005 ? "" : weight.toFixed(2).replace(/^0/, ""));
// Numbers, signs and units in a tooltip run from left to right, whatever the text around them does.
export const rightward = (text) => `\u2066${text}\u2069`;
export const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
