// The page of a training run, in progress or recorded.

import { fill, folded, make } from "../dom.js";
import { themeSwitch } from "../theme.js";
import { curves } from "./curves.js";
import { film } from "./film.js";
import { progress } from "./progress.js";
import { samples } from "./samples.js";
import { about, recorded, Run } from "./source.js";

const PAUSE = 1000; // milliseconds between two requests
const LATER = 3000; // ... where the server did not answer

const part = (name) => document.getElementById(name);
const name = new URLSearchParams(location.search).get("model");
const run = new Run(name);
let description = { state: "loading", ready: false };
let status = null;
let update = null;

themeSwitch(part("theme"));
const drawn = curves(part("curves"));
const screen = film({
  scrubber: part("frame"), play: part("play"), at: part("at"), place: part("examples"), unfilmed: part("unfilmed"),
  shown(now) {
    update = now;
    draw();
  },
});

function draw() {
  drawn.show({ reports: run.reports, status, metric: description.metric, now: update });
}

function describe() {
  document.title = `${description.name}: training`;
  part("run").textContent = description.name;
  part("task").textContent = [description.task, description.description].filter(Boolean).join(": ").replaceAll("->", "→");
  if (!description.ready) return;
  fill(part("about"),
    folded("The five answers", () => make("div.answers", {}, make("pre", { dir: "ltr" }, description.answers.text)), { name: "answers" }),
    folded("The recipe", () => make("div.answers", {}, make("pre", { dir: "ltr" }, JSON.stringify(description.recipe, null, 2))), { name: "recipe" }));
}

// Other runs that this server can show, to choose from.
async function offer() {
  const models = await recorded();
  const choice = part("model");
  fill(choice, models.map((model) => make("option", { value: model.name, selected: model.name === description.name }, model.name)));
  choice.addEventListener("change", () => location.assign(`live?model=${encodeURIComponent(choice.value)}`));
  choice.parentElement.hidden = false;
}

async function refresh() {
  const file = run.metrics.file;
  const metrics = await run.metrics.more();
  status = metrics.status ?? null;
  if (!description.ready || run.metrics.file !== file) {
    description = await about(name);
    describe();
  }
  description.state = metrics.state;
  progress(part("progress"), { state: metrics.state, status, reports: run.reports, metric: description.metric });
  samples(part("samples"), run.reports);
  fill(part("notes"), (metrics.notes ?? []).map((note) => make("li", {}, make("bdi", {}, note))));
  draw();
  const anew = await run.film();
  screen.show(run.examples, run.frames.all, anew);
  part("failure").textContent = metrics.failure ?? "";
  document.body.dataset.state = metrics.state;
}

async function follow() {
  try {
    await refresh();
    if (description.state === "learning") setTimeout(follow, PAUSE);
  } catch (error) {
    part("failure").textContent = error.status === 0 ? "The server does not respond. Is the training still running?" : error.message;
    if (description.state === "learning") setTimeout(follow, LATER);
    else document.body.dataset.state = "failed";
  }
}

await follow();
if (description.state === "recorded") await offer();
