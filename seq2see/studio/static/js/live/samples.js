// What the model said of a few dev rows in the last report.

import { bdi, fill, make } from "../dom.js";
import { whole } from "./words.js";

const cell = (name, text, marked) => make("td", { data: { name } }, make(marked ? "span.right" : "span", {}, bdi(text)));

export function samples(place, reports) {
  const last = reports.findLast((one) => one.samples?.length);
  if (!last) {
    fill(place, make("p.quiet", {}, "Nothing yet: outputs come with the reports."));
    return;
  }
  const rows = last.samples.map((one) => make("tr", {},
    cell("input", one.input ?? ""), cell("says", one.output ?? "", one.right), cell("should be", one.reference ?? "")));
  const head = make("tr", {}, ["input", "the model says", "should be"].map((name) => make("th", { scope: "col" }, name)));
  const caption = make("caption.unseen", {}, `outputs of the report of update ${whole(last.update)}`);
  fill(place, make("p.quiet", {}, `Report of update ${whole(last.update)}`),
    make("table.samples", {}, caption, make("thead", {}, head), make("tbody", {}, rows)));
}
