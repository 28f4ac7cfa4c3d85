// A recording from the microphone, as a WAV file, which every server reads whatever the browser records in.

import { make } from "../dom.js";
import { wav } from "./wav.js";

export function recordButton(take, complain) {
  if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) return null;
  const button = make("button.record", { type: "button", "aria-pressed": "false" }, "Record");
  let recorder = null;

  async function begin() {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    const parts = [];
    recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    recorder.addEventListener("stop", async () => {
      stream.getTracks().forEach((track) => track.stop());
      show(false);
      try {
        take(await asWav(new Blob(parts)));
      } catch {
        complain("Nothing could be heard in the recording.");
      }
    });
    recorder.start();
    show(true);
  }
  function show(on) {
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Stop" : "Record";
  }
  button.addEventListener("click", () => {
    if (recorder?.state === "recording") recorder.stop();
    else begin().catch(() => complain("There is no microphone, or this page may not use it."));
  });
  return button;
}

async function asWav(blob) {
  const context = new AudioContext();
  try {
    const sound = await context.decodeAudioData(await blob.arrayBuffer());
    return new File([wav(sound.getChannelData(0), sound.sampleRate)], "recording.wav", { type: "audio/wav" });
  } finally {
    await context.close();
  }
}
