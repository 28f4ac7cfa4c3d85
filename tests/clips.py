"""Small videos, written for tests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from seq2see.samples.shapes import write_video

av = pytest.importorskip("av", reason="the extra `video` is not installed")

SIZE = 24
STEPS = {"left": (0, -2), "right": (0, 2), "up": (-2, 0), "down": (2, 0)}


def written(path: Path, frames: np.ndarray, *, rate: int = 10, rotation: int = 0, codec: str = "mpeg4") -> Path:
    """A file of frames (number, height, width, 3), in a folder that need not be there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_video(path, frames, rate=rate, rotation=rotation, codec=codec)


def counted(number: int, height: int = 32, width: int = 48) -> np.ndarray:
    """Frames that tell which they are: the n-th of a grey of its own."""
    levels = (20 + np.arange(number) * 8).astype(np.uint8)
    return np.broadcast_to(levels[:, None, None, None], (number, height, width, 3)).copy()


def moving(direction: str, draw: random.Random, *, frames: int = 8) -> np.ndarray:
    """A bright square that goes one way from the middle of somewhere, through the edge and in again on the other side:
    no single frame tells which way."""
    down, across = STEPS[direction]
    row, column = draw.randrange(SIZE), draw.randrange(SIZE)
    film = np.full((frames, SIZE, SIZE, 3), 30, dtype=np.uint8)
    for number in range(frames):
        rows = (np.arange(6) + row + down * number) % SIZE
        columns = (np.arange(6) + column + across * number) % SIZE
        film[number, rows[:, None], columns] = 220
    return film


def filmed(folder: Path, number: int, seed: int, directions: tuple[str, ...] = tuple(STEPS)) -> list[tuple[str, str]]:
    """(file, the way its square goes)."""
    draw = random.Random(seed)
    rows = []
    for i in range(number):
        direction = directions[i % len(directions)]
        path = f"clips/{seed}-{i}.mp4"
        written(folder / path, moving(direction, draw, frames=draw.randint(6, 9)))
        rows.append((path, direction))
    draw.shuffle(rows)
    return rows


def table(path: Path, rows: Sequence[tuple[str, ...]], columns: str = "video\ttext") -> Path:
    path.write_text("\n".join([columns, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def fading(draw: random.Random, *, frames: int = 8) -> np.ndarray:
    """A square that goes any way and loses its light: two frames tell which way time runs, and no single one does."""
    film = moving(draw.choice(list(STEPS)), draw, frames=frames)
    light = np.linspace(draw.uniform(0.8, 1.0), draw.uniform(0.2, 0.4), frames)
    return 30 + ((film - 30) * light[:, None, None, None]).astype(np.uint8)


def faded(folder: Path, number: int, seed: int) -> list[tuple[str]]:
    """Files of squares that lose their light, nothing said of them."""
    draw = random.Random(seed)
    paths = [f"clips/{seed}-{i}.mp4" for i in range(number)]
    for path in paths:
        written(folder / path, fading(draw))
    return [(path,) for path in paths]
