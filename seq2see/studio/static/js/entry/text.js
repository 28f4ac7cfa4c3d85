// A field for what is typed: text, sentences of a document, elements of a set, numbers of a vector.

import { make } from "../dom.js";

const HINTS = {
  text: "Type a text, then press Enter",
  texts: "Type or paste a document, then press Ctrl+Enter",
  set: "Type the elements, then press Enter",
  vector: "Type the numbers, then press Enter",
};

// The name of an input, and the column it had in the training table where that is called otherwise.
export function labelOf({ name, column }) {
  return column && column !== name ? [name, make("span.column", { dir: "auto" }, ` · ${column}`)] : [name];
}

export function textField(input, submit) {
  const long = input.kind === "texts";
  const id = `entry-${input.name}`;
  const area = make("textarea", {
    id,
    rows: long ? 7 : 2,
    dir: "auto",
    placeholder: HINTS[input.kind] ?? HINTS.text,
    autocomplete: "off",
    spellcheck: "false",
  });
  area.addEventListener("keydown", (event) => {
    const sends = event.ctrlKey || event.metaKey || (!long && !event.shiftKey);
    if (event.key !== "Enter" || event.isComposing || !sends) return;
    event.preventDefault();
    submit();
  });
  const complaint = make("p.complaint", { role: "alert" });
  let own = false; // typed by a person, and not an example
  area.addEventListener("input", () => {
    complaint.textContent = "";
    own = true;
  });
  return {
    name: input.name,
    kind: input.kind,
    element: make("div.field", {}, make("label", { for: id }, ...labelOf(input)), area, complaint),
    value: () => (area.value.trim() === "" ? undefined : read(area.value, input.kind)),
    own: () => own,
    set(value, { typed = false } = {}) {
      own = typed;
      area.value = Array.isArray(value) ? value.join(" ") : String(value ?? "");
      complaint.textContent = "";
    },
    focus: () => area.focus(),
    complain() { complaint.textContent = `${input.name}: type something first.`; },
  };
}

// Numbers go as numbers; what is none goes as it stands, for the server to say what is wrong with it.
function read(text, kind) {
  if (kind !== "vector") return text;
  const parts = text.trim().split(/[\s,;]+/);
  const numbers = parts.map(Number);
  return numbers.every(Number.isFinite) ? numbers : text;
}
