"""Pictures to themselves, by convolutions and by dense layers: what comes back is the picture that went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

import seq2see
from seq2see.cli import main
from seq2see.errors import UserError

RECIPE = "image-autoencoder"
SMALL = [
    *(f"inputs.image.{change}" for change in ("height=16", "width=16", "colour=grey", "encoder.size=12")),
    *(f"training.{change}" for change in ("epochs=0", "learning_rate=0.01", "report_every=120", "batch_rows=32")),
]
CONVOLUTIONAL = [*SMALL, "inputs.image.encoder.channels=[8,16]"]
DENSE = [
    *SMALL,
    "inputs.image.encoder.kind=dense",
    "inputs.image.encoder.hidden=[64]",
    "decoder.reconstruction.pixels=dense",
]


def squares(folder: Path, number: int) -> Path:
    """Bright squares of two sizes anywhere on a dark ground."""
    random = np.random.default_rng(1)
    folder.mkdir(exist_ok=True)
    for i in range(number):
        picture = Image.new("L", (16, 16), 20)
        left, upper, side = int(random.integers(0, 9)), int(random.integers(0, 9)), int(random.choice([4, 6]))
        ImageDraw.Draw(picture).rectangle((left, upper, left + side, upper + side), fill=230)
        picture.save(folder / f"{i}.png")
    table = folder / "pictures.tsv"
    table.write_text("image\n" + "".join(f"{i}.png\n" for i in range(number)), encoding="utf-8")
    return table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return squares(tmp_path_factory.mktemp("squares"), 160)


def test_the_recipe_as_it_ships_learns(table: Path, tmp_path: Path) -> None:
    quick = ["training.batch_rows=8", "training.report_every=60"]
    model = seq2see.train(RECIPE, data=table, out=tmp_path / "run", overrides=quick, updates=60)
    paths = [str(table.parent / f"{i}.png") for i in range(40)]
    report = model.evaluate([{"image": path, "output": path} for path in paths])
    assert report.metrics["mse"] < 0.8 * report.baseline["mse"]
    assert model.predict(paths[0]).image.shape == (32, 32, 3)


@pytest.mark.parametrize("changes", [CONVOLUTIONAL, DENSE], ids=["convolutional", "dense"])
def test_pictures_come_back(table: Path, tmp_path: Path, changes: list[str]) -> None:
    model = seq2see.train(RECIPE, data=table, out=tmp_path / "run", overrides=changes, updates=120)
    paths = [str(table.parent / f"{i}.png") for i in range(60)]
    seen = model.evaluate([{"image": path, "output": path} for path in paths])
    blind = model.evaluate([{"image": a, "output": b} for a, b in zip(paths, paths[1:] + paths[:1], strict=True)])
    assert seen.metrics["mse"] < 0.5 * seen.baseline["mse"]
    assert blind.metrics["mse"] > blind.baseline["mse"]
    prediction = seq2see.load(tmp_path / "run").predict(paths[0])
    assert isinstance(prediction.image, np.ndarray)
    assert prediction.image.shape == (16, 16)
    assert prediction.image.dtype == np.uint8


def code_of(*command: str) -> Any:
    with pytest.raises(SystemExit) as left:
        main(command)
    return left.value.code


def test_the_command_line_writes_pictures(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seq2see.train(RECIPE, data=table, out=tmp_path / "run", overrides=DENSE, updates=2)
    capsys.readouterr()
    command = ["predict", str(tmp_path / "run"), str(table.parent / "3.png")]
    assert code_of(*command, "--pictures", str(tmp_path / "made"), "--json") == 0
    output = json.loads(capsys.readouterr().out)
    assert output["image"] == str(tmp_path / "made" / "00001-3.png")
    with Image.open(output["image"]) as picture:
        assert picture.size == (16, 16)
    assert code_of(*command) == 2
    assert "--pictures DIR" in capsys.readouterr().err
    assert code_of(*command, "--pictures", str(tmp_path / "made"), "--n-best", "3") == 2
    assert "--n-best" in capsys.readouterr().err


def test_a_bad_file_is_reported_once_though_it_is_input_and_output(table: Path, tmp_path: Path) -> None:
    mixed = squares(tmp_path / "mixed", 4)
    (mixed.parent / "2.png").write_text("no picture", encoding="utf-8")
    with pytest.raises(UserError) as stopped:
        seq2see.train(RECIPE, data=mixed, out=tmp_path / "run", overrides=DENSE)
    assert str(stopped.value).count("line 4, column 'image': 2.png: ") == 1
    assert "1 row" in str(stopped.value)


def test_rows_left_out_of_a_file_of_inputs_are_reported(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skipping = [*DENSE, "data.on_error=skip"]
    seq2see.train(RECIPE, data=table, out=tmp_path / "run", overrides=skipping, updates=2)
    mixed = squares(tmp_path / "mixed", 4)
    (mixed.parent / "2.png").write_text("no picture", encoding="utf-8")
    capsys.readouterr()
    command = ["predict", str(tmp_path / "run"), "--file", str(mixed), "--pictures", str(tmp_path / "made"), "--json"]
    assert code_of(*command) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 3
    assert "left out: pictures.tsv: 1 row" in printed.err
    assert "line 4, column 'image': 2.png: " in printed.err
