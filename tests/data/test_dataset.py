"""Encoded rows, in memory and on disk, drawn into batches."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seq2see.data.batches import Labels, Ragged, RaggedWriter, Sequences
from seq2see.data.columns import resolve
from seq2see.data.tables import read
from seq2see.errors import UserError
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe.schema import Recipe
from tests.data.helpers import Put, error_of

ROWS = [{"source": "a b c", "output": "x y"}, {"source": "", "output": "x"}, {"source": "b", "output": "y y y y"}]


def built(
    rows: list[dict[str, str]] = ROWS, *, folder: Path | None = None, training: bool = True, **output: Any
) -> Dataset:
    recipe = Recipe.model_validate({"inputs": {"source": {}}, "output": {"kind": "text", **output}})
    return Dataset.build(Fields.build(recipe, lambda: iter(rows)), iter(rows), folder=folder, training=training)


def test_batches_hold_the_rows_asked_for_in_the_order_asked_for() -> None:
    dataset = built()
    batch = dataset.batch([2, 0])
    source, target = batch.inputs["source"], batch.target
    assert isinstance(target, Sequences)
    assert batch.rows == [2, 0]
    assert dataset.fields.output.decode(target.ids[0]) == "y y y y"  # type: ignore[attr-defined]
    assert source.mask.tolist() == [[True, False, False], [True, True, True]]
    assert target.ids[0, 4] == 3
    assert target.ids[1].tolist()[2:] == [3, 0, 0]
    expected = dataset.fields.batch([ROWS[2], ROWS[0]], target=True)
    assert torch.equal(source.ids, expected.inputs["source"].ids)
    assert isinstance(expected.target, Sequences)
    assert torch.equal(target.ids, expected.target.ids)


def test_lengths_count_the_end_of_the_output() -> None:
    assert built().widths.tolist() == [[3, 3], [0, 2], [1, 5]]
    assert built().lengths.tolist() == [6, 2, 6]


def test_rows_with_long_outputs_are_left_out_of_training_only() -> None:
    training = built(max_length=3)
    assert (len(training), training.left_out) == (2, 1)
    whole = built(max_length=3, training=False)
    assert (len(whole), whole.left_out) == (3, 0)


def test_rows_of_which_only_the_beginning_is_read_are_counted() -> None:
    recipe = Recipe.model_validate({"inputs": {"a": {"max_length": 2}, "b": {}}})
    rows = [{"a": text, "b": text, "output": "x"} for text in ("i", "i j", "i j k", "i j k l")]
    dataset = Dataset.build(Fields.build(recipe, lambda: iter(rows)), iter(rows))
    assert dataset.cut == {"a": 2}
    assert dataset.widths[:, :2].tolist() == [[1, 1], [2, 2], [2, 3], [2, 4]]


def test_a_row_at_fault_leaves_no_file_open(tmp_path: Path) -> None:
    recipe = Recipe.model_validate({"inputs": {"a": {}}, "output": {"kind": "label"}})
    fields = Fields.build(recipe, lambda: iter([{"a": "x", "output": label} for label in ("no", "yes")]))
    closed: list[bool] = []

    def rows() -> Iterator[dict[str, str]]:
        try:
            yield {"a": "x", "output": "no"}
            yield {"a": "x", "output": "?"}
        finally:
            closed.append(True)

    given = rows()
    with pytest.raises(UserError, match="row 2: unknown label"):
        Dataset.build(fields, given, folder=tmp_path / "ids")
    assert closed == [True]
    if Path("/proc/self/fd").exists():
        held = [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]
        assert not [name for name in held if name.startswith(str(tmp_path))]


def test_on_disk_and_in_memory_are_the_same(tmp_path: Path) -> None:
    memory, disk = built(), built(folder=tmp_path / "ids")
    assert isinstance(disk.stores["output"].flat, np.memmap)
    for rows in ([0, 1, 2], [1], [2, 2]):
        one, other = memory.batch(rows), disk.batch(np.array(rows))
        assert torch.equal(one.inputs["source"].ids, other.inputs["source"].ids)
        assert torch.equal(one.inputs["source"].mask, other.inputs["source"].mask)


def test_all_inputs_empty_can_live_on_disk(tmp_path: Path) -> None:
    dataset = built([{"source": "", "output": "x"}] * 2, folder=tmp_path)
    assert dataset.batch([0, 1]).inputs["source"].ids.tolist() == [[0], [0]]


def test_ragged_rows_written_in_many_flushes_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2see.data.batches._FLUSH", 50)
    random = np.random.default_rng(0)
    rows = [random.integers(0, 2**31 - 1, size=n).tolist() for n in random.integers(0, 20, size=200)]
    writer = RaggedWriter(tmp_path / "rows")
    for row in rows:
        writer.append(row)
    stored = writer.finish()
    assert len(stored) == 200
    assert [stored[i].tolist() for i in range(200)] == rows
    assert stored.lengths.tolist() == [len(row) for row in rows]
    assert Ragged.open(tmp_path / "rows")[7].tolist() == rows[7]
    with pytest.raises(IndexError):
        stored[200]


def test_labels_are_drawn_too() -> None:
    recipe = Recipe.model_validate({"inputs": {"source": {}}, "output": {"kind": "label"}})
    rows = [{"source": "a", "output": label} for label in ("no", "yes", "no", "yes")]
    dataset = Dataset.build(Fields.build(recipe, lambda: iter(rows)), iter(rows))
    target = dataset.batch([3, 0, 1]).target
    assert isinstance(target, Labels)
    assert target.ids.tolist() == [1, 0, 1]


def test_an_unknown_label_in_dev_names_file_and_line(put: Put) -> None:
    recipe = Recipe.model_validate({"inputs": {"a": {}}, "output": {"kind": "label"}})
    train = [{"a": "x", "output": label} for label in ("no", "yes")]
    table = read(put("dev.tsv", "a\tlabel\nx\tno\ny\tmaybe\n"))
    found = resolve(table.columns, [("a", "a"), ("output", "label")], path=table.path)
    fields = Fields.build(recipe, lambda: iter(train))
    message = error_of(lambda: Dataset.build(fields, found.rows(table), training=False))
    assert message.endswith("dev.tsv, line 3: unknown label 'maybe'; known: no, yes")
    assert error_of(lambda: Dataset.build(fields, [{"a": "x", "output": "?"}])).startswith("row 1: unknown label")
