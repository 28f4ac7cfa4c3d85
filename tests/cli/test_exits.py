"""Exit codes and where words go: results on stdout, everything else on stderr, no traceback unless asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.cli import tasks
from tests.commands import Run

Call = Callable[..., Run]


def shell(*arguments: object, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seq2see", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, input=given)


def test_results_on_stdout_alone(speller: Path) -> None:
    run = shell("predict", speller, given="abcd\nfeed\n")
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) == 2


def test_a_mistake_is_one_message_and_exit_2(call: Call, tmp_path: Path) -> None:
    run = call("predict", tmp_path / "nowhere", "x")
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: {tmp_path}/nowhere: no such folder; a model is a folder that `seq2see train` wrote\n"


def test_a_reader_that_has_enough_is_no_error(speller: Path) -> None:
    words = "\n".join(["abcd"] * 3000)
    command = f"{sys.executable} -m seq2see predict {speller} | head -1"
    run = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], check=False, capture_output=True, text=True, input=words
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert len(run.stdout.splitlines()) == 1


def test_a_fault_of_ours_says_so_and_exits_1(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(given: object) -> None:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(tasks, "run", broken)
    run = call("tasks")
    assert run.code == 1
    assert run.err.startswith("failed: ZeroDivisionError: by nothing\n")
    assert "SEQ2SEE_DEBUG=1" in run.err
    assert "Traceback" not in run.err
    assert "Traceback" in call("--debug", "tasks").err
    monkeypatch.setenv("SEQ2SEE_DEBUG", "1")
    assert "Traceback" in call("tasks").err


def test_ctrl_c_exits_130(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "run", stopped)
    run = call("tasks")
    assert (run.code, run.err) == (130, "stopped\n")
