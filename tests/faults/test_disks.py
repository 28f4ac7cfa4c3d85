"""A disk that is full, has no inodes left, or is read-only: a clear message, nothing lost, and on it goes afterwards.

The disks are small ones in memory (tmpfs), which need root, or a namespace of one's own: `unshare -Urm make faults`.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.children import Ended
from tests.faults.conftest import Count, Runs

SIZE = 4_000_000
INODES = 200
REASONS = ("the disk is full", "No space left on device", "Read-only file system")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes and few inodes."""
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root; `unshare -Urm make faults` runs this without")
    folder = tmp_path / "disk"
    folder.mkdir()
    options = f"size={SIZE},nr_inodes={INODES}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def full(disk: Path, room: int) -> Iterator[None]:
    """A disk with so many bytes left, rounded to pages."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(free.f_bavail * free.f_frsize - room, 1))
    yield
    ballast.unlink()


@contextmanager
def without_inodes(disk: Path, room: int) -> Iterator[None]:
    """A disk on which so many more files can be created."""
    folder = disk / "many"
    folder.mkdir()
    for number in range(os.statvfs(disk).f_favail - room):
        (folder / str(number)).touch()
    yield
    shutil.rmtree(folder)


@contextmanager
def read_only(disk: Path, room: int = 0) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def clear(ended: Ended) -> bool:
    """Whether a command failed as is promised: exit code 2, and one message that names the reason."""
    return ended.code == 2 and any(reason in ended.err for reason in REASONS) and "bug in seq2see" not in ended.err


Fault = Callable[[Path, int], "contextmanager[None]"]
FAULTS = {"disk full": (full, 60_000), "no inodes left": (without_inodes, 18), "read-only folder": (read_only, 2)}
"""Each with about the room that a run takes."""


@pytest.mark.parametrize(
    ("fault", "short"),
    [
        pytest.param("disk full", True, id="once"),
        *(pytest.param(fault, False, marks=pytest.mark.faults) for fault in FAULTS),
    ],
)
def test_training(runs: Runs, disk: Path, count: Count, seed: int, kills: int, fault: str, short: bool) -> None:
    """With random room, so that it fails at random points; afterwards the run is begun or gone on with."""
    inject, most = FAULTS[fault]
    for number in range(1 if short or fault == "read-only folder" else kills // 5):
        room = random.Random(f"{seed} {number}").randrange(most)
        out = disk / "run"
        with inject(disk, room):
            ended = runs.children.run(*runs.begin(out))
        said = f"SEED={seed}, try {number}, room {room}: {ended.code}: {ended.err}"
        if ended.code:
            assert clear(ended), said
            ended = runs.go_on(out)
            assert ended.code == 0, f"{said}; {ended.err}"
            count(f"{fault}: train", "exit 2 with the reason; afterwards it goes on, same bits")
        else:
            count(f"{fault}: train", "there was room enough")
        assert runs.same(out), said
        shutil.rmtree(out)


@pytest.mark.faults
@pytest.mark.parametrize("fault", FAULTS)
def test_going_on_with_a_run(runs: Runs, disk: Path, count: Count, seed: int, kills: int, fault: str) -> None:
    """What the earlier part of the run has left can be used and gone on with."""
    inject, most = FAULTS[fault]
    longer = runs.folder / "longer"
    assert runs.children.run(*runs.begin(longer)).code == 0
    assert runs.children.run("train", longer, "--resume", "--updates", 60).code == 0
    for number in range(1 if fault == "read-only folder" else kills // 5):
        room = random.Random(f"{seed} {number}").randrange(most // 2)
        out = disk / "run"
        shutil.copytree(runs.whole, out)
        with inject(disk, room):
            ended = runs.children.run("train", out, "--resume", "--updates", 60)
            used = runs.children.run("predict", out, "ab")
        said = f"SEED={seed}, try {number}, room {room}: {ended.code}: {ended.err}"
        assert used.code == 0, f"{said}; predict: {used.err}"
        if ended.code:
            assert clear(ended), said
            ended = runs.children.run("train", out, "--resume", "--updates", 60)
            assert ended.code == 0, f"{said}; {ended.err}"
            count(f"{fault}: train --resume", "exit 2 with the reason; model usable; afterwards it goes on")
        else:
            count(f"{fault}: train --resume", "there was room enough")
        assert (out / "model.safetensors").read_bytes() == (longer / "model.safetensors").read_bytes(), said
        shutil.rmtree(out)


@pytest.mark.faults
@pytest.mark.parametrize("fault", FAULTS)
def test_predictions_written_to_a_table(runs: Runs, disk: Path, count: Count, fault: str) -> None:
    inject, _ = FAULTS[fault]
    command = ("predict", runs.whole, "--file", runs.data, "--to", disk / "predictions.tsv", "--n-best", 3)
    assert runs.children.run(*command).code == 0
    before = contents(disk)
    for kept in (True, False):
        if not kept:
            (disk / "predictions.tsv").unlink()
        with inject(disk, 0):
            ended = runs.children.run(*command)
            if kept:
                assert (disk / "predictions.tsv").read_bytes() == before["predictions.tsv"]
            else:
                assert not (disk / "predictions.tsv").exists()
        assert clear(ended), f"{ended.code}: {ended.err}"
        assert set(contents(disk)) <= set(before), "nothing half written is left"
        assert runs.children.run(*command).code == 0
        assert contents(disk) == before
        count(f"{fault}: predict --to", "exit 2 with the reason, earlier table kept; afterwards it goes on")


@pytest.mark.faults
@pytest.mark.parametrize("fault", FAULTS)
def test_exports(runs: Runs, disk: Path, count: Count, fault: str) -> None:
    pytest.importorskip("onnxscript")
    inject, most = FAULTS[fault]
    for room in (0, most // 4):
        with inject(disk, room):
            ended = runs.children.run("export", runs.whole, "--to", "onnx", "--out", disk / "exported")
        if ended.code == 0:
            count(f"{fault}: export", "there was room enough")
        else:
            assert clear(ended), f"{ended.code}: {ended.err}"
            assert contents(disk) == {}, "nothing half written is left"
            count(f"{fault}: export", "exit 2 with the reason, nothing left; afterwards it goes on")
            ended = runs.children.run("export", runs.whole, "--to", "onnx", "--out", disk / "exported")
            assert ended.code == 0, ended.err
        shutil.rmtree(disk / "exported")
