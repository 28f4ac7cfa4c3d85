// The curves of the loss and of a dev metric, which the viewer chooses.

import { make } from "../dom.js";
import { curve } from "./curve.js";

export function curves(place) {
  const choice = make("select", { "aria-label": "dev metric" });
  const loss = curve("Training loss");
  const dev = curve(make("label", {}, "On dev rows ", choice));
  place.replaceChildren(loss.element, dev.element);
  let last = null;

  const draw = () => {
    const { reports, status, now } = last;
    const learned = reports.filter((report) => !report.averaged);
    const losses = points(learned, (report) => report.loss);
    const update = learned.length ? learned[learned.length - 1].update : 0;
    if (status && status.update > update && status.loss) losses.push({ x: status.update, y: status.loss });
    loss.show({ name: "loss", points: losses, baseline: null, now });
    const measured = points(learned, (report) => report.dev?.[choice.value]);
    dev.show({ name: choice.value || "dev", points: measured, baseline: baseline(reports, choice.value), now });
  };
  choice.addEventListener("change", draw);

  return {
    // metric: the one that decides which report is best; now: the update that the film shows
    show(data) {
      last = data;
      offer(choice, Object.keys(data.reports[data.reports.length - 1]?.dev ?? {}), data.metric);
      draw();
    },
  };
}

const points = (reports, value) =>
  reports.filter((report) => Number.isFinite(value(report))).map((report) => ({ x: report.update, y: value(report), best: report.best }));

function baseline(reports, metric) {
  const known = reports.filter((report) => Number.isFinite(report.baseline?.[metric]));
  const last = known[known.length - 1];
  return last ? { name: last.baseline_says?.[metric] ?? "baseline", value: last.baseline[metric] } : null;
}

function offer(choice, names, metric) {
  if (names.length === choice.options.length && names.every((name, at) => choice.options[at].value === name)) return;
  const chosen = choice.value || metric;
  choice.replaceChildren(...names.map((name) => make("option", { value: name, selected: name === chosen }, name)));
}
