"""Pictures, sounds and videos in one table: one report tells of every file that cannot be used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table
from tests.clips import av, counted, written

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

RECIPE = {
    "inputs": {"picture": {"kind": "image"}, "voice": {"kind": "sound"}, "clip": {"kind": "video"}},
    "output": {"kind": "label"},
}
GOOD = ("good.png", "good.wav", "good.mp4")
BAD = [
    ("gone.png", "good.wav", "good.mp4", "column 'picture': gone.png: no such file"),
    ("good.png", "none.wav", "good.mp4", "column 'voice': none.wav: "),
    ("good.png", "good.wav", "none.avi", "column 'clip': none.avi: "),
    ("good.png", "good.wav", "good.wav", "column 'clip': good.wav: no pictures in it"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Bad rows first, then two good ones."""
    Image.new("RGB", (32, 32)).save(tmp_path / "good.png")
    soundfile.write(tmp_path / "good.wav", np.sin(np.arange(8000) / 9), 16000)
    soundfile.write(tmp_path / "none.wav", np.zeros(0), 16000)
    written(tmp_path / "good.mp4", counted(4))
    with av.open(str(tmp_path / "none.avi"), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 32, 32, "yuv420p"
        container.start_encoding()
    rows = ["\t".join((*files, "x")) for *files, _ in BAD] + ["\t".join((*GOOD, "x"))] * 2
    path = tmp_path / "mixed.tsv"
    path.write_text("\n".join(["picture\tvoice\tclip\toutput", *rows]) + "\n", encoding="utf-8")
    return path


def test_a_mixed_table_gives_one_report(table: Path) -> None:
    opened, resolution = open_table(load_recipe(RECIPE), table, None)
    with pytest.raises(UserError, match="4 rows with a file that cannot be used") as stopped:
        list(resolution.rows(opened))
    for line, (*_, said) in enumerate(BAD, start=2):
        assert f"line {line}, {said}" in str(stopped.value)


def test_bad_rows_are_left_out_where_that_is_asked_for(table: Path) -> None:
    opened, resolution = open_table(load_recipe({**RECIPE, "data": {"on_error": "skip"}}), table, None)
    assert [row.line for row in resolution.rows(opened)] == [6, 7]
    assert "4 rows with a file that cannot be used" in opened.notes[-1]
