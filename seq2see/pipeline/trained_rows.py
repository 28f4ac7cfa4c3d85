"""Hashes of the rows a model was trained on, stored in its folder, so that evaluation on training rows is noticed.

A row has two hashes of 8 bytes: of its inputs, and of its inputs with its output. Texts are hashed in Unicode form NFC
with single spaces between words; files by their content (all of a small file, blocks from all over a large file), so
that a copy in another folder is the same file.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from seq2see.data.columns import OUTPUT, Values, as_written
from seq2see.data.split import prefixed
from seq2see.errors import UserError
from seq2see.evaluation.report import TrainingOverlap
from seq2see.files import read_bytes, shortened, write_bytes
from seq2see.pipeline.fields import unbuilt_fields
from seq2see.recipe import Recipe

FILE = "trained_rows.safetensors"
MAX_ROWS = 1 << 20
"""Rows that are kept (16 MB). Of larger tables those with the lowest hashes of inputs are kept: an even sample."""
MAX_BYTES = 16 * MAX_ROWS + (1 << 16)
"""Bytes of the file: two hashes of 8 bytes for every row, and a header."""

Hashes = NDArray[np.uint64]
Row = Mapping[str, str]
_ALL = (1 << 64) - 1


@dataclass
class TrainedRows:
    """Two hashes of each row a model was trained on; highest: the largest hash of inputs that is kept."""

    inputs: Hashes
    pairs: Hashes
    highest: int = _ALL

    def joined(self, other: TrainedRows | None) -> TrainedRows:
        """These rows and those of a model that training began from."""
        if other is None:
            return self
        recorder = Recorder(highest=min(self.highest, other.highest))
        for rows in (self, other):
            recorder.add_hashes(rows.inputs, rows.pairs)
        return recorder.finish()

    @property
    def ambiguous(self) -> Hashes:
        """Hashes of the inputs that have several outputs."""
        inputs, outputs = np.unique(self.inputs, return_counts=True)
        return np.asarray(inputs[outputs > 1])

    def save(self, folder: Path) -> None:
        highest = np.array([self.highest], dtype=np.uint64)
        write_bytes(folder / FILE, save({"inputs": self.inputs, "pairs": self.pairs, "highest": highest}))

    @classmethod
    def load(cls, folder: Path) -> TrainedRows | None:
        """None if a folder has no such file, as those of earlier versions."""
        path = folder / FILE
        if not path.exists():
            return None
        content = read_bytes(path, most=MAX_BYTES, what="a file of hashes of rows")
        try:
            stored = load(content)
            inputs, pairs, highest = (stored[name] for name in ("inputs", "pairs", "highest"))
        except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
            raise UserError(f"{path}: damaged, not a file of hashes of rows: {shortened(str(error))}") from None
        if any(part.dtype != np.uint64 or part.ndim != 1 for part in (inputs, pairs, highest)):
            raise UserError(f"{path}: damaged: inputs, pairs and highest have to be lists of numbers of type U64")
        if len(inputs) != len(pairs) or len(highest) != 1:
            raise UserError(
                f"{path}: damaged: {len(inputs):,} hashes of inputs, {len(pairs):,} of pairs and {len(highest):,} "
                "highest; as many pairs as inputs and one highest are expected"
            )
        return cls(inputs, pairs, int(highest[0]))


@dataclass
class Recorder:
    """Collects the rows of a training; `add` is called once for each."""

    hasher: RowHasher | None = None
    highest: int = _ALL
    _inputs: array[int] = field(default_factory=lambda: array("Q"))
    _pairs: array[int] = field(default_factory=lambda: array("Q"))

    @classmethod
    def of(cls, recipe: Recipe) -> Recorder:
        return cls(RowHasher(recipe))

    def add(self, row: Row) -> None:
        assert self.hasher is not None
        inputs, pair = self.hasher(row)
        if inputs > self.highest:
            return
        self._inputs.append(inputs)
        self._pairs.append(pair)
        if len(self._pairs) >= 2 * MAX_ROWS:
            self.add_hashes(np.empty(0, np.uint64), np.empty(0, np.uint64))

    def add_lines(self, lines: Iterable[str]) -> Iterator[str]:
        """Pass on the lines of a stream; each line that is not empty counts as a row."""
        for line in lines:
            if line.strip():
                self.add({OUTPUT: line})
            yield line

    def add_hashes(self, inputs: Hashes, pairs: Hashes) -> None:
        """Add rows by their hashes. Duplicates are removed; of too many rows, the highest hashes are dropped."""
        inputs = np.concatenate([np.frombuffer(self._inputs, np.uint64), inputs])
        pairs = np.concatenate([np.frombuffer(self._pairs, np.uint64), pairs])
        order = np.lexsort((pairs, inputs))
        inputs, pairs = inputs[order], pairs[order]
        new = np.ones(len(inputs), dtype=bool)
        new[1:] = (inputs[1:] != inputs[:-1]) | (pairs[1:] != pairs[:-1])
        inputs, pairs = inputs[new], pairs[new]
        kept = int(np.searchsorted(inputs, np.uint64(self.highest), side="right"))
        while kept > MAX_ROWS:
            self.highest //= 2
            kept = int(np.searchsorted(inputs, np.uint64(self.highest), side="right"))
        self._inputs, self._pairs = array("Q", inputs[:kept].tobytes()), array("Q", pairs[:kept].tobytes())

    def finish(self) -> TrainedRows:
        self.add_hashes(np.empty(0, np.uint64), np.empty(0, np.uint64))
        inputs, pairs = (np.frombuffer(part, np.uint64).copy() for part in (self._inputs, self._pairs))
        return TrainedRows(inputs, pairs, self.highest)


class RowHasher:
    """(hash of the inputs, hash of inputs and output) of rows by a recipe's names; without inputs both are the same."""

    def __init__(self, recipe: Recipe):
        self.fields = unbuilt_fields(recipe)
        self.names = list(recipe.inputs)
        self._contents: dict[str, bytes] = {}

    def __call__(self, row: Row) -> tuple[int, int]:
        digest = blake2b(digest_size=8)
        for name in self.names:
            digest.update(self._value(name, row[name]))
        pair = digest.copy() if self.names else digest
        pair.update(self._value(OUTPUT, row[OUTPUT]))
        return int.from_bytes(digest.digest(), "little"), int.from_bytes(pair.digest(), "little")

    def _value(self, name: str, value: str) -> bytes:
        field = self.fields[name]
        if not field.settings.file:
            content = field.content(value)
        else:
            if value not in self._contents:
                self._contents[value] = field.content(value)
            content = self._contents[value]
        return prefixed(content)


