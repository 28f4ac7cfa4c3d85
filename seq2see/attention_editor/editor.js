// The attention editor of notebooks (seq2see/attention_editor): draws `shown`, sends `edits` ({step: weights}).
// Texts are put in as text, never as HTML: places and outputs are the user's data.

const KEYS = { ArrowUp: 0.05, ArrowDown: -0.05, PageUp: 0.25, PageDown: -0.25 };

function make(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  element.classList.add(...classes);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.flat());
  return element;
}

const visible = (symbol) => (symbol.trim() === "" ? "␣" : symbol);
const bdi = (text) => make("bdi", {}, visible(text));
const figure = (weight) => weight.toFixed(2).replace(/^0/, "");

// Raise or lower one place to `value`; the others keep their proportions, so that weights sum to one.
export function moved(weights, place, value) {
  if (weights.length === 1) return [1];
  const wanted = Math.min(1, Math.max(0, value));
  const rest = weights.reduce((sum, weight, at) => (at === place ? sum : sum + weight), 0);
  return weights.map((weight, at) => {
    if (at === place) return wanted;
    return rest > 1e-9 ? (weight / rest) * (1 - wanted) : (1 - wanted) / (weights.length - 1);
  });
}

export const alone = (place, count) => Array.from({ length: count }, (_, at) => (at === place ? 1 : 0));

function output(title, drawn, { step, other, choose }) {
  const tokens = drawn.outputs.map((symbol, at) => {
    const token = make("button.token", { type: "button", "aria-pressed": String(at === step) }, bdi(symbol));
    if (drawn.probabilities.length) token.append(make("small", {}, `${Math.round(drawn.probabilities[at] * 100)} %`));
    token.classList.toggle("changed", other !== null && symbol !== other.outputs[at]);
    token.addEventListener("click", () => choose(at));
    return token;
  });
  return make("section.output", { "aria-label": title },
    make("h4", {}, title), make("p.answer", { dir: "auto" }, drawn.answer), make("div.tokens", {}, tokens));
}

function heatmap(drawn, places, { step, steps, choose, look }) {
  const rows = drawn.weights.map((weights, at) => {
    const cells = weights.map((weight, place) => {
      const name = `at step ${at} look only at ${visible(places[place])}`;
      const cell = make("td", { title: `weight ${weight.toFixed(3)}; click: ${name}` }, weight < 0.005 ? "" : figure(weight));
      cell.style.setProperty("--w", weight.toFixed(3));
      cell.classList.toggle("strong", weight > 0.55);
      cell.addEventListener("click", () => look(at, place));
      return cell;
    });
    const head = make("th", { scope: "row" }, bdi(drawn.outputs[at] ?? ""));
    head.addEventListener("click", () => choose(at));
    const row = make("tr", {}, head, cells);
    row.classList.toggle("chosen", at === step);
    row.classList.toggle("edited", steps.includes(at));
    return row;
  });
  const heads = places.map((place) => make("th", { scope: "col" }, bdi(place)));
  return make("div.scroll", {}, make("table", {}, make("caption", {}, "Attention: a row for each output, a column for each place"),
    make("thead", {}, make("tr", {}, make("td"), heads)), make("tbody", {}, rows)));
}

// One step's weights as bars: drag, or arrow keys; Enter looks there alone.
function bars(weights, places, step, send) {
  let now = [...weights];
  const all = places.map((place, at) => make("div.bar", {
    role: "slider", tabindex: "0", "aria-label": `weight of ${visible(place)}`, "aria-valuemin": "0", "aria-valuemax": "1", "data-place": at,
  }, make("span.figure", { "aria-hidden": "true" }), make("span.track", {}, make("i")), bdi(place)));
  const show = () => all.forEach((bar, at) => {
    bar.style.setProperty("--h", now[at].toFixed(4));
    bar.setAttribute("aria-valuenow", now[at].toFixed(3));
    bar.firstChild.textContent = figure(now[at]);
  });
  const change = (next) => { now = next; show(); };
  const element = make("div.bars", { role: "group", "aria-label": `attention weights of step ${step}` }, all);
  let held = null;
  const drag = (event) => {
    const box = all[held].querySelector(".track").getBoundingClientRect();
    change(moved(now, held, (box.bottom - event.clientY) / box.height));
  };
  element.addEventListener("pointerdown", (event) => {
    const bar = event.target.closest(".track")?.closest(".bar");
    if (!bar || event.button !== 0) return;
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
    held = Number(bar.dataset.place);
    drag(event);
  });
  element.addEventListener("pointermove", (event) => { if (held !== null) drag(event); });
  const end = () => {
    if (held !== null) send(now, held);
    held = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("keydown", (event) => {
    const place = all.indexOf(event.target);
    if (place < 0) return;
    if (event.key in KEYS) change(moved(now, place, now[place] + KEYS[event.key]));
    else if (event.key === "Enter" || event.key === " ") change(alone(place, now.length));
    else return;
    event.preventDefault();
    event.stopPropagation(); // a notebook has keys of its own
    send(now, place);
  });
  show();
  return element;
}

function render({ model, el }) {
  let step = 0;
  const past = [];
  const root = make("div.seq2see-editor");
  el.append(root);

  function send(edits) {
    const before = model.get("edits");
    if (JSON.stringify(edits) === JSON.stringify(before)) { // no answer would come
      delete root.dataset.focus;
      return draw();
    }
    past.push(before);
    apply(edits);
  }
  function apply(edits) {
    root.dataset.state = "waiting";
    model.set("edits", edits);
    model.save_changes();
  }
  function button(text, enabled, act) {
    const made = make("button.action", { type: "button" }, text);
    made.disabled = !enabled;
    made.addEventListener("click", act);
    return made;
  }
  function draw(focus = null) {
    const { places, original, edited, steps, error, notice } = model.get("shown");
    step = Math.min(step, edited.weights.length - 1);
    const choose = (at) => { step = at; draw(); };
    const edit = (at, weights) => send({ ...model.get("edits"), [at]: weights });
    const look = (at, place) => { step = at; edit(at, alone(place, places.length)); };
    const own = make("div.columns", {},
      output("Original", original, { step, other: null, choose }),
      output(steps.length ? "With your attention" : "With your attention: nothing edited yet", edited, { step, other: original, choose }));
    const actions = make("div.actions", {},
      button("Undo", past.length, () => apply(past.pop())),
      button("Reset", steps.length || error, () => send({})));
    const weights = bars(edited.weights[step], places, step, (now, place) => { root.dataset.focus = place; edit(step, now); });
    const symbol = make("p.step", {}, `Step ${step}, which writes `, bdi(edited.outputs[step] ?? ""),
      ": drag a bar, or click a cell above to look only there.");
    const messages = [error && make("p.error", { role: "alert" }, error), notice && make("p.notice", { role: "status" }, notice)].filter(Boolean);
    root.replaceChildren(own, heatmap(edited, places, { step, steps, choose, look }), symbol, weights, actions, ...messages);
    root.dataset.state = "ready";
    if (focus !== null) root.querySelectorAll(".bar")[focus]?.focus({ preventScroll: true });
  }
  const changed = () => {
    const focus = root.dataset.focus;
    delete root.dataset.focus;
    draw(focus === undefined ? null : Number(focus));
  };
  model.on("change:shown", changed);
  draw();
  return () => model.off("change:shown", changed);
}

export default { render };
