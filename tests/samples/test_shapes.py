"""Pictures drawn here: what a caption says is where it says it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from seq2see.data.tables import read
from seq2see.samples import shapes
from seq2see.samples.drawing import COLOURS


def test_captions_say_what_lies_where(tmp_path: Path) -> None:
    assert shapes.write(tmp_path, {"train": 40, "dev": 3}) == {"train.tsv": 40, "dev.tsv": 3}
    ways = set()
    for row in (one.values for one in read(tmp_path / "train.tsv")):
        first, second = row["caption"].replace(" left of ", " above ").split(" above ")
        across = " left of " in row["caption"]
        ways.add(across)
        pixels = np.asarray(Image.open(tmp_path / row["image"])).astype(int)
        assert pixels.shape == (shapes.SIDE, shapes.SIDE, 3)
        halves = np.split(pixels, 2, axis=1 if across else 0)
        for half, said in zip(halves, (first, second), strict=True):
            colour = said.split()[1]
            like = {name: (np.abs(half - rgb).max(-1) < 40).sum() for name, rgb in COLOURS.items()}
            assert max(like, key=lambda name: like[name]) == colour
    assert ways == {True, False}


def test_the_same_pictures_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shapes.write(tmp_path / name, {"train": 3})
    assert (tmp_path / "one/train.tsv").read_bytes() == (tmp_path / "two/train.tsv").read_bytes()
    assert (tmp_path / "one/train/2.png").read_bytes() == (tmp_path / "two/train/2.png").read_bytes()