def training_overlap(
    models: Sequence[tuple[Recipe, TrainedRows | None]], rows: Sequence[Row]
) -> TrainingOverlap | None:
    """How many of the rows any of the models was trained on; None if that is not known of any model."""
    known = [(recipe, trained) for recipe, trained in models if trained is not None]
    if not known:
        return None
    rows = [row for row in rows if known[0][0].inputs or row[OUTPUT].strip()]  # empty lines of a stream are not rows
    hasher = RowHasher(known[0][0])
    hashes = np.array([hasher(row) for row in rows], dtype=np.uint64).reshape(-1, 2)
    checked, exactly, inputs = (np.zeros(len(rows), dtype=bool) for _ in range(3))
    for recipe, trained in known:
        checked |= hashes[:, 0] <= np.uint64(trained.highest)
        exactly |= np.isin(hashes[:, 1], trained.pairs)
        if recipe.inputs:
            inputs |= np.isin(hashes[:, 0], trained.inputs)
    return TrainingOverlap(len(rows), _count(checked), _count(exactly), _count(inputs & ~exactly))


def _count(these: NDArray[Any]) -> int:
    return int(np.count_nonzero(these))


EXAMPLES_FROM = 100_000
"""Rows among which an example of an input with several outputs is looked for."""


def ambiguous_inputs(recipe: Recipe, trained: TrainedRows, held: Sequence[Row], rows: Iterable[Row]) -> list[str]:
    """A note on inputs that have several outputs, of which a model can give one.

    held: rows of the same table that are set aside, none of whose inputs is trained on; rows: all of them, for an
    example.
    """
    if not recipe.inputs or recipe.generated_labels:
        return []
    recorder = Recorder.of(recipe)
    for row in held:
        recorder.add(row)
    parts = [trained, recorder.finish()]
    several = np.concatenate([part.ambiguous for part in parts])
    if not len(several):
        return []
    total = sum(len(np.unique(part.inputs)) for part in parts)
    among = f"{total:,} inputs" if trained.highest == _ALL else f"a sample of {total:,} inputs"
    example = _example(RowHasher(recipe), set(several.tolist()), rows)
    have = "has" if len(several) == 1 else "have"
    return [f"{len(several):,} of {among} {have} several outputs{f', for example {example}' if example else ''}"]


def _example(hasher: RowHasher, several: set[int], rows: Iterable[Row]) -> str:
    """The first of these inputs with two of its outputs and where they are; empty where the rows have none."""
    first: dict[int, tuple[int, str]] = {}
    for number, row in enumerate(islice(rows, EXAMPLES_FROM), start=1):
        inputs, pair = hasher(row)
        if inputs not in several:
            continue
        place = row.table.place_inside(row.line) if isinstance(row, Values) else f"row {number}"
        output = f"{shortened(as_written(row, OUTPUT), 40)} ({place})"
        before = first.setdefault(inputs, (pair, output))
        if before[0] != pair:
            shown = " + ".join(shortened(as_written(row, name), 40) for name in hasher.names)
            return f"{shown}: {before[1]} and {output}"
    return ""
