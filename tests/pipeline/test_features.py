"""What frozen networks make of files: read once for all that a run or a measurement asks, then forgotten or kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

import seq2see
from seq2see.encoders.backbones.pretrained import EfficientNetLite
from seq2see.errors import UserError
from seq2see.modalities.files import MediaField

COLOURS = {"red": (200, 30, 30), "green": (30, 180, 60), "blue": (40, 50, 210)}
RECIPE = {
    "inputs": {
        "image": {
            "kind": "image",
            "height": 32,
            "width": 32,
            "encoder": {"kind": "convolutional", "backbone": "efficientnet-lite0", "size": 8},
        }
    },
    "output": {"column": "caption"},
    "attention": {"over": "image", "size": 8},
    "decoder": {"size": 8, "embedding": {"size": 4}},
    "training": {"batch_rows": 2},
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("efficientnet_lite_pytorch", reason="the extra `images` is not installed")
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "cache"))
    lines = ["image\tcaption"]
    for name, colour in COLOURS.items():
        Image.new("RGB", (32, 32), colour).save(tmp_path / f"{name}.png")
        lines += [f"{name}.png\ta {name} one", f"{name}.png\tall {name}"]
    path = tmp_path / "pictures.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pictures that the network has read, by call."""
    seen: list[int] = []
    plain = EfficientNetLite.forward

    def counting(self: EfficientNetLite, pixels: torch.Tensor) -> torch.Tensor:
        seen.append(len(pixels))
        return plain(self, pixels)

    monkeypatch.setattr(EfficientNetLite, "forward", counting)
    return seen


def features(model: seq2see.Model) -> object:
    field = model.bundle.fields.inputs["image"]
    assert isinstance(field, MediaField)
    return field.features


def test_each_picture_is_read_once_for_a_run_and_for_all_that_follows(table: Path, read: list[int]) -> None:
    seq2see.train(RECIPE, table, dev=table, out=table.parent / "run", updates=2, listeners=[])
    assert read[read.index(1) :] == [1, len(COLOURS)]  # one tells the shape, then all, whatever is learned of them
    model = seq2see.load(table.parent / "run")
    read.clear()
    kept = model.evaluate(table, beam=1)
    assert sum(read) == 1
    assert features(model) is None
    assert kept.inputs == len(COLOURS)
    model.predict([str(table.parent / f"{name}.png") for name in COLOURS], beam=1)
    assert sum(read) == 1 + len(COLOURS)


def test_a_measurement_reads_each_picture_once_and_finds_the_same(
    table: Path, read: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = seq2see.train(RECIPE, table, dev=table, out=tmp_path / "run", updates=2, listeners=[])
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "other"))
    told: list[tuple[str, int, int]] = []
    read.clear()
    found = model.evaluate(table, beam=1, progress=lambda *one: told.append(one))
    assert sum(read) == 1 + len(COLOURS)
    assert ("files read", len(COLOURS), len(COLOURS)) in told
    again = model.score(table)
    assert found.metrics["perplexity"] == pytest.approx(again.perplexity, rel=1e-3)


def test_a_cache_that_cannot_be_written_is_named(table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="file/features"):
        seq2see.train(RECIPE, table, dev=table, out=tmp_path / "run", updates=1, listeners=[])
