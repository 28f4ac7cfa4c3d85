"""Batches by length under a budget, the same for the same seed and epoch."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from seq2see.data import batches as module
from seq2see.data.batches import BatchPlan
from seq2see.errors import UserError

Widths = NDArray[np.int64]


def words(rows: int, columns: int = 2, *, seed: int = 0) -> Widths:
    """Lengths as pairs of words or sentences have them: the columns of a row go together."""
    random = np.random.default_rng(seed)
    first = random.integers(1, 40, size=rows)
    others = [np.maximum(first + random.integers(-3, 4, size=rows), 1) for _ in range(columns - 1)]
    return np.stack([first, *others], axis=1)


def padded(widths: Widths, batch: NDArray[np.int64]) -> int:
    return len(batch) * int(widths[batch].max(0).sum())


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_every_row_is_drawn_once_and_no_batch_is_over_the_budget(columns: int) -> None:
    widths = words(3000, columns)
    plan = BatchPlan(widths, batch_tokens=800, batch_rows=32)
    for batches in (plan.epoch(0), plan.epoch(1), plan.by_length()):
        assert sorted(np.concatenate(batches).tolist()) == list(range(3000))
        assert max(padded(widths, batch) for batch in batches) <= 800
        assert max(map(len, batches)) <= 32


def test_little_of_a_batch_is_padding() -> None:
    for columns, least in ((2, 0.93), (3, 0.88)):
        widths = words(20_000, columns)
        batches = BatchPlan(widths, batch_tokens=1500, batch_rows=256).epoch(3)
        assert widths.sum() / sum(padded(widths, batch) for batch in batches) > least


def test_a_row_over_the_budget_is_a_batch_of_its_own() -> None:
    widths = np.array([[5, 5], [500, 500], [5, 5]])
    batches = BatchPlan(widths, batch_tokens=100, batch_rows=10).epoch(0)
    assert sorted(batch.tolist() for batch in batches if 1 in batch) == [[1]]
    assert len(batches) == 2


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("longest", [1, 3, 60])
@pytest.mark.parametrize(("tokens", "most"), [(1, 8), (90, 8), (90, 1000)])
def test_a_batch_has_as_many_neighbours_as_fit(columns: int, longest: int, tokens: int, most: int) -> None:
    widths = np.random.default_rng(longest).integers(0, longest, size=(500, columns), endpoint=True)
    plan = BatchPlan(widths, batch_tokens=tokens, batch_rows=most)
    taken = plan.by_length()[::-1]
    order = np.concatenate(taken)
    expected: list[list[int]] = []
    for row in order.tolist():
        together = [*expected[-1], row] if expected else []
        fits = len(together) * max(int(widths[together].max(0, initial=0).sum()), 1) <= tokens
        if together and fits and len(together) <= most:
            expected[-1] = together
        else:
            expected.append([row])
    assert [batch.tolist() for batch in taken] == expected


def test_seed_and_epoch_decide_and_nothing_else() -> None:
    widths = words(2000)

    def drawn(seed: int, epoch: int, *before: int) -> list[list[int]]:
        plan = BatchPlan(widths, batch_tokens=500, batch_rows=64, seed=seed)
        for other in before:
            plan.epoch(other)
        return [batch.tolist() for batch in plan.epoch(epoch)]

    assert drawn(1, 2) == drawn(1, 2, 0, 1, 5)
    assert drawn(1, 2) != drawn(1, 3)
    assert drawn(1, 2) != drawn(2, 2)
    assert drawn(-1, 2) != drawn(1, 2)


def test_rows_meet_others_in_every_epoch_even_if_all_lengths_differ() -> None:
    widths = np.arange(1, 5001)[:, None].repeat(2, axis=1)
    plan = BatchPlan(widths, batch_tokens=20_000, batch_rows=16)
    first, second = ({frozenset(batch.tolist()) for batch in plan.epoch(n)} for n in (0, 1))
    assert len(first & second) < len(first) / 10


def test_the_order_of_batches_does_not_follow_length() -> None:
    widths = words(5000)
    means = [widths[batch].mean() for batch in BatchPlan(widths, batch_tokens=500, batch_rows=64).epoch(0)]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.2
    ordered = [widths[batch].sum(1).max() for batch in BatchPlan(widths, batch_tokens=500, batch_rows=64).by_length()]
    assert ordered[0] > ordered[-1]


def test_nothing_to_draw_and_empty_rows() -> None:
    assert BatchPlan(np.zeros((0, 2), dtype=np.int64), batch_tokens=10, batch_rows=4).epoch(0)[:] == []
    assert len(BatchPlan(np.zeros((8, 2), dtype=np.int64), batch_tokens=10, batch_rows=4).epoch(0)) == 2


def test_a_hundred_thousand_rows_are_planned_well_under_a_second() -> None:
    plan = BatchPlan(words(110_000), batch_tokens=1500, batch_rows=256)
    start = time.process_time()
    plan.epoch(0)
    assert time.process_time() - start < 1.0


def test_a_plan_on_disk_is_the_plan_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = words(3000)
    memory = BatchPlan(widths, batch_tokens=500, batch_rows=64)
    np.save(tmp_path / "widths.npy", widths.astype(np.uint8))
    mapped = np.load(tmp_path / "widths.npy", mmap_mode="r")
    monkeypatch.setattr(module, "ON_DISK_ROWS", 10)
    disk = BatchPlan(mapped, batch_tokens=500, batch_rows=64)
    for epoch in (0, 1):
        assert [batch.tolist() for batch in disk.epoch(epoch)] == [batch.tolist() for batch in memory.epoch(epoch)]
    assert disk.symbols == memory.symbols == widths.sum()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ON_DISK_ROWS", 1)
    monkeypatch.setattr(module.tempfile, "TemporaryFile", partial(Path("/dev/full").open, "r+b"))
    with pytest.raises(UserError):
        BatchPlan(words(3000), batch_tokens=800, batch_rows=32).epoch(0)


def test_rows_are_shuffled_as_numpy_permutes_them() -> None:
    """The order of rows of earlier versions: a resumed run goes on with the same batches."""
    widths = np.ones((100, 1), dtype=np.int64)
    rows = np.concatenate(BatchPlan(widths, batch_tokens=1, batch_rows=1, seed=3).epoch(2)[:])
    random = np.random.default_rng([3, 0, 2])
    permuted = random.permutation(100)
    assert rows.tolist() == permuted[random.permutation(100)].tolist()
