// What the studio asks of its server, answered by the model in this page.

import { InputError, Model } from "./model.js";

export class RequestError extends Error {}

let known = null;

export function open(record, weights) {
  known = new Model(record, weights);
  return known;
}

export const exampleFile = () => "";

// A request to `predict`; everything else is not offered by this page.
export async function ask(action, { input, model, maps, looks, shown, ...options }, signal = null) {
  try {
    if (action !== "predict") throw new InputError(`${action}: not in this page`);
    await new Promise((resolve) => { setTimeout(resolve); }); // so that the page can say that it is busy
    signal?.throwIfAborted();
    return await known.predict(input ?? {}, options, signal);
  } catch (error) {
    if (error instanceof InputError) throw new RequestError(error.message);
    throw error;
  }
}
