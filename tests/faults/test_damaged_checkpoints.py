"""The newest checkpoint damaged: the one before is used, and the run ends with the same bits."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.training.checkpoints import checkpoint_paths
from tests.faults.conftest import Count, Runs

LATE = 80
"""Changes of files after which the run is killed: it has reported twice."""
Damage = Callable[[bytes, random.Random], bytes]


def truncated(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def zeroed(content: bytes, draw: random.Random) -> bytes:
    """A block of zeros, as a file system leaves it where data was never written; now and then the whole file."""
    start = draw.choice([0, draw.randrange(len(content))])
    size = draw.choice([512, 4096, len(content)])
    changed = content[:start] + bytes(len(content[start : start + size])) + content[start + size :]
    return changed if changed != content else bytes(len(content))


def bit_flipped(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(changed)


@pytest.mark.parametrize(
    ("damage", "short"),
    [
        pytest.param(bit_flipped, True, id="once"),
        *(pytest.param(one, False, marks=pytest.mark.faults) for one in (truncated, zeroed, bit_flipped)),
    ],
)
def test_the_checkpoint_before_a_damaged_one_is_used(
    runs: Runs, tmp_path: Path, count: Count, seed: int, kills: int, damage: Damage, short: bool
) -> None:
    """In a run that was killed."""
    intact = tmp_path / "killed"
    assert runs.children.run(*runs.begin(intact), kill_at=LATE).killed
    for number in range(1 if short else kills // 5):
        draw = random.Random(f"{seed} {number}")
        out = tmp_path / f"run-{number}"
        shutil.copytree(intact, out)
        newest, _ = checkpoint_paths(out / "checkpoints")
        newest.write_bytes(damage(newest.read_bytes(), draw))
        ended = runs.go_on(out)
        said = f"SEED={seed}, try {number}: {ended.err}"
        assert ended.code == 0, said
        assert newest.name in ended.err, said
        assert "the checkpoint before it" in ended.err, said
        assert runs.same(out), said
        assert newest.with_name(f"{newest.name}.damaged").exists()
        count(f"newest checkpoint {damage.__name__.replace('_', '-')}", "named; the one before used, same bits")


@pytest.mark.faults
def test_where_all_checkpoints_are_damaged_it_is_said_and_nothing_is_lost(
    runs: Runs, tmp_path: Path, count: Count, seed: int
) -> None:
    out, draw = tmp_path / "run", random.Random(seed)
    shutil.copytree(runs.whole, out)
    for path, damage in zip(checkpoint_paths(out / "checkpoints"), (truncated, bit_flipped), strict=True):
        path.write_bytes(damage(path.read_bytes(), draw))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    ended = runs.children.run("train", out, "--resume")
    assert ended.code == 2
    assert "there is no other checkpoint" in ended.err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    count("all checkpoints damaged", "refused (exit 2), nothing changed")
