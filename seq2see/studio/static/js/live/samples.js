// Outputs of a few dev rows in the last report.

import { bdi, fill, make } from "../dom.js";
import { whole } from "./format.js";

const cell = (name, text, marked) => make("td", { data: { name } }, make(marked ? "span.right" : "span", {}, bdi(text)));

export function samples(place, reports) {
  const last = reports.findLast((report) => report.samples?.length);
  if (!last) {
    fill(place, make("p.quiet", {}, "Nothing yet: outputs are shown with each report."));
    return;
  }
  const rows = last.samples.map((sample) => make("tr", {},
    cell("input", sample.input ?? ""), cell("output", sample.output ?? "", sample.right), cell("expected", sample.reference ?? "")));
  const head = make("tr", {}, ["input", "output", "expected"].map((name) => make("th", { scope: "col" }, name)));
  const caption = make("caption.unseen", {}, `outputs of the report of update ${whole(last.update)}`);
  fill(place, make("p.quiet", {}, `Report at update ${whole(last.update)}`),
    make("table.samples", {}, caption, make("thead", {}, head), make("tbody", {}, rows)));
}
