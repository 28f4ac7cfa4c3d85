// Characters as Python sees them.

const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // str.isspace
const ENDS = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const SPACES = new RegExp(`[${SPACE}]+`, "u");
export const SPACE_CLASS = SPACE;

export const strip = (text) => text.replace(ENDS, "");
export const words = (text) => text.split(SPACES).filter(Boolean); // str.split()
export const isLower = (character) => /^\p{Lowercase}$/u.test(character);
export const isSpace = (text) => text !== "" && strip(text) === "";
