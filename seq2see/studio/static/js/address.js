// The address of the page names what is shown, so that a view can be shared: #model=a&input=india&beam=5&step=2
// It is the part that browsers keep to themselves: the server never sees it.

const OPTIONS = ["beam", "sample", "temperature", "seed", "prefix"]; // of the search
const LONGEST = 4000; // letters of an address; a view with a longer input is named by its model alone

// The key of an input; where there is one, its name says nothing.
const keyOf = (model, name) => (model.inputs.length === 1 ? "input" : `input.${name}`);

// What the address names: {model, beside, step, options, inputs(model) -> {name: text}}.
export function read() {
  const named = new URLSearchParams(location.hash.slice(1));
  const options = Object.fromEntries(OPTIONS.filter((name) => named.has(name)).map((name) => [name, named.get(name)]));
  const inputs = (model) => Object.fromEntries(model.inputs.flatMap(({ name }) => {
    const value = named.get(keyOf(model, name));
    return value === null ? [] : [[name, value]];
  }));
  return { model: named.get("model"), beside: named.get("beside"), step: Number(named.get("step")) || 0, options, inputs };
}

// Name a view; kept: as a new entry of the browser's history. Files are named where they are those of examples.
export function write({ model, beside, request = null, step = 0 }, { kept = false } = {}) {
  const shown = new URLSearchParams({ model: model.name, ...(beside ? { beside: beside.name } : {}) });
  for (const [name, value] of Object.entries(request?.input ?? {})) {
    const text = value?.example ?? (value instanceof Blob ? null : [value].flat().join(" "));
    if (text !== null) shown.set(keyOf(model, name), text);
  }
  for (const [name, value] of Object.entries(request?.options ?? {})) shown.set(name, value);
  if (step) shown.set("step", step);
  if (`${shown}`.length > LONGEST) for (const name of [...shown.keys()]) if (name.startsWith("input")) shown.delete(name);
  const address = `#${shown}`;
  if (address !== location.hash) history[kept ? "pushState" : "replaceState"](null, "", address);
}
