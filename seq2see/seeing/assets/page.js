"use strict";
// Pointing at an output shades the inputs by its weights; pointing at an input shades the outputs by theirs.
const looks = JSON.parse(document.getElementById("looks").textContent);
const figure = (weight) => weight.toFixed(3);

function shade(element, weight, top) {
  const share = Math.min(1, weight / top);
  element.classList.add("shade");
  element.classList.toggle("s1", share > 0.42);
  element.classList.toggle("s2", share > 0.57);
  element.style.setProperty("--w", share);
}

function plain(element) {
  element.classList.remove("shade", "s1", "s2");
}

function begin(section, map) {
  const inputs = [...section.querySelectorAll("[data-place]")];
  const outputs = [...section.querySelectorAll("[data-step]")];
  const rows = [...section.querySelectorAll("tbody tr")];
  const heading = [...section.querySelectorAll("thead th")].slice(1);
  const readout = section.querySelector(".readout");
  const heads = [...section.querySelectorAll("[data-head]")];
  let weights = map.heads[0];
  let step = 0;
  let marked = [];

  function mark(...elements) {
    marked.forEach((element) => element.classList.remove("active"));
    marked = elements;
    marked.forEach((element) => element.classList.add("active"));
  }

  function showStep(chosen) {
    step = chosen;
    const row = weights[step];
    outputs.forEach(plain);
    inputs.forEach((element, place) => {
      shade(element, row[place], map.top);
      element.title = figure(row[place]);
    });
    mark(outputs[step], rows[step]);
    const best = row.map((weight, place) => [weight, place]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    readout.textContent = `\u2068${map.outputs[step]}\u2069: ` + best.map(([w, place]) => `\u2068${map.inputs[place]}\u2069 ${figure(w)}`).join(", ");
  }

  function showPlace(place) {
    inputs.forEach(plain);
    outputs.forEach((element, index) => {
      shade(element, weights[index][place], map.top);
      element.title = figure(weights[index][place]);
    });
    mark(inputs[place], heading[place], ...rows.map((row) => row.cells[place + 1]));
    readout.textContent = `\u2068${map.inputs[place]}\u2069: ` + map.outputs
      .map((symbol, index) => [weights[index][place], symbol]).sort((a, b) => b[0] - a[0]).slice(0, 3)
      .map(([w, symbol]) => `\u2068${symbol}\u2069 ${figure(w)}`).join(", ");
  }

  function showCell(cell) {
    const place = cell.cellIndex - 1;
    const chosen = cell.parentElement.sectionRowIndex;
    showStep(chosen);
    mark(outputs[step], rows[step], cell, inputs[place], heading[place]);
    readout.textContent = `\u2068${map.outputs[step]}\u2069 \u2190 \u2068${map.inputs[place]}\u2069 ${figure(weights[step][place])}`;
  }

  function showHead(index) {
    weights = map.heads[index];
    heads.forEach((button, other) => button.setAttribute("aria-pressed", String(other === index)));
    rows.forEach((row, chosen) => weights[chosen].forEach((weight, place) => {
      const cell = row.cells[place + 1];
      shade(cell, weight, map.top);
      cell.textContent = weight < 0.005 ? "" : weight.toFixed(2).replace(/^0/, "");
    }));
    showStep(step);
  }

  function point(event) {
    const target = event.target.closest("[data-step], [data-place], td, tbody tr");
    if (!target) return;
    if (target.dataset.step !== undefined) showStep(Number(target.dataset.step));
    else if (target.dataset.place !== undefined) showPlace(Number(target.dataset.place));
    else if (target.tagName === "TD") showCell(target);
    else showStep(target.sectionRowIndex);
  }

  function move(event) {
    const line = [outputs, inputs].find((tokens) => tokens.includes(event.target));
    const forward = map.direction === "rtl" && line === inputs ? "ArrowLeft" : "ArrowRight";
    if (!line || !event.key.startsWith("Arrow")) return;
    const next = line.indexOf(event.target) + (event.key === forward || event.key === "ArrowDown" ? 1 : -1);
    if (line[next]) line[next].focus();
    event.preventDefault();
  }

  section.addEventListener("pointerover", point);
  section.addEventListener("focusin", point);
  section.addEventListener("keydown", move);
  heads.forEach((button, index) => button.addEventListener("click", () => showHead(index)));
  showStep(0);
}

document.querySelectorAll("section[data-map]").forEach((section, index) => begin(section, looks.maps[index]));
