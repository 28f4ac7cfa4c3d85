// The server, in the words of docs/serving.md. What it refuses becomes an Error with its message.

export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function answered(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer. Is it still running?", 0);
  }
  const told = await answer.json().catch(() => ({ error: `The server said ${answer.status} without a reason.` }));
  if (!answer.ok) throw new Refusal(told.error ?? `The server said ${answer.status}.`, answer.status);
  return told;
}

export const models = async () => (await answered("api/models")).models;
export const model = (name) => answered(`api/models/${encodeURIComponent(name)}`);
export const exampleFile = (name, number, input) =>
  `api/models/${encodeURIComponent(name)}/examples/${number}/${encodeURIComponent(input)}`;

export async function exampleContent(model, number, input) {
  const answer = await fetch(exampleFile(model.name, number, input));
  if (!answer.ok) throw new Refusal(`The file of example ${number} is gone.`, answer.status);
  const known = model.examples.find((one) => one.example === number);
  return new File([await answer.blob()], known.inputs[input].file);
}

// Ask `predict`, `explain`, ...: files among the inputs are sent as a form, all else as JSON.
export function ask(action, body, signal) {
  const inputs = body.input !== null && typeof body.input === "object" ? body.input : {};
  const files = Object.entries(inputs).filter(([, value]) => value instanceof Blob);
  if (!files.length) {
    const headers = { "Content-Type": "application/json" };
    return answered(`api/${action}`, { method: "POST", headers, body: JSON.stringify(body), signal });
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
  return answered(`api/${action}`, { method: "POST", body: form, signal });
}
