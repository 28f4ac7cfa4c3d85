"""Videos of a coloured shape that slides over a dark ground, with what happens in words: drawn here, not fetched.

What is pushed slows down. So the clips have captions (`a red square moves left`), labels (the way it goes), and a
direction in time that every one of them tells.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw

from seq2see.data.tables import write as write_table
from seq2see.errors import imported
from seq2see.samples.base import Written
from seq2see.samples.drawing import COLOURS, SHAPES, draw_shape, write_film

COLUMNS = ("video", "text", "label")
WAYS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}

CLIPS = {"train": 1000, "dev": 200}
FRAMES, RATE = 16, 10
SIDE, SHAPE, DISTANCE = 64, 16, 28
"""Pixels: of a frame, of a shape, and of the way it goes."""
SLOWING = 0.85
"""Speed that is left after each frame."""
FINER = 4
"""Shapes are drawn so many times larger, so that they can move by parts of a pixel."""


def write(folder: Path, clips: Mapping[str, int] = CLIPS) -> Written:
    """train.tsv and dev.tsv; clips: how many for each."""
    imported("av", extra="video")
    written = {}
    for part, number in clips.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        draw, rows = random.Random(part), list[Mapping[str, str]]()
        for clip in range(number):
            colour, shape, way = draw.choice(list(COLOURS)), draw.choice(SHAPES), draw.choice(list(WAYS))
            path = f"{part}/{clip}.mp4"
            write_film(folder / path, drawn(colour, shape, way, draw), rate=RATE)
            rows.append({"video": path, "text": f"a {colour} {shape} moves {way}", "label": way})
        write_table(folder / f"{part}.tsv", rows, COLUMNS)
        written[f"{part}.tsv"] = number
    return written


def drawn(colour: str, shape: str, way: str, draw: random.Random) -> UInt8[np.ndarray, "frames height width 3"]:
    """The frames of one clip. It may begin anywhere from where the shape stays in the picture, so that where it is
    tells little of where it goes."""
    right, down = WAYS[way]
    left, top = (draw.uniform(*_between(step)) for step in (right, down))
    ground = (draw.randrange(30),) * 3
    gone = (1 - SLOWING ** np.arange(FRAMES)) / (1 - SLOWING ** (FRAMES - 1)) * DISTANCE
    return np.stack([_frame(colour, shape, left + right * far, top + down * far, ground) for far in gone.tolist()])


def _between(step: int) -> tuple[int, int]:
    """From where a shape may set out along one axis: backwards (-1), across (0) or on (1)."""
    last = SIDE - SHAPE
    return (DISTANCE if step < 0 else 0), (last - DISTANCE if step > 0 else last)


def _frame(
    colour: str, shape: str, left: float, top: float, ground: tuple[int, int, int]
) -> UInt8[np.ndarray, "height width 3"]:
    picture = Image.new("RGB", (SIDE * FINER, SIDE * FINER), ground)
    draw_shape(ImageDraw.Draw(picture), shape, colour, left=left * FINER, top=top * FINER, side=SHAPE * FINER)
    return np.asarray(picture.reduce(FINER))
