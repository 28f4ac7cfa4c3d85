// The page of one model, which runs in this browser alone: the studio's form and panel, without its server.

import * as api from "studio/api.js";
import { EntryForm } from "studio/entry/form.js";
import { Panel } from "studio/panel.js";
import { themeSwitch } from "studio/theme.js";

const at = (id) => document.getElementById(id);

function start() {
  const record = JSON.parse(at("model").textContent);
  const model = api.open(record.engine, at("weights").textContent);
  const say = (text) => { at("said").textContent = text; };
  const panel = new Panel({ say, step() {} });
  const form = new EntryForm(at("entry"), { ask: (request) => panel.ask(request) });
  form.show(record.shown, { keep: false });
  panel.show(record.shown);
  at("panels").append(panel.element);
  form.start({});
  window.seq2see = model; // for the console: await seq2see.predict({ source: "india" }, { beam: 5 })
  document.body.dataset.state = "ready";
}

themeSwitch(at("theme"));
try {
  start();
} catch (error) {
  at("failure").textContent = `This browser cannot run the model: ${error.message}`;
  document.body.dataset.state = "failed";
  throw error;
}
