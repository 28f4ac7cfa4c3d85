"""What frozen networks make of files: read once for all that a run or a measurement asks, then forgotten or kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

import seq2see
from seq2see.encoders.backbones.pretrained import EfficientNetLite
from seq2see.errors import UserError
from seq2see.modalities.files import MediaField
from seq2see.pipeline import frozen_features

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


@pytest.mark.parametrize("number", [1, 3, 4, 7, 9])
def test_files_are_read_a_few_at_a_time_and_stored_each_under_its_name(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(frozen_features, "BATCH_FILES", 4)
    monkeypatch.setattr(frozen_features, "BATCH_FILES_CPU", 3)
    files = [str(file) for file in range(number)]
    at_once, stored, told = list[int](), dict[str, float](), list[int]()

    def frozen(column: torch.Tensor) -> torch.Tensor:
        at_once.append(len(column))
        return column + 0.5

    frozen_features.make_features(
        SimpleNamespace(add=lambda paths, values: stored.update(zip(paths, values.tolist(), strict=True))),  # type: ignore[arg-type]
        SimpleNamespace(batch=lambda part: torch.tensor([float(file) for file in part])),  # type: ignore[arg-type]
        SimpleNamespace(frozen_features=frozen),  # type: ignore[arg-type]
        files,
        device=torch.device("cpu"),
        on_progress=lambda done, of: told.append(done),
    )
    assert stored == {file: float(file) + 0.5 for file in files}
    assert max(at_once) <= 3
    assert told[-1] == number


def test_a_cache_that_cannot_be_written_is_named(table: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SEQ2SEE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="file/features"):
        seq2see.train(RECIPE, table, dev=table, out=tmp_path / "run", updates=1, listeners=[])
