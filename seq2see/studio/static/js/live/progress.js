// The progress of a run: update, loss, speed, time left.

import { fill, make } from "../dom.js";
import { amount, duration, whole } from "./format.js";

const STATES = { learning: "learning", ended: "ended", failed: "failed", recorded: "recorded" };

const fact = (name, value) => make("div.fact", {}, make("b", {}, value), make("span", {}, name));

export function progress(place, { state, status, reports, metric }) {
  const last = reports.findLast((report) => !report.averaged); // averaged weights were not trained, and have no speed
  const at = !status || (last && last.update > status.update) ? last : status;
  const facts = [fact("state", STATES[state] ?? state)];
  if (at) {
    const best = reports.findLast((report) => report.best);
    facts.push(
      fact("updates", whole(at.update)),
      fact("epochs", at.epoch.toFixed(2)),
      fact("loss", amount(at.loss || last?.loss || 0)),
      fact(`${at.unit ?? "tokens"} per second`, whole(at.tokens_per_second)),
      fact("elapsed", duration(at.seconds)),
    );
    if (best && Number.isFinite(best.dev?.[metric])) facts.push(fact(`best ${metric}, update ${whole(best.update)}`, amount(best.dev[metric])));
    if (state === "learning" && status?.seconds_left !== null && status) facts.push(fact("remaining", `about ${duration(status.seconds_left)}`));
  }
  const share = state === "learning" ? status?.share : undefined;
  const bar = share ? make("progress", { max: "1", value: String(Math.min(1, share)), "aria-label": "share of the run that is done" }) : null;
  fill(place, bar, facts);
}
