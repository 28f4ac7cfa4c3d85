"""A process of several that train together is killed: torchrun starts all again, and they end with the same bits."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seq2see.training.checkpoints import checkpoint_paths
from tests.faults.children import PROJECT
from tests.faults.conftest import Count, Runs, reports
from tests.faults.test_server import processes, until
from tests.training import tiny

UPDATES = 90

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them"),
]


def together(runs: Runs, out: Path, log: Path, restarts: int) -> subprocess.Popen[bytes]:
    """Two processes that train, started by torchrun."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, f"--max-restarts={restarts}", "-m", "seq2see", *runs.begin(out, "--updates", UPDATES)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT)}
    with log.open("wb") as file:
        return subprocess.Popen([str(word) for word in command], env=environment, stdout=file, stderr=file)


def newest(out: Path) -> int:
    """The update of the newest checkpoint; -1 where there is none."""
    found = checkpoint_paths(out / "checkpoints")
    return int(found[0].name.removeprefix("update-").split(".")[0]) if found else -1


def test_a_killed_process_ends_nothing(runs: Runs, tmp_path: Path, count: Count, seed: int, kills: int) -> None:
    draw, tries = random.Random(seed), max(kills // 16, 1)
    whole, out, log = tmp_path / "whole", tmp_path / "killed", tmp_path / "log"
    with together(runs, whole, log, 0) as launcher:
        assert launcher.wait(600) == 0, log.read_text("utf-8")
    with together(runs, out, log, tries) as launcher:
        for at in sorted(draw.sample(range(5, UPDATES - 10, 5), tries)):
            until(lambda: launcher.poll() is not None or newest(out) >= at)  # noqa: B023
            workers = processes(launcher.pid, b"seq2see\0train")
            assert len(workers) == 2, log.read_text("utf-8")
            os.kill(draw.choice(workers), signal.SIGKILL)
            until(lambda: not {*workers} & {*processes(launcher.pid, b"seq2see\0train")})  # noqa: B023
            count("one of two processes under torchrun killed", "started again, same bits")
        assert launcher.wait(600) == 0, log.read_text("utf-8")
    said = f"SEED={seed}: {log.read_text('utf-8')}"
    assert said.count("resuming from update") == tries, said
    assert (out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes(), said
    assert tiny.same(tiny.last_checkpoint(out).weights, tiny.last_checkpoint(whole).weights), said
    assert tiny.same(tiny.last_checkpoint(out).optimizer, tiny.last_checkpoint(whole).optimizer), said
    assert reports(out) == reports(whole), said
