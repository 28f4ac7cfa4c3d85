"""Videos drawn here: what a caption says is what is to be seen, and time has a direction in them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from seq2see.data.tables import read
from seq2see.data.video_files import VideoInput, read_video
from seq2see.errors import MissingExtra
from seq2see.recipe import load_recipe
from seq2see.samples import SAMPLES, moving_shapes
from seq2see.samples.drawing import COLOURS
from seq2see.samples.moving_shapes import FRAMES, SHAPE, SIDE, WAYS
from seq2see.training.dataset import wanted_columns

EVERY = VideoInput(height=SIDE, width=SIDE)


def test_shapes_do_what_is_said_of_them(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="the extra `video` is not installed")
    assert moving_shapes.write(tmp_path, {"train": 12, "dev": 2}) == {"train.tsv": 12, "dev.tsv": 2}
    rows = [row.values for name in ("train", "dev") for row in read(tmp_path / f"{name}.tsv")]
    for recipe in SAMPLES["moving-shapes"].recipes:
        assert {column for _, column in wanted_columns(load_recipe(recipe))} <= set(rows[0])
    for row in rows:
        pixels = read_video(tmp_path / row["video"], EVERY).pixels.astype(float)
        seen = pixels.max(1) > 110
        where = np.array([np.argwhere(frame).mean(0)[::-1] for frame in seen])
        steps = np.diff(where, axis=0)
        _, colour, shape, _, way = row["text"].split()
        assert row["label"] == way
        assert steps.sum(0) == pytest.approx(np.array(WAYS[way]) * 28, abs=1.5)
        assert np.abs(steps[:4]).sum() > 2 * np.abs(steps[-4:]).sum(), "what is pushed slows down"
        assert len(pixels) == FRAMES
        middle = pixels[8][:, *np.round(where[8][::-1]).astype(int)]
        assert np.abs(middle - COLOURS[colour]).max() < 50
        share = seen[8].sum() / SHAPE**2
        assert share == pytest.approx({"square": 1.0, "circle": 0.785, "triangle": 0.5}[shape], abs=0.13)


def test_the_same_clips_each_time() -> None:
    films = [moving_shapes.drawn("red", "circle", "up", random.Random(4)) for _ in range(2)]
    assert np.array_equal(*films)


def test_without_the_reader_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtra, match=r"is not installed: pip install 'seq2see\[video\]'"):
        SAMPLES["moving-shapes"].write(tmp_path / "made")
    assert not (tmp_path / "made").exists()
