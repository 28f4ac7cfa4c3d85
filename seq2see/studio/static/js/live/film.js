// The film: a frame for each update at which attention was recorded, scrubbed by hand or played.

import { fill } from "../dom.js";
import { top as topOf } from "../weights.js";
import { example } from "./example.js";
import { whole } from "./format.js";

const PACE = 220; // milliseconds of a frame

// shown(update): called with the update on the screen.
export function film({ scrubber, play, at, place, unfilmed, shown }) {
  let frames = [];
  let examples = [];
  let tops = [];
  let counted = 0;
  let timer = null;

  const current = () => Number(scrubber.value);

  function draw() {
    const frame = frames[current()];
    if (!frame) return;
    examples.forEach((entry, number) => entry.show(frame.examples[number], tops[number]));
    const label = `update ${whole(frame.update)}, frame ${current() + 1} of ${frames.length}`;
    at.textContent = label;
    scrubber.setAttribute("aria-valuetext", label);
    place.dataset.update = frame.update;
    shown(frame.update);
  }

  function go(number) {
    scrubber.value = String(Math.min(frames.length - 1, Math.max(0, number)));
    draw();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  }

  function start() {
    if (current() === frames.length - 1) go(0);
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => (current() < frames.length - 1 ? go(current() + 1) : stop()), PACE);
  }

  const toggle = () => (timer ? stop() : start());
  play.addEventListener("click", toggle);
  scrubber.addEventListener("input", () => {
    stop();
    draw();
  });
  document.addEventListener("keydown", (event) => {
    if (!frames.length || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("input, select, button, textarea, summary, a, .scroll")) return;
    const moves = { ArrowLeft: current() - 1, ArrowRight: current() + 1, Home: 0, End: frames.length - 1 };
    if (event.key === " ") toggle();
    else if (event.key in moves) {
      stop();
      go(moves[event.key]);
    } else return;
    event.preventDefault();
  });

  return {
    // all: frames so far; anew: the examples are others than before. At the last frame the page follows the run.
    show(descriptions, all, anew) {
      const follows = !frames.length || (current() === frames.length - 1 && !timer);
      if (anew || all.length < counted) {
        examples = descriptions.map(example);
        fill(place, examples.map((entry) => entry.element));
        tops = descriptions.map(() => 0);
        counted = 0;
      }
      for (const frame of all.slice(counted)) frame.examples.forEach((entry, number) => { tops[number] = Math.max(tops[number], topOf(entry.weights ?? [])); });
      const grown = anew || all.length !== frames.length || counted !== all.length;
      frames = [...all]; // the list of the run grows before it is shown
      counted = all.length;
      for (const control of [play, scrubber]) control.disabled = !frames.length;
      unfilmed.textContent = frames.length ? "" : "No frames. A run records them as it goes; packed models and those of seq2see get have none, nor have models without inputs, models whose output is numbers, and runs with training.film=0.";
      if (!grown || !frames.length) return;
      scrubber.max = String(frames.length - 1);
      go(follows ? frames.length - 1 : current());
    },
  };
}
