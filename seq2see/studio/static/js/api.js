// The server's API (docs/serving.md). An error response becomes a RequestError with its message.

export class RequestError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export async function fetchJson(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError("The server does not respond. Is it still running?", 0);
  }
  const record = await response.json().catch(() => ({ error: `The server answered ${response.status} without a reason.` }));
  if (!response.ok) throw new RequestError(record.error ?? `The server answered ${response.status}.`, response.status);
  return record;
}

export const models = async () => (await fetchJson("api/models")).models;
export const model = (name) => fetchJson(`api/models/${encodeURIComponent(name)}`);
export const exampleFile = (name, number, input) =>
  `api/models/${encodeURIComponent(name)}/examples/${number}/${encodeURIComponent(input)}`;

export async function exampleContent(model, number, input) {
  const response = await fetch(exampleFile(model.name, number, input));
  if (!response.ok) throw new RequestError(`The file of example ${number} is gone.`, response.status);
  const example = model.examples.find((entry) => entry.example === number);
  return new File([await response.blob()], example.inputs[input].file);
}

// Send a request to `predict`, `explain`, ...: as a form where inputs are files, otherwise as JSON.
export function ask(action, body, signal) {
  const inputs = body.input !== null && typeof body.input === "object" ? body.input : {};
  const files = Object.entries(inputs).filter(([, value]) => value instanceof Blob);
  if (!files.length) {
    const headers = { "Content-Type": "application/json" };
    return fetchJson(`api/${action}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  }
  const form = new FormData();
  for (const [name, value] of Object.entries(inputs)) {
    if (value instanceof Blob) form.append(name, value, value.name ?? name);
    else form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  for (const [key, value] of Object.entries(body)) {
    if (key === "input" || value === undefined) continue;
    form.append(key, typeof value === "string" ? value : JSON.stringify(value));
  }
  return fetchJson(`api/${action}`, { method: "POST", body: form, signal });
}
