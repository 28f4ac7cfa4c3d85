"""Pictures of coloured things, drawn for the tests that have to see them."""

from __future__ import annotations

import random
from pathlib import Path

from PIL import Image, ImageDraw

COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220)}
SHAPES = ("square", "ring")
SIDE = 16

Thing = tuple[str, str]
"""(colour, shape)"""


def random_thing(draw: random.Random) -> Thing:
    return draw.choice(list(COLOURS)), draw.choice(SHAPES)


def draw_things(path: Path, things: list[Thing], draw: random.Random) -> None:
    """The things beside each other on white, each somewhere in its own square of 16 x 16 pixels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", (SIDE * len(things), SIDE), "white")
    brush = ImageDraw.Draw(picture)
    for number, (colour, shape) in enumerate(things):
        x, y = SIDE * number + draw.randint(1, 4), draw.randint(1, 4)
        box = (x, y, x + 10, y + 10)
        if shape == "square":
            brush.rectangle(box, fill=COLOURS[colour])
        else:
            brush.ellipse(box, outline=COLOURS[colour], width=3)
    picture.save(path)
