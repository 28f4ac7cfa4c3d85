// The loss, and the dev metrics beside the trivial model: which one is a person's choice, the leading one comes first.

import { make } from "../dom.js";
import { curve } from "./curve.js";

export function curves(place) {
  const choice = make("select", { "aria-label": "dev metric" });
  const loss = curve("Loss while learning");
  const dev = curve(make("label", {}, "On dev rows ", choice));
  place.replaceChildren(loss.element, dev.element);
  let last = null;

  const draw = () => {
    const { reports, status, now } = last;
    const learned = reports.filter((one) => !one.averaged);
    const losses = points(learned, (one) => one.loss);
    const update = learned.length ? learned[learned.length - 1].update : 0;
    if (status && status.update > update && status.loss) losses.push({ x: status.update, y: status.loss });
    loss.show({ name: "loss", points: losses, baseline: null, now });
    const measured = points(learned, (one) => one.dev?.[choice.value]);
    dev.show({ name: choice.value || "dev", points: measured, baseline: baseline(reports, choice.value), now });
  };
  choice.addEventListener("change", draw);

  return {
    // metric: the leading one; now: the update that the film shows
    show(given) {
      last = given;
      offer(choice, Object.keys(given.reports[given.reports.length - 1]?.dev ?? {}), given.metric);
      draw();
    },
  };
}

const points = (reports, value) =>
  reports.filter((one) => Number.isFinite(value(one))).map((one) => ({ x: one.update, y: value(one), best: one.best }));

function baseline(reports, metric) {
  const known = reports.filter((one) => Number.isFinite(one.baseline?.[metric]));
  const last = known[known.length - 1];
  return last ? { name: last.baseline_says?.[metric] ?? "baseline", value: last.baseline[metric] } : null;
}

function offer(choice, names, metric) {
  if (names.length === choice.options.length && names.every((name, at) => choice.options[at].value === name)) return;
  const chosen = choice.value || metric;
  choice.replaceChildren(...names.map((name) => make("option", { value: name, selected: name === chosen }, name)));
}
