// A field for a file: dropped, pasted, picked, recorded, or that of an example.

import { exampleFile } from "../api.js";
import { fill, make } from "../dom.js";
import { recordButton } from "./record.js";
import { labelOf } from "./text.js";

const TAGS = { "audio/*": "audio", "video/*": "video" };

// input: {name, kind, noun: "an image", media: "image/*"}, as the server describes it.
export function fileField(input, submit) {
  const id = `entry-${input.name}`;
  const preview = make("div.preview");
  const chooser = make("input", { id, type: "file", accept: input.media || null });
  const hint = `Drop ${input.noun} here, paste it, or pick one`;
  const zone = make("label.drop", { for: id }, make("span", {}, hint), chooser, preview);
  const complaint = make("p.complaint", { role: "alert" });
  let value;
  let address = null;

  function show(source, name) {
    complaint.textContent = "";
    fill(preview, mediaElement(input.media, source), make("span.quiet", { dir: "auto" }, name));
    zone.classList.add("filled");
  }
  function take(file) {
    if (!file) return;
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(file);
    value = file;
    show(address, file.name);
    submit();
  }

  chooser.addEventListener("change", () => take(chooser.files[0]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  zone.addEventListener("paste", (event) => take(event.clipboardData.files[0]));
  const record = input.media === "audio/*" ? recordButton(take, (message) => { complaint.textContent = message; }) : null;
  return {
    name: input.name,
    kind: input.kind,
    element: make("div.field", {}, make("span.label", {}, ...labelOf(input)), zone, record, complaint),
    value: () => value,
    own: () => value instanceof Blob,
    // A file, or that of an example of this model: {example, file}.
    set(file, { model } = {}) {
      if (file instanceof Blob) {
        value = file;
        address = URL.createObjectURL(file);
        show(address, file.name);
      } else if (file) {
        value = { example: file.example };
        show(exampleFile(model, file.example, input.name), file.file);
      }
    },
    focus: () => chooser.focus(),
    complain() { complaint.textContent = `${input.name}: ${input.noun} is needed.`; },
  };
}

function mediaElement(media, source) {
  if (media === "image/*") return make("img", { src: source, alt: "" });
  const tag = TAGS[media];
  return tag ? make(tag, { src: source, controls: true, preload: "metadata" }) : null;
}
