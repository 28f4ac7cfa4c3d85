"""Images and videos of shapes: captions say what is to be seen, and videos have a direction in time."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seq2see.data.tables import read
from seq2see.data.video_files import VideoInput, read_video
from seq2see.errors import MissingExtra
from seq2see.recipe import load_recipe
from seq2see.samples import SAMPLES, shapes
from seq2see.samples.shapes import COLOURS, DIRECTIONS, FRAMES, SHAPE_SIDE, VIDEO_SIDE
from seq2see.training.dataset import wanted_columns


def test_captions_say_what_there_is_and_the_larger_one_first(tmp_path: Path) -> None:
    assert shapes.write_images(tmp_path, {"train": 40, "dev": 3}) == {"train.tsv": 40, "dev.tsv": 3}
    sides = set()
    for row in (one.values for one in read(tmp_path / "train.tsv")):
        said = [one.split() for one in row["caption"].split(" and ")]
        assert [one[:2] for one in said] == [["a", "large"], ["a", "small"]]
        pixels = np.asarray(Image.open(tmp_path / row["image"])).astype(int)
        assert pixels.shape == (shapes.IMAGE_SIDE, shapes.IMAGE_SIDE, 3)
        large, small = (np.abs(pixels - COLOURS[one[2]]).max(-1) < 40 for one in said)
        if said[0][2] != said[1][2]:
            assert 0 < 1.2 * small.sum() < large.sum()
            sides.add(bool(np.nonzero(large)[1].mean() < np.nonzero(small)[1].mean()))
    assert sides == {True, False}


def test_the_same_pictures_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shapes.write_images(tmp_path / name, {"train": 3})
    assert (tmp_path / "one/train.tsv").read_bytes() == (tmp_path / "two/train.tsv").read_bytes()
    assert (tmp_path / "one/train/2.png").read_bytes() == (tmp_path / "two/train/2.png").read_bytes()


EVERY = VideoInput(height=VIDEO_SIDE, width=VIDEO_SIDE)


def test_shapes_do_what_is_said_of_them(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="the extra `video` is not installed")
    assert shapes.write_videos(tmp_path, {"train": 12, "dev": 2}) == {"train.tsv": 12, "dev.tsv": 2}
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
        assert steps.sum(0) == pytest.approx(np.array(DIRECTIONS[way]) * 28, abs=1.5)
        assert np.abs(steps[:4]).sum() > 2 * np.abs(steps[-4:]).sum(), "what is pushed slows down"
        assert len(pixels) == FRAMES
        middle = pixels[8][:, *np.round(where[8][::-1]).astype(int)]
        assert np.abs(middle - COLOURS[colour]).max() < 50
        share = seen[8].sum() / SHAPE_SIDE**2
        assert share == pytest.approx({"square": 1.0, "circle": 0.785, "triangle": 0.5}[shape], abs=0.13)


def test_the_same_clips_each_time() -> None:
    films = [shapes.draw_frames("red", "circle", "up", random.Random(4)) for _ in range(2)]
    assert np.array_equal(*films)


def test_without_the_reader_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingExtra, match=r"is not installed: pip install 'seq2see\[video\]'"):
        SAMPLES["moving-shapes"].write(tmp_path / "made")
    assert not (tmp_path / "made").exists()
