"""SIGKILL at any moment of a training: it goes on and ends with the same bits."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.conftest import Count, Runs


def kill_and_go_on(runs: Runs, draw: random.Random, out: Path, most: int, seconds: float) -> int:
    """One training that is killed at random moments, at most so often, and resumed each time. Returns the kills.

    seconds: how long a training takes that nothing disturbs.
    """
    kills = 0
    command = runs.begin(out)
    while kills < most:
        child = runs.children.start(*command)
        child.process.join(draw.uniform(0, seconds))
        child.kill()
        ended = child.wait()
        if ended.killed:
            kills += 1
            command = ("train", runs.recipe, "--out", out, "--resume")
        elif ended.code == 2 and "nothing to resume" in ended.err and command[-1] == "--resume":
            command = runs.begin(out)
        else:
            assert ended.code == 0, ended.err
            return kills
    ended = runs.go_on(out)
    assert ended.code == 0, ended.err
    return kills


@pytest.mark.parametrize("kind", ["rows", "stream"])
@pytest.mark.faults
def test_killed_at_random_moments_it_ends_with_the_same_bits(
    new_runs: Callable[[Path, str], Runs], tmp_path: Path, count: Count, seed: int, kills: int, kind: str
) -> None:
    runs = new_runs(tmp_path, kind)
    began = time.perf_counter()
    assert runs.children.run(*runs.begin(tmp_path / "timed")).code == 0
    seconds = time.perf_counter() - began
    done, number, share = 0, 0, kills // 2
    while done < share:
        number += 1
        out = tmp_path / f"run-{number}"
        got = kill_and_go_on(runs, random.Random(f"{seed} {number}"), out, share - done, seconds)
        assert runs.same(out), f"SEED={seed}, training {number} of {kind}, killed {got} times"
        done += got
        for _ in range(got):
            count(f"kill at a random moment, {kind}", "resumed, same bits")
        shutil.rmtree(out)


@pytest.mark.timeout(3600)  # hundreds of runs
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.faults)])
def test_killed_before_a_change_of_its_files_it_ends_with_the_same_bits(
    runs: Runs, tmp_path: Path, count: Count, every: bool
) -> None:
    """These moments are few, and random ones miss them."""
    changes = runs.children.changes(*runs.begin(tmp_path / "counted"))
    assert changes > 50
    # the last change removes the lock; before it the weights go whose mean was made; before these the mean is reported
    for at in range(1, changes + 1) if every else (changes - 9, changes - 2):
        out = tmp_path / f"run-{at}"
        ended = runs.children.run(*runs.begin(out), kill_at=at)
        assert ended.killed, ended.err
        ended = runs.go_on(out)
        assert ended.code == 0, f"killed before change {at}: {ended.err}"
        assert runs.same(out), f"killed before change {at}"
        count("kill before a change of a file", "resumed, same bits")
        shutil.rmtree(out)
