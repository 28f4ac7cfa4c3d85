"""Lines of text are read, whichever way they are written; a model that is shown other lines cannot."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from PIL import features

import seq2see
from seq2see.rendering import Distortions, Rendering, render
from seq2see.seeing.labels import BASE

pytestmark = pytest.mark.skipif(not features.check("raqm"), reason="Pillow here cannot shape letters (no raqm)")

SMALL = [
    "inputs.image.height=16",
    "inputs.image.augment={}",
    "encoder.channels=[12, 24, 24]",
    "encoder.pooled=[both, height, height]",
    "encoder.size=48",
    "encoder.dropout=0",
    "encoder.recurrent={cell: lstm, size: 32}",
    "attention.size=32",
    "decoder.size=64",
    "decoder.dropout=0",
    "training.learning_rate=0.01",
    "training.batch_tokens=120",
    "training.report_every=240",
    "training.average=1",
    "training.precision=float32",
    "search.beam=1",
]


def lines(folder: Path, letters: str) -> Path:
    """Short words of a few letters, and dev with the texts of other pictures."""
    chosen, folder = random.Random(1), folder / "lines"
    words = dict.fromkeys("".join(chosen.choices(letters, k=chosen.randint(2, 4))) for _ in range(420))
    folder.mkdir()
    (folder / "text.txt").write_text("\n".join(words), encoding="utf-8")
    mild = Distortions(rotation=0, shear=3, blur=0.3, noise=3, ink=0.2, paper=0, elastic=0)
    render(
        folder / "text.txt", folder, Rendering([BASE], size=20, dev_share=0.15, distortions=mild), say=lambda _: None
    )
    header, *rows = (folder / "dev.tsv").read_text("utf-8").splitlines()
    pairs = [row.split("\t") for row in rows]
    turned = [f"{image}\t{pairs[i - 1][1]}" for i, (image, _) in enumerate(pairs)]
    (folder / "blind.tsv").write_text("\n".join([header, *turned]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("letters", "direction"),
    [pytest.param("01347", None, marks=pytest.mark.slow), ("\u062f\u0631\u0633\u0645\u0648", "right-to-left")],
    ids=["digits", "arabic"],
)
def test_lines_are_read(tmp_path: Path, letters: str, direction: str | None) -> None:
    folder = lines(tmp_path, letters)
    model = seq2see.train(
        "text-line-recognition",
        data=folder / "train.tsv",
        dev=folder / "dev.tsv",
        out=tmp_path / "run",
        updates=200,
        overrides=SMALL,
    )
    right = model.evaluate(folder / "dev.tsv")
    blind = model.evaluate(folder / "blind.tsv")
    assert right.metrics["cer"] < 0.5
    assert right.metrics["crr"] == pytest.approx(1 - right.metrics["cer"])
    assert blind.metrics["cer"] > 0.65
    assert right.baseline["cer"] > 0.65

    image, _ = (folder / "dev.tsv").read_text("utf-8").splitlines()[1].split("\t")
    loaded = seq2see.load(tmp_path / "run")
    looks = loaded.predict(str(folder / image)).looks
    assert looks.layouts["image"].get("direction") == direction
    assert len(loaded.places(str(folder / image))) == looks.weights.shape[1]
