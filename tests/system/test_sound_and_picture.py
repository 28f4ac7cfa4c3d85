"""A task that nobody listed, sound + picture -> label, from a YAML file alone; and what can be wrong with its files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seq2see
from seq2see.api import Model
from seq2see.cli import main
from seq2see.errors import Notice
from tests.system.drawing import draw_things, random_thing

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

RATE = 8000
TONES = {"low": 300.0, "high": 1500.0}

RECIPE = """
task: which-animal
description: "what it looks like + what it sounds like -> which one it is"
inputs:
  picture: {kind: image, height: 16, width: 16, encoder: {kind: convolutional, channels: [16, 24], size: 32}}
  voice: {kind: sound, rate: 8000, mels: 16, encoder: {kind: pyramidal, size: 16, layers: 1, halvings: 1}}
output: {kind: label, column: animal}
attention: {over: [picture, voice], score: additive, size: 24}
decoder: {kind: label, size: 32, start: [picture, voice]}
training: {updates: 120, epochs: 0, batch_rows: 24, learning_rate: 0.01, report_every: 60, dev_rows: 20, threads: 1}
evaluation: {metrics: [accuracy], baseline: majority}
"""


def write_tone(path: Path, tone: str, draw: random.Random) -> None:
    time = np.arange(round(draw.uniform(0.1, 0.15) * RATE)) / RATE
    sound = np.sin(2 * np.pi * TONES[tone] * draw.uniform(0.93, 1.07) * time) * draw.uniform(0.2, 0.9)
    soundfile.write(path, sound.astype(np.float32), RATE)


def animals(folder: Path, number: int) -> list[str]:
    """Lines of a table. An animal is told by its colour and its voice: neither is enough."""
    draw = random.Random(3)
    (folder / "files").mkdir(parents=True)
    rows = []
    for i in range(number):
        thing, tone = random_thing(draw), draw.choice(list(TONES))
        draw_things(folder / "files" / f"{i}.png", [thing], draw)
        write_tone(folder / "files" / f"{i}.wav", tone, draw)
        rows.append(f"files/{i}.png\tfiles/{i}.wav\t{thing[0]} {tone}")
    return rows


def table(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["picture\tvoice\tanimal", *rows]) + "\n", encoding="utf-8")
    return path


def run_command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("animals")
    (path / "animal.yaml").write_text(RECIPE, encoding="utf-8")
    rows = animals(path, 260)
    table(path / "train.tsv", rows[60:])
    table(path / "dev.tsv", rows[:60])
    return path


def accuracy(model: Model, dev: Path, *misled: str) -> float:
    rows = [dict(row) for row in model.rows_of(dev)]
    others = random.Random(1).sample(rows, len(rows))
    mixed = [{**row, **{name: other[name] for name in misled}} for row, other in zip(rows, others, strict=True)]
    return model.evaluate(mixed).metrics["accuracy"]


def test_a_task_nobody_listed_is_learned(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, dev = folder / "train.tsv", folder / "dev.tsv"
    assert run_command("train", folder / "animal.yaml", "--data", train, "--dev", dev, "--out", tmp_path / "run") == 0
    model = seq2see.load(tmp_path / "run")
    assert accuracy(model, dev) >= 0.9
    assert accuracy(model, dev, "picture") <= 0.6  # one of three colours
    assert accuracy(model, dev, "voice") <= 0.75  # one of two voices

    capsys.readouterr()
    row = dict(model.rows_of(dev)[0])
    assert run_command("predict", tmp_path / "run", f"{row['picture']}\t{row['voice']}", "--json") == 0
    assert json.loads(capsys.readouterr().out)["label"] == row["output"]
    assert set(model.predict((row["picture"], row["voice"])).looks.maps) == {"picture", "voice"}


def spoilt(folder: Path) -> tuple[Path, dict[int, list[str]]]:
    """A table that begins with bad rows, and what is to be said of each line; CMYK is no reason."""
    good = animals(folder, 30)
    files = folder / "files"
    whole = (files / "0.png").read_bytes()
    (files / "corrupt.png").write_bytes(whole[: len(whole) // 2])
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green")]
    frames[0].save(files / "film.gif", save_all=True, append_images=frames[1:])
    Image.new("L", (20_000, 4)).save(files / "wide.png")
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(files / "print.jpg")
    soundfile.write(files / "silent.wav", np.zeros(0, dtype=np.float32), RATE)
    bad = {
        2: ("gone.png", "0.wav", ["column 'picture': files/gone.png: "]),
        3: ("corrupt.png", "0.wav", ["column 'picture': files/corrupt.png: "]),
        4: ("film.gif", "0.wav", ["column 'picture': files/film.gif: ", "2 frames"]),
        5: ("wide.png", "0.wav", ["column 'picture': files/wide.png: ", "20,000 x 4 pixels"]),
        6: ("0.png", "silent.wav", ["column 'voice': files/silent.wav: "]),
        7: (
            "gone.png",
            "silent.wav",
            ["column 'picture': files/gone.png: ", "column 'voice': files/silent.wav: "],
        ),
    }
    rows = [f"files/{picture}\tfiles/{voice}\tred low" for picture, voice, _ in bad.values()]
    path = table(folder / "mixed.tsv", [*rows, "files/print.jpg\tfiles/0.wav\tred low", *good])
    return path, {line: reasons for line, (_, _, reasons) in bad.items()}


def test_one_report_tells_of_every_bad_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed, bad = spoilt(tmp_path)
    recipe = tmp_path / "animal.yaml"
    recipe.write_text(RECIPE, encoding="utf-8")
    assert run_command("train", recipe, "--data", mixed, "--out", tmp_path / "stop") == 2
    report = capsys.readouterr().err
    assert "6 rows" in report
    for line, reasons in bad.items():
        (text,) = [text for text in report.splitlines() if f"line {line}, " in text]
        assert all(reason in text for reason in reasons), text
    assert "print.jpg" not in report
    assert not (tmp_path / "stop").exists()

    skip = ["--set", "data.on_error=skip", "--updates", 2, "--out", tmp_path / "skip"]
    assert run_command("train", recipe, "--data", mixed, *skip) == 0
    assert "6 rows" in capsys.readouterr().err
    assert run_command("evaluate", tmp_path / "skip", "--data", mixed, "--on-error", "stop") == 2
    assert "--on-error skip" in capsys.readouterr().err
    model = seq2see.load(tmp_path / "skip")
    with pytest.warns(Notice, match="6 rows"):
        assert model.evaluate(mixed).rows == 31
    with pytest.warns(Notice, match="6 rows"):
        known = model.rows_of(mixed)[0]
    with pytest.warns(
        Notice, match="1 row with a label that the model does not know, which count as wrong: 'pink low'"
    ):
        model.evaluate([{**known, "output": "pink low"}, known])
    written = tmp_path / "elsewhere" / "answered.tsv"
    written.parent.mkdir()
    assert run_command("predict", tmp_path / "skip", "--file", mixed, "--to", written) == 0
    assert len(model.rows_of(written)) == 31  # paths hold from where the new table lies
