"""Pictures and sounds read by self-attention alone: small models learn what one that reads nothing cannot know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.cli.app import run as command
from tests.system import test_pictures, test_sounds
from tests.system.test_pictures import folder as pictures  # noqa: F401 - a fixture
from tests.system.test_sounds import folder as sounds  # noqa: F401 - a fixture

LAYERS = {"kind": "transformer", "size": 48, "layers": 2, "feedforward": 96, "dropout": 0.0}


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    command([*words, "--json"])
    return json.loads(capsys.readouterr().out)


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
    told_of = seq2see.load(tmp_path / "run").predict(str(path)).looks
    print(vars(told_of).keys())
    for out in ("png", "json"):
        arguments = ["look", str(tmp_path / "run"), str(path), "--map", "image.self-2"]
        command([*arguments, "--out", str(tmp_path / f"inside.{out}")])
    inside = json.loads((tmp_path / "inside.json").read_text("utf-8"))
    print(str(inside)[:500])
    weighed = told(capsys, "faithful", str(tmp_path / "run"), "--data", str(pictures / "dev.tsv"), "--rows", "2")
    print(weighed)


def test_words_in_sounds(sounds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    changes = ["encoder.kind=transformer", "encoder.feedforward=96", *test_sounds.SMALL, "training.learning_rate=0.004"]
    changes += ["encoder.size=48", "training.report_every=150"]
    data, dev = sounds / "train.tsv", sounds / "dev.tsv"
    model = seq2see.train(
        "speech-recognition", data=data, dev=dev, out=tmp_path / "run", updates=150, overrides=changes
    )
    assert model.recipe.encoder.kind == "transformer"
    print(model.evaluate(dev).metrics, model.evaluate(sounds / "blind.tsv").metrics)
    assert model.evaluate(dev).metrics["wer"] < 0.3
    assert model.evaluate(sounds / "blind.tsv").metrics["wer"] > 0.6
