"""Search among more vectors than are compared one by one: against the exact search, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.api import Model
from seq2see.errors import UserError
from seq2see.pipeline import row_index
from seq2see.pipeline.bundle import ROW_INDEX
from seq2see.pipeline.row_index import RowIndex, Texts, bounds_of
from seq2see.pipeline.vector_cells import Cells
from seq2see.pipeline.weights import read_header, read_tensors, write_tensors

ROWS, STEPS, SIZE = 6_000, 3, 32


def clustered(count: int) -> np.ndarray:
    """Unit vectors around 200 centres, as far from them as they are from the origin."""
    draw = np.random.default_rng(5)
    centres = draw.normal(size=(200, SIZE))
    vectors = centres[draw.integers(200, size=count)] + draw.normal(size=(count, SIZE))
    return np.asarray((vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16))


@pytest.fixture(scope="module")
def large() -> tuple[RowIndex, np.ndarray]:
    """An index, and vectors to look for."""
    vectors = clustered(ROWS * STEPS + 200)
    made = RowIndex(
        columns=["source"],
        values=Texts.of(["a", "A"] * ROWS, longest=9),
        vocabulary=Texts.of(["A"], longest=9),
        symbols=np.zeros(ROWS * STEPS, dtype=np.int32),
        inputs=vectors[:ROWS],
        steps=vectors[: ROWS * STEPS],
        starts=bounds_of([STEPS] * ROWS),
    )
    return made, vectors[ROWS * STEPS :].astype(np.float32)


def test_the_nearest_five_are_nearly_always_those_of_the_exact_search(
    large: tuple[RowIndex, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact, wanted = large
    monkeypatch.setattr(row_index, "EXACT_VECTORS", 5_000)
    cells = {name: Cells.of(getattr(exact, name)) for name in ("inputs", "steps")}
    RowIndex(**{**vars(exact), "cells": cells}).save(tmp_path / ROW_INDEX)
    loaded = RowIndex.load(tmp_path / ROW_INDEX, columns=["source"], weights="")
    found = {"inputs": 0, "steps": 0}
    for vector in wanted:
        unit = vector / np.linalg.norm(vector)
        assert len(loaded.cells["steps"].near(unit)) < ROWS * STEPS / 7, "an eighth, and the rest of a cell"
        for name, search in (("inputs", RowIndex.nearest_inputs), ("steps", RowIndex.nearest_steps)):
            right, near = search(exact, vector, 5), search(loaded, vector, 5)
            assert len(near) == 5
            assert near == sorted(near, key=lambda each: -each[-1])
            cosines = getattr(exact, name).astype(np.float32) @ unit
            for row, *step, cosine in near:
                place = row * STEPS + step[0] if step else row
                assert cosine == pytest.approx(cosines[place], abs=1e-5)
            found[name] += len({each[:-1] for each in near} & {each[:-1] for each in right})
    assert min(found.values()) / (5 * len(wanted)) > 0.9, found


@pytest.fixture
def indexed(model: Model, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """A model with an index that is searched by cells, of the 64 rows as of their 256 steps."""
    monkeypatch.setattr(row_index, "EXACT_VECTORS", 50)
    model.save(tmp_path / "run")
    seq2see.load(tmp_path / "run").index_rows(table, rows=1_000)
    return seq2see.load(tmp_path / "run")


def test_a_training_row_is_nearest_to_itself(indexed: Model) -> None:
    for step in (None, 1):
        (near, *_) = indexed.nearest_rows("bex", step=step, target=None if step is None else "BEX")
        assert (near.input, near.step, round(near.cosine, 2)) == ("bex", step, 1.0)
    assert indexed.bundle.row_index is not None
    assert set(indexed.bundle.row_index.cells) == {"inputs", "steps"}


def test_without_the_library_fewer_rows_are_indexed(
    indexed: Model, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert indexed.nearest_rows("bex"), "a search does not need it"
    with pytest.raises(UserError, match=r"pip install 'seq2see\[nearest\]'; or index fewer rows \(--rows\)"):
        indexed.index_rows(table, rows=1_000)
    indexed.index_rows(table)
    assert indexed.bundle.row_index is not None
    assert (len(indexed.bundle.row_index.steps), indexed.bundle.row_index.cells) == (48, {})


DAMAGE: dict[str, Any] = {
    "no cells": lambda tensors: {name: tensor for name, tensor in tensors.items() if name != "steps_cells"},
    "cells of other vectors": lambda tensors: tensors | {"steps_cells": tensors["inputs_cells"].clone()},
    "a cell that is not there": lambda tensors: tensors | {"steps_cells": tensors["steps_cells"] + 99},
    "a cell below 0": lambda tensors: tensors | {"steps_cells": tensors["steps_cells"] - 1},
    "centres of other numbers": lambda tensors: tensors | {"steps_centres": tensors["steps_centres"][:, 1:]},
    "no centres": lambda tensors: tensors | {"steps_centres": tensors["steps_centres"][:0]},
    "centres that are not finite": lambda tensors: tensors | {"steps_centres": tensors["steps_centres"] * torch.inf},
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_cells_are_refused(indexed: Model, how: str) -> None:
    folder = indexed.bundle.folder
    assert folder is not None
    path = folder / ROW_INDEX
    write_tensors(path, DAMAGE[how](read_tensors(path)), metadata=read_header(path)[0])
    with pytest.raises(UserError, match=f"^{ROW_INDEX}: damaged"):
        seq2see.load(folder).nearest_rows("bex")


def test_cells_where_none_are_needed_are_refused(indexed: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(UserError, match=f"^{ROW_INDEX}: damaged: .*; expected: inputs"):
        indexed.nearest_rows("bex")
