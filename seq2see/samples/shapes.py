"""Pictures of two coloured shapes somewhere on a pale ground, with captions that name the larger one first: drawn here.

`a large red square and a small blue circle`: nothing but the picture tells the words, and each of them is about one
place in it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw

from seq2see.data.tables import write as write_table
from seq2see.samples.base import Written
from seq2see.samples.drawing import COLOURS, SHAPES, draw_shape

COLUMNS = ("image", "caption")
PICTURES = {"train": 3000, "dev": 300}
SIDE = 96
"""Pixels of a picture."""
SIZES = {"large": (36, 44), "small": (16, 24)}
"""Pixels of a shape, from and to."""
FINER = 2
"""Pictures are drawn so many times larger, so that edges are smooth."""


def write(folder: Path, pictures: Mapping[str, int] = PICTURES) -> Written:
    """train.tsv and dev.tsv; pictures: how many for each."""
    written = {}
    for part, number in pictures.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        draw, rows = random.Random(part), list[Mapping[str, str]]()
        for count in range(number):
            path = f"{part}/{count}.png"
            picture, caption = drawn(draw)
            picture.save(folder / path)
            rows.append({"image": path, "caption": caption})
        write_table(folder / f"{part}.tsv", rows, COLUMNS)
        written[f"{part}.tsv"] = number
    return written


def drawn(draw: random.Random) -> tuple[Image.Image, str]:
    """(a picture, its caption). One shape lies in each half, left and right or above and below."""
    across, begins = draw.random() < 0.5, [0, SIDE // 2]
    draw.shuffle(begins)
    ground = tuple(draw.randint(215, 250) for _ in range(3))
    picture = Image.new("RGB", (SIDE * FINER, SIDE * FINER), ground)
    brush, said = ImageDraw.Draw(picture), list[str]()
    for begin, (size, pixels) in zip(begins, SIZES.items(), strict=True):
        side = draw.randint(*pixels)
        near, far = begin + draw.randint(1, SIDE // 2 - side - 1), draw.randint(2, SIDE - side - 2)
        left, top = (near, far) if across else (far, near)
        colour, shape = draw.choice(list(COLOURS)), draw.choice(SHAPES)
        draw_shape(brush, shape, colour, left=left * FINER, top=top * FINER, side=side * FINER)
        said.append(f"a {size} {colour} {shape}")
    return picture.reduce(FINER), " and ".join(said)
