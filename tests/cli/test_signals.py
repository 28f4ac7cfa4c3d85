"""SIGINT ends a command with 130, SIGTERM with 143; training first writes a checkpoint, from which it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.commands import Run
from tests.training import tiny

Call = Callable[..., Run]
CODES = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]

WAITING = """
import sys, time
from seq2see.cli import main, tasks
def run(given):
    print("ready", flush=True)
    time.sleep(600)
tasks.run = run
main(["tasks"])
"""
ENDLESS = ["--updates", "100000000"]


def started(*command: object) -> subprocess.Popen[str]:
    given = [sys.executable, *map(str, command)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.parametrize(("number", "code"), CODES)
def test_any_command_ends_with_the_code_of_the_signal(number: int, code: int) -> None:
    with started("-c", WAITING) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(60) == code
        assert process.stderr.read() in ("", "stopped\n")


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    often = {**tiny.ROWS["training"], "report_every": 5}  # training is stopped after its first report
    path.write_text(yaml.safe_dump({**tiny.ROWS, "training": often}), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [
        ("train", signal.SIGTERM, 143),
        ("compare", signal.SIGINT, 130),
        pytest.param("train", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("compare", signal.SIGTERM, 143, marks=pytest.mark.slow),
    ],
)
def test_training_stops_with_a_checkpoint_and_says_how_to_go_on(
    call: Call, recipe: Path, tmp_path: Path, command: str, number: int, code: int
) -> None:
    data, out = tiny.words(tmp_path / "words.tsv"), tmp_path / "out"
    vary = ["--vary", "attention.score=dot"] if command == "compare" else []
    given = ["--data", data, *vary, "--out", out]
    with started("-m", "seq2see", command, recipe, *given, *ENDLESS) as process:
        assert process.stderr is not None
        until(lambda: any(path.stat().st_size for path in out.rglob("metrics.jsonl")), process)
        process.send_signal(number)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == code, said
    assert "Traceback" not in said
    [folder] = [path.parent for path in out.rglob("metrics.jsonl")]
    assert f"seq2see train {folder} --resume" in said
    updates = tiny.last_checkpoint(folder).state.updates
    assert updates > 0
    run = call("train", folder, "--resume", "--updates", updates + 1)
    assert run.code == 0, run.err
    assert f"resuming from update {updates:,} (epoch " in run.err
    assert tiny.last_checkpoint(folder).state.updates == updates + 1


def until(done: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not done():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)


def test_checkpoints_that_are_all_damaged_are_an_error_of_the_users(call: Call, recipe: Path, tmp_path: Path) -> None:
    data, out = tiny.words(tmp_path / "words.tsv"), tmp_path / "out"
    assert call("train", recipe, "--data", data, "--out", out, "--updates", 2).code == 0
    for path in (out / "checkpoints").glob("update-*"):
        path.write_bytes(path.read_bytes()[:-5000] + bytes(5000))
    run = call("train", out, "--resume", "--updates", 3)
    assert (run.code, run.out) == (2, "")
    assert "update-000000002.safetensors" in run.err
    assert "--overwrite" in run.err
