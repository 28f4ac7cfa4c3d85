"""Threads: those of the cores a process may use, set before torch is imported, and what the user has set stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from seq2see import threads
from tests.commands import Commands

SCRIPT = """
import json, os, sys
from seq2see.cli import main
sys.argv = ["seq2see", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
import torch
names = ("OMP_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
print(json.dumps({"threads": torch.get_num_threads(), **{name: os.environ.get(name) for name in names}}))
"""


def configured(*arguments: str, **environment: str) -> dict[str, str | int]:
    """What torch has in a new process after a command that fails for want of a model."""
    unset = ("OMP_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_WAIT_POLICY")
    rest = {name: value for name, value in os.environ.items() if name not in unset}
    command = [sys.executable, "-c", SCRIPT, "predict", "nowhere", "x", *arguments]
    done = subprocess.run(command, env=rest | environment, capture_output=True, text=True, check=True)
    found: dict[str, str | int] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_command_uses_the_cores_it_has_and_waits_briefly() -> None:
    found = configured()
    assert found["threads"] == min(threads.cores(), threads.MOST)
    assert found["GOMP_SPINCOUNT"] == threads.WAITING["GOMP_SPINCOUNT"]


def test_what_is_asked_for_holds() -> None:
    assert configured("--threads", "1", OMP_NUM_THREADS="2")["threads"] == 1
    found = configured(OMP_NUM_THREADS="1", GOMP_SPINCOUNT="7", KMP_BLOCKTIME="1")
    assert (found["threads"], found["GOMP_SPINCOUNT"], found["KMP_BLOCKTIME"]) == (1, "7", "1")
    assert configured(OMP_WAIT_POLICY="active")["GOMP_SPINCOUNT"] is None


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 64),
        ({"cpu.max": "max 100000\n"}, 64),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu.max": "10000 100000\n"}, 1),
        ({"cpu.max": "10000000 100000\n"}, 64),
        ({"cpu.max": "what\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"cpu/cpu.cfs_quota_us": "400000\n", "cpu/cpu.cfs_period_us": "0\n"}, 64),
    ],
)
def test_cores_are_those_of_the_container(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    assert threads.cores(tmp_path) == cores


def test_a_number_of_threads_is_checked(call: Commands) -> None:
    for wrong in ("0", "-1", "2000", "two"):
        done = call("predict", "nowhere", "x", "--threads", wrong)
        assert (done.code, "--threads" in done.err) == (2, True)


def test_torch_that_is_there_takes_the_number(call: Commands) -> None:
    before = torch.get_num_threads()
    try:
        call("predict", "nowhere", "x", "--threads", str(before + 1))
        assert torch.get_num_threads() == before + 1
        assert os.environ.get("GOMP_SPINCOUNT") is None
    finally:
        torch.set_num_threads(before)
