"""Pictures and sounds read by self-attention alone: small models learn what one that reads nothing cannot know."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seq2see
from seq2see.cli.app import run as command
from tests.system import test_pictures, test_sounds
from tests.system.test_pictures import folder as pictures  # noqa: F401 - a fixture
from tests.system.test_sounds import folder as sounds  # noqa: F401 - a fixture

LAYERS = {"kind": "transformer", "size": 48, "layers": 2, "feedforward": 96, "dropout": 0.0}


@pytest.mark.slow
def test_captions_of_pictures(
    pictures: Path,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48}},
        "encoder": LAYERS | {"patch": 8},
        "output": {"column": "caption"},
        "attention": {"over": "image", "score": "additive", "size": 32},
        "decoder": {"size": 64, "start": "image", "embedding": {"size": 16}},
        "training": test_pictures.SMALL["training"] | {"threads": 1, "updates": 120, "report_every": 120},
        "evaluation": {"metrics": ["exact"]},
    }
    model = seq2see.train(recipe, data=pictures / "train.tsv", dev=pictures / "dev.tsv", out=tmp_path / "run")
    assert model.evaluate(pictures / "dev.tsv").metrics["exact"] > 0.6
    assert model.evaluate(pictures / "blind.tsv").metrics["exact"] < 0.2
    path = next((pictures / "images").glob("*.png"))
    looks = seq2see.load(tmp_path / "run").predict(str(path), maps=True).looks
    assert looks.layouts["image"] == {"kind": "grid", "shape": [3, 6]}
    assert looks.maps["image.self-2"].shape == (4, 18, 18)
    assert looks.maps["image.self-2"].sum(-1) == pytest.approx(1, abs=1e-5)
    command(["look", str(tmp_path / "run"), str(path), "--out", str(tmp_path / "seen.png")])
    command(["look", str(tmp_path / "run"), str(path), "--map", "image.self-2", "--out", str(tmp_path / "inside.png")])
    assert (tmp_path / "seen.png").stat().st_size
    assert (tmp_path / "inside.png").stat().st_size
    capsys.readouterr()
    command(["faithful", str(tmp_path / "run"), "--data", str(pictures / "dev.tsv"), "--rows", "4", "--json"])
    agreements = json.loads(capsys.readouterr().out)["agreements"]
    assert [agreement["measure"] for agreement in agreements] == ["occlusion", "gradient"]
    assert all(agreement["top"]["value"] > agreement["shuffled_top"]["value"] for agreement in agreements)


def test_words_in_sounds(sounds: Path, tmp_path: Path) -> None:  # noqa: F811
    changes = ["encoder.kind=transformer", "encoder.feedforward=96", *test_sounds.SMALL, "training.learning_rate=0.004"]
    changes += ["encoder.size=48", "training.report_every=100"]
    data, dev = sounds / "train.tsv", sounds / "dev.tsv"
    model = seq2see.train(
        "speech-recognition", data=data, dev=dev, out=tmp_path / "run", updates=100, overrides=changes
    )
    assert model.recipe.encoder.kind == "transformer"
    assert model.evaluate(dev).metrics["wer"] < 0.3
    assert model.evaluate(sounds / "blind.tsv").metrics["wer"] > 0.6
    looks = seq2see.load(tmp_path / "run").predict(str(next((sounds / "sounds").glob("*.wav"))), maps=True).looks
    assert looks.layouts["audio"]["kind"] == "frames"
    assert looks.maps["audio.self-1"].shape[1:] == (len(looks.inputs["audio"]),) * 2
