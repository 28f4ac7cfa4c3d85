// What else could have been said at a step: the likeliest symbols; choosing one goes on from there.

import { bdi, make } from "./dom.js";
import { isEnd, isSpecial, percent, visible } from "./symbols.js";

export function runnersUp(token, { canChoose, choose }) {
  const items = (token.runners_up ?? []).map((one) => {
    const said = one.text === token.text;
    const parts = [
      make("span.name", {}, bdi(visible(one.text))),
      make("i.meter", { "aria-hidden": "true" }),
      make("span.probability", { dir: "ltr" }, percent(one.probability)),
    ];
    const style = { "--p": one.probability.toFixed(4) };
    if (said || !canChoose || (isSpecial(one.text) && !isEnd(one.text))) {
      return make("li", {}, make("span.runner", { style, "aria-current": said ? "true" : null }, parts));
    }
    const label = `say ${visible(one.text)} instead, ${percent(one.probability)}`;
    const told = { type: "button", style, "aria-label": label, data: { symbol: one.text } };
    return make("li", {}, make("button.runner", { ...told, onclick: () => choose(one.text) }, parts));
  });
  return make("ol.runners", {}, items);
}
