// The OpenAPI page: openapi.json as text and tables, without anything from elsewhere.

function element(name, content = "", attributes = {}) {
  const made = document.createElement(name);
  made.append(...[content].flat());
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// A type in words: "integer (1 to 64)", "string or list of string".
function typeOf(schema, whole) {
  if (schema.$ref) return typeOf(whole.$defs[schema.$ref.split("/").pop()], whole);
  if (schema.anyOf) return schema.anyOf.filter((one) => one.type !== "null").map((one) => typeOf(one, whole)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {}, whole)}`;
  if (schema.type === "object" && schema.properties) return `{${Object.keys(schema.properties).join(", ")}}`;
  if (schema.type === "object") return `{key: ${typeOf(schema.additionalProperties ?? {}, whole)}}`;
  const bounds = [schema.minimum !== undefined && `from ${schema.minimum}`, schema.maximum !== undefined && `to ${schema.maximum}`];
  const said = bounds.filter(Boolean).join(" ");
  return (schema.type ?? "any") + (said && ` (${said})`);
}

function keysOf(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, part]) => element("tr", [
    element("td", element("code", name + (required.has(name) ? " *" : ""))),
    element("td", typeOf(part, schema)),
    element("td", part.description ?? ""),
  ]));
  const head = element("tr", ["key", "type", "what for"].map((name) => element("th", name, { scope: "col" })));
  return element("div", element("table", [element("thead", head), element("tbody", rows)]), { class: "scroll", tabindex: "0" });
}

function routeOf(path, method, told) {
  const head = element("h2", [element("span", method.toUpperCase(), { class: "method" }), " ", element("code", path)]);
  const made = element("section", [head, element("p", told.summary ?? "")]);
  const content = told.requestBody?.content ?? {};
  if (content["application/json"]) made.append(keysOf(content["application/json"].schema));
  if (content["multipart/form-data"]) made.append(element("p", `As multipart/form-data: ${content["multipart/form-data"].schema.description}.`));
  return made;
}

const answer = await fetch("openapi.json");
const told = await answer.json();
const routes = document.getElementById("routes");
if (answer.ok) {
  routes.replaceChildren(...Object.entries(told.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => routeOf(path, method, one))));
} else {
  routes.textContent = told.error;
}
