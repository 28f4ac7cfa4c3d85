"""Helpers of the tests of whole tasks: write a table, train a small model on it, compare it with two worse ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import seq2see
from seq2see.api import Model
from seq2see.pipeline.bundle import Bundle

Row = Mapping[str, object]

SMALL_TEXT = (
    "encoder.size=32",
    "encoder.dropout=0",
    "encoder.embedding.size=32",
    "encoder.embedding.dropout=0",
    "decoder.size=64",
    "decoder.dropout=0",
    "training.learning_rate=0.005",
    "training.threads=1",
    "training.precision=float32",
    "training.batch_tokens=600",
    "training.dev_rows=20",
    "training.report_every=600",
)
"""Sizes at which a test learns in seconds; all else is as the recipe says."""

SMALL_WRITER = ("decoder.embedding.size=32", "decoder.embedding.dropout=0", "search.max_length=20")
"""The same for decoders that read symbols."""


class RecordingListener:
    """A listener that keeps the messages of a run."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def on_update(self, status: object) -> None:
        pass

    def on_report(self, report: object, metric: str) -> None:
        pass

    def on_message(self, message: str) -> None:
        self.notes.append(message)

    def close(self) -> None:
        pass


@dataclass
class Trained:
    """A model loaded from its folder, with the held-out rows keyed by the recipe's names."""

    model: Model
    rows: list[dict[str, str]]
    listener: RecordingListener

    @property
    def untrained(self) -> Model:
        """The same model before its first update."""
        torch.manual_seed(2)
        bundle = Bundle.create(self.model.recipe, self.model.bundle.fields)
        bundle.network.eval()
        return Model(bundle)

    def mismatched(self, *names: str) -> list[dict[str, str]]:
        """The rows with these inputs (default: all) taken from the next row; a model that ignores them does as well."""
        names = names or tuple(self.model.recipe.inputs)
        neighbours = [*self.rows[1:], self.rows[0]]
        pairs = zip(self.rows, neighbours, strict=True)
        return [{**row, **{name: other[name] for name in names}} for row, other in pairs]


def write_table(path: Path, rows: Sequence[Row]) -> Path:
    """Rows as TSV, or as JSON lines where the name says so."""
    if path.suffix == ".jsonl":
        lines = [json.dumps(row) for row in rows]
    else:
        lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def learn(
    recipe: str | Mapping[str, object],
    rows: Sequence[Row],
    held_out: Sequence[Row],
    folder: Path,
    *,
    updates: int,
    overrides: Sequence[str],
    kind: str = "tsv",
) -> Trained:
    """Train as a user would, and load the model from its folder."""
    train = write_table(folder / f"train.{kind}", rows)
    test = write_table(folder / f"test.{kind}", held_out)
    listener = RecordingListener()
    seq2see.train(
        recipe, data=train, out=folder / "model", updates=updates, overrides=list(overrides), listeners=[listener]
    )
    model = seq2see.load(folder / "model")
    return Trained(model, [dict(row) for row in model.rows_of(test)], listener)


def split(rows: Sequence[Row], *, held_out: int = 40) -> tuple[list[Row], list[Row]]:
    """Training rows and held-out rows, without duplicates."""
    distinct = list({json.dumps(row, sort_keys=True): row for row in rows}.values())
    return distinct[held_out:], distinct[:held_out]
