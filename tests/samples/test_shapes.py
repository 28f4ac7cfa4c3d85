"""Pictures drawn here: captions say what is to be seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from seq2see.data.tables import read
from seq2see.samples import shapes
from seq2see.samples.drawing import COLOURS


def test_captions_say_what_there_is_and_the_larger_one_first(tmp_path: Path) -> None:
    assert shapes.write(tmp_path, {"train": 40, "dev": 3}) == {"train.tsv": 40, "dev.tsv": 3}
    sides = set()
    for row in (one.values for one in read(tmp_path / "train.tsv")):
        said = [one.split() for one in row["caption"].split(" and ")]
        assert [one[:2] for one in said] == [["a", "large"], ["a", "small"]]
        pixels = np.asarray(Image.open(tmp_path / row["image"])).astype(int)
        assert pixels.shape == (shapes.SIDE, shapes.SIDE, 3)
        large, small = (np.abs(pixels - COLOURS[one[2]]).max(-1) < 40 for one in said)
        if said[0][2] != said[1][2]:
            assert 0 < 1.2 * small.sum() < large.sum()
            sides.add(bool(np.nonzero(large)[1].mean() < np.nonzero(small)[1].mean()))
    assert sides == {True, False}


def test_the_same_pictures_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shapes.write(tmp_path / name, {"train": 3})
    assert (tmp_path / "one/train.tsv").read_bytes() == (tmp_path / "two/train.tsv").read_bytes()
    assert (tmp_path / "one/train/2.png").read_bytes() == (tmp_path / "two/train/2.png").read_bytes()
