"""seq2see as a worker: its own `train` with a trainer that waits between updates, its own `predict`."""

from __future__ import annotations

from pathlib import Path

import torch
from turns import Updates, answer, config, work

import seq2see
from seq2see.search import options as search_options
from seq2see.training import run
from seq2see.training.trainer import Trainer

TEXT = ["tokens=symbol", "vocabulary=0", "min_count=2"]
# OpenNMT-py drops numbers of the embeddings and of the vector that its output layer reads, none of a single recurrent
# layer's states. Here decoder.dropout acts twice, before and behind the readout: `half` is the share that two such
# layers need to keep as many numbers as one of {dropout} does.
RECURRENT = [
    "encoder.dropout=0",
    "encoder.embedding.dropout={dropout}",
    "attention.size=512",
    "decoder.dropout={half}",
    "decoder.embedding.dropout={dropout}",
    "decoder.tied=false",
    "decoder.readout=512",  # the peers' output layer also reads 512 numbers
]
TRANSFORMER = ["encoder.dropout={dropout}", "decoder.dropout={dropout}", "training.optimizer=adam"]
TRAINING = [
    "loss.label_smoothing=0",
    "training.learning_rate={rate}",
    "training.schedule=constant",
    "training.warmup=0",
    "training.clip=5",
    "training.batch_rows={batch}",
    "training.batch_tokens=1000000",
    "training.minutes=0",
    "training.epochs=0",
    "training.updates=1000000",
    "training.average=1",
    "training.ema={ema}",
    "training.film=0",
    "training.report_every=1000000",
    "training.checkpoint_every=1000000",
    "training.checkpoint_seconds=0",
    "training.precision={precision}",
    "training.threads={threads}",
]


class TrainerInTurns(Trainer):
    """A trainer that waits for the driver between updates."""

    turns: Updates | None = None

    def _update(self, batches: int) -> None:
        if self.turns is None:
            self.turns = Updates(self._save)
            answer(ready=True)
            self.turns.wait()
        before = self.state.seen
        super()._update(batches)
        self.turns.updated(self.state.seen - before)

    def _save(self, path: str) -> None:
        with self._averaged():
            self.bundle.save(Path(path))


def train() -> None:
    data, transformer = Path(config["data"]), config["model"] == "transformer"
    sizes = TRANSFORMER if transformer else RECURRENT
    overrides = [*(f"inputs.source.{key}" for key in TEXT), *(f"output.{key}" for key in TEXT), *sizes, *TRAINING]
    values = {**config, "half": 1 - (1 - config["dropout"]) ** 0.5}
    run.Trainer = TrainerInTurns  # type: ignore[attr-defined]
    seq2see.train(
        "translation-transformer" if transformer else "translation",
        data / "train.tsv",
        dev=data / "dev.tsv",
        out=Path(config["run"]),
        overrides=[override.format(**values) for override in overrides],
        overwrite=True,
        listeners=[],
    )


class Decoder:
    model: seq2see.Model

    def load(self, path: str) -> None:
        self.model = seq2see.load(path)

    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]:
        search_options.BATCH_ROWS, search_options.BATCH_TOKENS = batch, 1_000_000
        predictions = self.model.predict(sentences, beam=beam, n_best=1, replace_unknown=False)
        return [prediction.text or "" for prediction in predictions]


if __name__ == "__main__":
    torch.set_num_threads(config["threads"])
    work(train, Decoder)
