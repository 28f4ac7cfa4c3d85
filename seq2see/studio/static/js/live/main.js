// A run, while it goes on or from what it left in its folder.

import { fill, folded, make } from "../dom.js";
import { themeSwitch } from "../theme.js";
import { curves } from "./curves.js";
import { film } from "./film.js";
import { samples } from "./samples.js";
import { about, recorded, Run } from "./source.js";
import { standing } from "./standing.js";

const PAUSE = 1000; // milliseconds between two questions
const LATER = 3000; // ... where the server did not answer

const part = (name) => document.getElementById(name);
const name = new URLSearchParams(location.search).get("model");
const run = new Run(name);
let told = { state: "loading", ready: false };
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
  drawn.show({ reports: run.reports, status, metric: told.metric, now: update });
}

function introduce() {
  document.title = `${told.name}: training`;
  part("run").textContent = told.name;
  part("task").textContent = [told.task, told.description].filter(Boolean).join(": ").replaceAll("->", "→");
  if (!told.ready) return;
  fill(part("about"),
    folded("The five answers", () => make("div.answers", {}, make("pre", { dir: "ltr" }, told.answers.text)), { name: "answers" }),
    folded("The recipe", () => make("div.answers", {}, make("pre", { dir: "ltr" }, JSON.stringify(told.recipe, null, 2))), { name: "recipe" }));
}

// Other runs that this server can show, to choose from.
async function offer() {
  const models = await recorded();
  const choice = part("model");
  fill(choice, models.map((one) => make("option", { value: one.name, selected: one.name === told.name }, one.name)));
  choice.addEventListener("change", () => location.assign(`live?model=${encodeURIComponent(choice.value)}`));
  choice.parentElement.hidden = false;
}

async function look() {
  const file = run.metrics.file;
  const metrics = await run.metrics.more();
  status = metrics.status ?? null;
  if (!told.ready || run.metrics.file !== file) {
    told = await about(name);
    introduce();
  }
  told.state = metrics.state;
  standing(part("standing"), { state: metrics.state, status, reports: run.reports, metric: told.metric });
  samples(part("samples"), run.reports);
  fill(part("notes"), (metrics.notes ?? []).map((note) => make("li", {}, make("bdi", {}, note))));
  draw();
  const anew = await run.film();
  screen.show(run.scenes, run.frames.all, anew);
  part("failure").textContent = metrics.failure ?? "";
  document.body.dataset.state = metrics.state;
}

async function follow() {
  try {
    await look();
    if (told.state === "learning") setTimeout(follow, PAUSE);
  } catch (error) {
    part("failure").textContent = error instanceof TypeError ? "The server does not answer. Is the training still going on?" : error.message;
    if (told.state === "learning") setTimeout(follow, LATER);
    else document.body.dataset.state = "failed";
  }
}

await follow();
if (told.state === "recorded") await offer();
