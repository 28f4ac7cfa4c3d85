"""A clock that is moved, two trainings in one folder, a table that changes: what a run does about each."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Count, Runs
from tests.training import tiny

DAY = 86_400.0
LATE = 50
"""Changes of files after which a run has written checkpoints and is not at its end."""


# ---------------------------------------------------------------- the clock


def moving_clock() -> None:
    """In a child: each look at the time of day is up to ten years away from the last one."""
    draw, real = random.Random(1), time.time
    time.time = lambda: real() + draw.uniform(-3650, 3650) * DAY
    time.time_ns = lambda: int(time.time() * 1e9)


def backwards() -> None:
    """In a child: the time of day runs backwards, a day each time."""
    start, looks = time.time(), 0

    def back() -> float:
        nonlocal looks
        looks += 1
        return start - DAY * looks

    time.time = back
    time.time_ns = lambda: int(back() * 1e9)


@pytest.mark.faults
@pytest.mark.parametrize("clock", [moving_clock, backwards])
def test_a_clock_that_is_moved_changes_no_bit(
    runs: Runs, tmp_path: Path, count: Count, clock: Callable[[], None]
) -> None:
    ended = runs.children.run(*runs.begin(tmp_path / "moved", "--set", "training.checkpoint_seconds=0.5"), before=clock)
    assert ended.code == 0, ended.err
    assert runs.same(tmp_path / "moved")
    count(f"clock moved ({clock.__name__.replace('_', ' ')}): updates", "same bits")


@pytest.mark.faults
@pytest.mark.parametrize("clock", [moving_clock, backwards])
def test_a_run_of_some_seconds_takes_these_seconds(
    runs: Runs, tmp_path: Path, count: Count, clock: Callable[[], None]
) -> None:
    """By its own account, which counts from a clock that nobody moves; the schedule ends with the run."""
    given = ("--set", "training.updates=0", "--set", "training.schedule=cosine", "--minutes", 0.02)
    began = time.monotonic()
    ended = runs.children.run(*runs.begin(tmp_path / "moved", *given), before=clock)
    took = time.monotonic() - began
    assert ended.code == 0, ended.err
    state = tiny.last_checkpoint(tmp_path / "moved").state
    assert state.finished
    assert 1.2 <= state.seconds <= took
    rates = [line["learning_rate"] for line in tiny.journal(tmp_path / "moved")]
    assert 0 <= rates[-1] < 0.01
    count(f"clock moved ({clock.__name__.replace('_', ' ')}): minutes", "ended after these minutes")


# ---------------------------------------------------------------- two trainings in one folder


def test_a_second_training_in_a_folder_is_refused_and_the_first_unaffected(
    runs: Runs, tmp_path: Path, count: Count
) -> None:
    out = tmp_path / "run"
    first = runs.children.start(*runs.begin(out), pause_at=LATE)
    first.until_paused(LATE)
    ended = [runs.children.run(*runs.begin(out, *more)) for more in ((), ("--overwrite",), ("--resume",))]
    first.go_on()
    assert first.wait().code == 0
    for one in ended:
        assert one.code == 2, one.err
        assert f"{out}: in use by process {first.pid} on " in one.err
        count("second training in a folder", "refused (exit 2); the first unaffected, same bits")
    assert runs.same(out)


# ---------------------------------------------------------------- the table


def appended(table: Path) -> None:
    with table.open("a", encoding="utf-8") as file:
        file.write("abab\tabab\ndcdc\tdcdc\n")


def replaced(table: Path) -> None:
    """Another row in the place of one of them, of the same length, at the same time of change."""
    status = table.stat()
    header, *lines = table.read_text("utf-8").splitlines()
    number = next(number for number, line in enumerate(lines) if line != "cb\tcb" and len(line) == 5)
    lines[number] = "cb\tcb"
    table.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    assert table.stat().st_size == status.st_size
    os.utime(table, ns=(status.st_atime_ns, status.st_mtime_ns))


def removed(table: Path) -> None:
    table.unlink()


FEW = [pytest.param(appended, marks=pytest.mark.faults), replaced, pytest.param(removed, marks=pytest.mark.faults)]
SAID = {appended: "the data has changed", replaced: "the data has changed", removed: "words.tsv"}


@pytest.mark.parametrize("change", FEW)
def test_a_table_that_changed_before_a_run_goes_on_is_noticed(
    runs: Runs, tmp_path: Path, count: Count, change: Callable[[Path], None]
) -> None:
    out = tmp_path / "run"
    assert runs.children.run(*runs.begin(out, "--updates", 20)).code == 0
    kept = tmp_path / "kept.tsv"
    shutil.copy2(runs.data, kept)
    change(runs.data)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    ended = runs.children.run("train", out, "--resume", "--updates", 45)
    assert ended.code == 2, ended.err
    assert SAID[change] in ended.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    shutil.copy2(kept, runs.data)
    ended = runs.children.run("train", out, "--resume", "--updates", 45)
    assert ended.code == 0, ended.err
    count(
        f"table {change.__name__} between stop and resume", "refused (exit 2), run unchanged; with the table it goes on"
    )


@pytest.mark.faults
@pytest.mark.parametrize("change", SAID)
def test_a_table_that_changes_during_a_run_changes_no_bit_of_it(
    runs: Runs, tmp_path: Path, count: Count, change: Callable[[Path], None]
) -> None:
    """Its rows were read before the first update; whoever goes on with the run hears of the change."""
    out = tmp_path / "run"
    child = runs.children.start(*runs.begin(out), pause_at=LATE)
    child.until_paused(LATE)
    assert len(list((out / "checkpoints").glob("update-*"))) > 1
    change(runs.data)
    child.go_on()
    assert child.wait().code == 0, child.said("err")
    assert runs.same(out)
    ended = runs.children.run("train", out, "--resume", "--updates", 60)
    assert ended.code == 2, ended.err
    assert SAID[change] in ended.err
    count(f"table {change.__name__} during a run", "run unaffected, same bits; going on is refused (exit 2)")
