"""seq2see beside OpenNMT-py, Joey NMT and CTranslate2 on the same words of multi30k: speed, memory, time to a BLEU.

Every engine is a process of its own in an environment of its own. In each round each of them in turn trains some
updates (decodes some sentences) while the others sleep; start-up and the first ten updates are not measured. Embeddings
256, bidirectional GRU 256, GRU 512, additive attention, batches of 80 sentences, Adam, words seen twice.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sacrebleu
from data import data_folder, prepare, read_lines
from install import install
from tables import UNFAIR, Row, table
from workers import PROJECT, Engine, Worker

FLOAT32, AUTO = "seq2see float32", "seq2see auto"
OURS = [
    Engine(FLOAT32, "ours.py", options=(("precision", "float32"),)),
    Engine(AUTO, "ours.py", options=(("precision", "auto"),)),
]
OPENNMT = Engine("OpenNMT-py", "opennmt.py", "opennmt")
JOEY = Engine("Joey NMT", "joey.py", "joey")
TRAINED = {"recurrent": [*OURS, OPENNMT, JOEY], "transformer": [*OURS, OPENNMT]}

DECODER = Engine("seq2see", "ours.py")
RUNTIME = [
    Engine("seq2see runtime", "runtime.py"),
    Engine("seq2see runtime int8", "runtime.py"),
    Engine("seq2see runtime int8 shortlist", "runtime.py"),
]
CTRANSLATE2 = [
    Engine("CTranslate2 float32", "ct2.py", "ct2", options=(("compute", "float32"),)),
    Engine("CTranslate2 int8", "ct2.py", "ct2", options=(("compute", "int8"),)),
]
DECODED = {
    "recurrent": [DECODER, *RUNTIME, OPENNMT, JOEY],
    "transformer": [DECODER, *RUNTIME, OPENNMT, *CTRANSLATE2],
}
SEARCHES = {
    "greedy, batch 64": (1, 64),
    "beam 5, batch 64": (5, 64),
    "greedy, batch 1": (1, 1),
    "beam 5, batch 1": (5, 1),
}

WARM_UP = 10
BLEU_EVERY = 100
DROPOUT, BATCH = 0.3, 80
RATES = {"recurrent": 0.001, "transformer": 0.0005}


class Comparison:
    """Everything that one run of the benchmark has: its options, its folders, and what it has measured."""

    def __init__(self, options: argparse.Namespace, versions: dict[str, dict[str, str]]):
        self.options = options
        self.peers = Path(options.peers).resolve()
        self.work = Path(options.work or self.peers / "work").resolve()
        self.data = prepare(data_folder(options.data), self.work / "data")
        self.measured: dict[str, Any] = {"conditions": {**conditions(options), "versions": versions}}
        self.rows: list[Row] = []
        self.notes: list[str] = []

    def worker(self, engine: Engine, mode: str, model: str, **config: Any) -> Worker:
        name = f"{mode}-{model}-{engine.name.replace(' ', '-')}"
        rate = self.options.rate or RATES[model]
        settings = {"batch": BATCH, "rate": rate, "dropout": DROPOUT, "threads": self.options.threads, "ema": 0.0}
        folder = self.work / "runs" / name
        return Worker(
            engine,
            self.peers,
            self.work / "logs" / f"{name}.log",
            **{"mode": mode, "model": model, "data": str(self.data), "run": str(folder), **settings, **config},
        )

    def trained(self, engine: Engine, model: str) -> Path:
        """Where the weights lie that are decoded with."""
        return self.work / "models" / f"{Path(engine.script).stem}-{model}-{self.options.fit}"

    # ------------------------------------------------------------ training

    def train(self, model: str) -> None:
        """Rows 1, 5 and 6: target words a second, and the most memory."""
        rounds: dict[str, list[dict[str, Any]]] = {engine.name: [] for engine in TRAINED[model]}
        with ExitStack() as stack:
            workers = [stack.enter_context(self.worker(engine, "train", model)) for engine in TRAINED[model]]
            for worker in workers:
                worker.ask("train", updates=WARM_UP)
            for number in range(self.options.rounds):
                for worker in rotated(workers, number):
                    rounds[worker.engine.name].append(worker.ask("train", updates=self.options.updates))
                self.say(f"{model}, training, round {number + 1}", rounds, "tokens")
            if "decoding" in self.options.parts:
                done = WARM_UP + self.options.rounds * self.options.updates
                for worker in workers:
                    self.fit(worker, model, done)
        self.measured[f"training, {model}"] = rounds
        own = [engine.name for engine in OURS]
        speed = {name: [each["tokens"] / each["seconds"] for each in values] for name, values in rounds.items()}
        memory = {name: [values[-1]["megabytes"]] for name, values in rounds.items()}
        self.rows += [
            Row(f"{model}: training, target tokens/s", speed, own=own),
            Row(f"{model}: training, peak memory, MB", memory, higher=False, own=own),
        ]

    def fit(self, worker: Worker, model: str, done: int) -> None:
        """Train on to the weights that are decoded with, unless an earlier run has left them."""
        path = self.trained(worker.engine, model)
        if path.exists() or worker.engine.name == FLOAT32:
            return
        print(f"{worker.engine.name}, {model}: on to update {self.options.fit}, to decode with", flush=True)
        if self.options.fit > done:
            worker.ask("train", updates=self.options.fit - done)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.unfinished")
        worker.ask("save", path=str(unfinished))
        unfinished.rename(path)

    # ------------------------------------------------------------ decoding

    def decode(self, model: str) -> None:
        """Rows 2 and 5: sentences and target words a second on the same sentences."""
        missing = [engine for engine in TRAINED[model][1:] if not self.trained(engine, model).exists()]
        names = ", ".join(engine.name for engine in missing)
        if any(engine.name == AUTO for engine in missing):
            raise SystemExit(f"no weights of {names} after {self.options.fit} updates: run training first")
        if missing:
            self.notes.append(f"{model}: {names} left out, of which there are no weights of {self.options.fit} updates")
        sources, references = self.test_sentences()
        with ExitStack() as stack:
            there = [engine for engine in DECODED[model] if engine not in missing]
            workers = [stack.enter_context(self.worker(engine, "decode", model)) for engine in there]
            for worker in workers:
                worker.ask("load", path=str(self.weights(worker.engine, model)))
            for search, (beam, batch) in SEARCHES.items():
                some = len(sources) if batch > 1 else self.options.single
                picked = range(0, len(sources), max(len(sources) // some, 1))
                asked = [sources[i] for i in picked]
                rounds: dict[str, list[dict[str, Any]]] = {worker.engine.name: [] for worker in workers}
                for worker in workers:
                    worker.ask("decode", sentences=asked[:batch], beam=beam, batch=batch)  # warm-up
                for number in range(self.options.rounds):
                    for worker in rotated(workers, number):
                        rounds[worker.engine.name].append(worker.ask("decode", sentences=asked, beam=beam, batch=batch))
                    self.say(f"{model}, {search}, round {number + 1}", rounds, "sentences")
                self.add_decoding(f"{model}: {search}", rounds, [references[i] for i in picked])

    def add_decoding(self, title: str, rounds: dict[str, list[dict[str, Any]]], references: list[str]) -> None:
        bleu, lengths = {}, {"references": sum(len(text.split()) + 1 for text in references) / len(references)}
        for name, values in rounds.items():
            outputs = [each.pop("outputs") for each in values]
            bleu[name], lengths[name] = bleu_of(outputs[-1], references), values[-1]["tokens"] / len(references)
        self.measured[title] = {"rounds": rounds, "bleu": bleu, "words a sentence": lengths}
        for unit in ("sentences", "tokens"):
            speed = {name: [each[unit] / each["seconds"] for each in values] for name, values in rounds.items()}
            self.rows.append(
                Row(f"{title}, {unit}/s", speed, digits=1, own=[each.name for each in (DECODER, *RUNTIME)])
            )
        said = [f"{name} {value:.1f} and {lengths[name]:.1f}" for name, value in bleu.items()]
        self.notes.append(
            f"{title}: BLEU and words a sentence {', '.join(said)}; references {lengths['references']:.1f} words"
        )

    def test_sentences(self) -> tuple[list[str], list[str]]:
        """Test sentences of all lengths, the longest first, so that no engine pads more than it must."""
        pairs = list(zip(read_lines(self.data / "test.en"), read_lines(self.data / "test.de"), strict=True))
        pairs = sorted(pairs[: self.options.sentences], key=lambda pair: -len(pair[0].split()))
        return [source for source, _ in pairs], [target for _, target in pairs]

    def weights(self, engine: Engine, model: str) -> Path:
        """The weights an engine decodes with; the runtime and CTranslate2 have ours, exported."""
        if engine not in (*RUNTIME, *CTRANSLATE2):
            return self.trained(engine, model)
        int8, own = "int8" in engine.name, self.trained(DECODER, model)
        form = "onnx" if engine in RUNTIME else "ctranslate2"
        shortlist = "shortlist" in engine.name
        kind = f"{'int8' if int8 else 'float32'}{'-shortlist' * shortlist}"
        exported = own.with_name(f"{own.name}-{form}-{kind}")
        if not exported.exists():
            command = [sys.executable, "-m", "seq2see", "export", own, "--to", form, "--out", exported]
            command += ["--int8"] * int8 + ["--shortlist", self.data / "train.tsv"] * shortlist
            subprocess.run([str(part) for part in command], check=True, env={**os.environ, "PYTHONPATH": PROJECT})
        return exported

    # ------------------------------------------------------------ time to a BLEU

    def time_to_bleu(self) -> None:
        """Row 3: seconds from a cold start (start-up and training, not the evaluations) to a BLEU on dev, greedy.

        Both engines keep a moving average of their weights where --ema asks for one.
        """
        sources, references = read_lines(self.data / "dev.en"), read_lines(self.data / "dev.de")
        taken: dict[str, list[float]] = {}
        pairs = {"ours": (OURS[1], DECODER), "opennmt": (OPENNMT, OPENNMT)}
        for engine, decoder in (pairs[name] for name in self.options.bleu_engines):
            curve: list[tuple[int, float, float]] = []
            path = self.work / "models" / f"{Path(engine.script).stem}-cold"
            path.parent.mkdir(parents=True, exist_ok=True)
            with (
                self.worker(engine, "train", "recurrent", ema=self.options.ema) as worker,
                self.worker(decoder, "decode", "recurrent") as judge,
            ):
                seconds, bleu = worker.start_up, 0.0
                while bleu < self.options.bleu and len(curve) * BLEU_EVERY < self.options.bleu_updates:
                    seconds += worker.ask("train", updates=BLEU_EVERY)["seconds"]
                    worker.ask("save", path=str(path))
                    judge.ask("load", path=str(path))
                    bleu = bleu_of(judge.ask("decode", sentences=sources, beam=1, batch=64)["outputs"], references)
                    curve.append(((len(curve) + 1) * BLEU_EVERY, seconds, bleu))
                    print(f"{engine.name}: update {curve[-1][0]}, {seconds:.0f} s, BLEU {bleu:.1f}", flush=True)
            self.measured[f"time to BLEU, {engine.name}"] = curve
            taken[engine.name] = [seconds if bleu >= self.options.bleu else float("nan")]
        self.rows.append(Row(f"seconds to BLEU {self.options.bleu:g} on dev", taken, higher=False, own=[AUTO]))

    # ------------------------------------------------------------ words

    def say(self, what: str, rounds: dict[str, list[dict[str, Any]]], unit: str) -> None:
        speeds = [f"{name} {values[-1][unit] / values[-1]['seconds']:,.1f}" for name, values in rounds.items()]
        print(f"{what}: {unit}/s {', '.join(speeds)}", flush=True)

    def report(self) -> None:
        print("\n" + table(self.rows) + "\n\n" + UNFAIR + "\n\n" + "\n".join(self.notes))
        out = Path(self.options.out or self.work / "results.json")
        out.write_text(json.dumps(self.measured, indent=1), encoding="utf-8")
        print(f"\nall rounds: {out}")


def bleu_of(outputs: list[str], references: list[str]) -> float:
    """BLEU of tokenised outputs beside tokenised references, as all engines write and learn them."""
    return float(sacrebleu.corpus_bleu(outputs, [references], tokenize="none", force=True).score)


def rotated(workers: list[Worker], number: int) -> list[Worker]:
    """Another one begins in each round."""
    start = number % len(workers)
    return workers[start:] + workers[:start]


def conditions(options: argparse.Namespace) -> dict[str, Any]:
    cpu = Path("/proc/cpuinfo")
    names = [line for line in cpu.read_text().splitlines() if line.startswith("model name")] if cpu.exists() else []
    machine = names[0].partition(":")[2].strip() if names else platform.processor()
    return {"options": vars(options), "machine": machine, "cores": os.cpu_count(), "load at start": os.getloadavg()}


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--peers", default=str(PROJECT / ".peers"), help="folder of the environments and results")
    parser.add_argument("--work", help="folder of models and results (default: work, below --peers)")
    parser.add_argument("--data", help="folder of data sets (SEQ2SEE_DATA, or ../shared/data)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20, help="updates of each engine in a round")
    parser.add_argument("--fit", type=int, default=600, help="updates of the models that are decoded with (kept)")
    parser.add_argument("--sentences", type=int, default=192, help="test sentences that are decoded")
    parser.add_argument("--single", type=int, default=24, help="... and one by one")
    parser.add_argument("--models", nargs="+", choices=list(TRAINED), default=list(TRAINED))
    parser.add_argument("--parts", nargs="*", choices=["training", "decoding"], default=["training", "decoding"])
    parser.add_argument("--bleu", type=float, default=0.0, help="also the time to this BLEU on dev, such as 30 (long)")
    parser.add_argument("--bleu-engines", nargs="+", choices=["ours", "opennmt"], default=["ours", "opennmt"])
    parser.add_argument("--ema", type=float, default=0.0, help="... with a moving average of the weights, such as 0.99")
    parser.add_argument("--rate", type=float, default=0.0, help="learning rate of all (0: 0.001, Transformers 0.0005)")
    parser.add_argument("--bleu-updates", type=int, default=10_000, help="... given up after so many updates")
    parser.add_argument("--out", help="file of all rounds (default: results.json in --work)")
    return parser.parse_args()


def main() -> None:
    options = read_options()
    comparison = Comparison(options, install(Path(options.peers).resolve()))
    for model in options.models:
        if "training" in options.parts:
            comparison.train(model)
        if "decoding" in options.parts:
            comparison.decode(model)
    if options.bleu:
        comparison.time_to_bleu()
    comparison.report()


if __name__ == "__main__":
    main()
