// One decoding step with the numbers behind it: energies, weights, context, state, the likeliest symbols.

import { bdi, make } from "./dom.js";
import { figure, percent, visible } from "./symbols.js";

const SHOWN = 24; // numbers of a vector; the rest is counted

export function explanation(step) {
  const equations = step.equations;
  const head = step.reads === null ? [] : [" after reading ", bdi(`“${visible(step.reads)}”`)];
  return make("div.explanation", {},
    make("p", {}, `Step ${step.step + 1} of ${step.steps}: writes `, bdi(`“${visible(step.writes)}”`),
      ` with probability ${percent(step.probability)}`, ...head, "."),
    step.query.length ? vector("Query", equations.query, step.query) : null,
    step.looks.map((look) => lookSection(look, equations)),
    vector("State", [equations.state, equations.cell].filter(Boolean).join("\n"), step.state),
    step.generating === undefined ? null
      : make("p", {}, `g = ${figure(step.generating)}: the share of P from the vocabulary; the rest is copied.`),
    make("h4", {}, "Likeliest"),
    equation(equations.output),
    table(["symbol", "probability"], step.likeliest.map(({ text, probability }) => [bdi(visible(text)), percent(probability)])));
}

function lookSection(look, equations) {
  const rows = look.places.map((place, at) =>
    [bdi(visible(place)), figure(look.energies[at]), figure(look.weights[at])]);
  return [
    make("h4", {}, `Look at ${look.input}`),
    equation([equations.energies, equations.weights].filter(Boolean).join("\n")),
    table(["place", "energy e", "weight a"], rows),
    look.context.length ? vector("Context", equations.context, look.context) : null,
  ];
}

const equation = (text) => (text ? make("pre.equation", { dir: "ltr" }, text) : null);

function vector(name, formula, numbers) {
  const rest = numbers.length - SHOWN;
  const shown = numbers.slice(0, SHOWN).map((number) => make("span", {}, figure(number)));
  return make("section", {},
    make("h4", {}, `${name}, ${numbers.length} numbers`),
    equation(formula),
    make("p.numbers", { dir: "ltr" }, shown, rest > 0 ? `… and ${rest} more` : ""));
}

function table(heads, rows) {
  const figures = make("table.figures", {},
    make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell) => make("td", {}, cell))))));
  return make("div.scroll", { tabindex: "0", role: "region", "aria-label": heads.join(", ") }, figures);
}
