// A recording from the microphone as a WAV file, whatever format the browser records.

import { make } from "../dom.js";

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

// Samples from -1 to 1 as a WAV file: one channel, 16 bits.
export function wav(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + samples.length * 2));
  const write = (at, text) => [...text].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, 36 + samples.length * 2, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, samples.length * 2, true);
  const level = (sample) => Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
  samples.forEach((sample, at) => view.setInt16(44 + at * 2, level(sample), true));
  return view.buffer;
}
