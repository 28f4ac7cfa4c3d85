// The page of the API: openapi.json as text and tables.

import { themeSwitch } from "./js/theme.js";

function element(name, content = "", attributes = {}) {
  const created = document.createElement(name);
  created.append(...[content].flat());
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  return created;
}

function distinct(values) {
  return [...new Set(values)];
}

// Bounds in words: "1 to 64", "at least 0", "at most 20 characters".
function boundsOf(schema) {
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const most = schema.maximum ?? schema.exclusiveMaximum;
  const shown = (number) => (number >= 2 ** 53 ? "2⁶³ − 1" : Number(number).toLocaleString("en"));
  const above = schema.exclusiveMinimum !== undefined ? "above " : "";
  if (least !== undefined && most !== undefined) return `${above}${shown(least)} to ${shown(most)}`;
  if (least !== undefined) return `${above || "at least "}${shown(least)}`;
  if (most !== undefined) return `at most ${shown(most)}`;
  if (schema.maxLength) return `at most ${shown(schema.maxLength)} characters`;
  return "";
}

// A type in words: "integer (1 to 64)", "string or list of string".
function typeOf(schema, whole) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return oneOf(schema.anyOf, whole);
  if (schema.maxLength === 0) return '""';
  if (schema.maxProperties === 0) return "{}";
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (schema.format === "binary") return "file";
  if (schema.pattern?.startsWith("^data:")) return "data: URL";
  if (schema.type === "array") {
    const items = typeOf(schema.items ?? {}, whole);
    return items.includes(" or ") ? `list of (${items})` : `list of ${items}`;
  }
  if (schema.type === "object" && schema.properties) return `{${Object.keys(schema.properties).join(", ")}}`;
  if (schema.type === "object") return `{key: ${typeOf(Object.values(schema.patternProperties ?? {})[0] ?? {}, whole)}}`;
  const type = [schema.type ?? "any"].flat().filter((one) => one !== "null").join(" or ") || "null";
  const bounds = boundsOf(schema);
  return type + (bounds && ` (${bounds})`);
}

// Alternatives, each once, without null.
function oneOf(schemas, whole) {
  const parts = schemas.flatMap((one) => one.anyOf ?? [one]);
  return distinct(parts.map((one) => typeOf(one, whole)).filter((one) => one !== "null")).join(" or ");
}

// One table of the keys of a body, for all its variants and models.
function merged(schema, whole) {
  const variants = (schema.anyOf ?? [schema]).map((one) => (one.properties ? one : { properties: {} }));
  const keys = distinct(variants.flatMap((one) => Object.keys(one.properties)));
  return keys.map((key) => {
    const parts = variants.map((one) => one.properties[key]).filter(Boolean);
    return {
      key,
      type: oneOf(parts, whole),
      description: parts.map((one) => one.description).find(Boolean) ?? "",
      required: variants.every((one) => one.required?.includes(key)),
    };
  });
}

function tableOf(heads, rows) {
  const head = element("tr", heads.map((name) => element("th", name, { scope: "col" })));
  const body = rows.map((cells) => element("tr", cells.map((cell) => element("td", cell))));
  return element("div", element("table", [element("thead", head), element("tbody", body)]), { class: "scroll", tabindex: "0" });
}

function keysOf(rows) {
  return tableOf(["key", "type", "description"], rows.map((one) => [
    element("code", one.key + (one.required ? " *" : "")), one.type, one.description,
  ]));
}

function folded(title, content) {
  return element("details", [element("summary", title), content]);
}

function answerOf(response, whole) {
  const kinds = Object.entries(response.content ?? {}).map(([kind, { schema }]) =>
    kind === "application/json" ? typeOf(schema ?? {}, whole) : kind);
  return distinct(kinds).join(", ");
}

// [title, value]: the examples of a route's JSON body and of its answer.
function examplesOf(operation) {
  const request = Object.values(operation.requestBody?.content["application/json"]?.examples ?? {});
  const answer = operation.responses["200"]?.content?.["application/json"]?.example;
  return [
    ...request.map((one) => [`Example: ${one.summary}`, one.value]),
    ...(answer === undefined ? [] : [["Example of an answer", answer]]),
  ];
}

function routeOf(path, method, operation, whole) {
  const head = element("h2", [element("span", method.toUpperCase(), { class: "method" }), " ", element("code", path)]);
  const section = element("section", [head, element("p", operation.summary ?? "")], { id: operation.operationId });
  const parameters = (operation.parameters ?? []).map((one) => ({
    key: one.name, type: typeOf(one.schema, whole), description: one.description ?? "", required: one.required,
  }));
  if (parameters.length) section.append(keysOf(parameters));
  const content = operation.requestBody?.content ?? {};
  if (content["application/json"]) section.append(keysOf(merged(content["application/json"].schema, whole)));
  if (content["multipart/form-data"]) {
    section.append(folded("As multipart/form-data", keysOf(merged(content["multipart/form-data"].schema, whole))));
  }
  for (const [title, example] of examplesOf(operation)) {
    section.append(folded(title, element("pre", JSON.stringify(example, null, 2))));
  }
  section.append(folded("Statuses", tableOf(["status", "response", "when"], Object.entries(operation.responses).map(([status, one]) =>
    [element("code", status), answerOf(one, whole), one.description]))));
  return section;
}

function shapesOf(whole) {
  const head = element("h2", "Responses");
  const shapes = Object.entries(whole.components?.schemas ?? {}).map(([name, schema]) =>
    folded(name, keysOf(merged(schema, whole))));
  return element("section", [head, ...shapes]);
}

const answer = await fetch("openapi.json");
const whole = await answer.json();
const routes = document.getElementById("routes");
themeSwitch(document.getElementById("theme"));
if (answer.ok) {
  const operations = Object.entries(whole.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one.operationId]));
  document.getElementById("contents").replaceChildren(...operations.map(([name, id]) => element("a", name, { href: `#${id}` })));
  document.getElementById("access").textContent = whole.security
    ? "Every request carries the token: Authorization: Bearer TOKEN." : "This server asks for no token.";
  routes.replaceChildren(...Object.entries(whole.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => routeOf(path, method, one, whole))), shapesOf(whole));
} else {
  routes.textContent = whole.error;
}
