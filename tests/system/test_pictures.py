"""Pictures in, words or labels out: small models learn what one that sees nothing cannot know."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

import seq2see
from seq2see.cli import main
from seq2see.errors import Notice, UserError

COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220), "yellow": (235, 220, 40)}
SHAPES = ("square", "ring")


def shapes(folder: Path, number: int, seed: int = 1) -> list[tuple[str, str, str]]:
    """(file, what is left and what is right of it, whether the left one is red)."""
    chosen = random.Random(seed)
    (folder / "images").mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(number):
        picture = Image.new("RGB", (48, 24), "white")
        brush, words = ImageDraw.Draw(picture), []
        for left in (2, 26):
            colour, shape = chosen.choice(list(COLOURS)), chosen.choice(SHAPES)
            box = (left + chosen.randint(0, 3), 3, left + 16 + chosen.randint(0, 3), 20)
            if shape == "square":
                brush.rectangle(box, fill=COLOURS[colour])
            else:
                brush.ellipse(box, outline=COLOURS[colour], width=4)
            words += [colour, shape]
        picture.save(folder / "images" / f"{seed}-{i}.png")
        rows.append((f"images/{seed}-{i}.png", " ".join(words), "yes" if words[0] == "red" else "no"))
    return rows


def write_rows(path: Path, rows: list[tuple[str, str]], columns: str) -> Path:
    lines = [columns, *(f"{file}\t{caption}" for file, caption in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


SMALL = {
    "encoder": {"kind": "convolutional", "channels": [12, 16, 24], "size": 48},
    "training": {"epochs": 0, "updates": 200, "learning_rate": 0.004, "batch_rows": 16, "report_every": 200},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shapes")
    rows = shapes(path, 360)
    write_rows(path / "train.tsv", [(file, caption) for file, caption, _ in rows[:300]], "image\tcaption")
    dev = [(file, caption) for file, caption, _ in rows[300:]]
    write_rows(path / "dev.tsv", dev, "image\tcaption")
    mixed = [caption for _, caption in dev]
    random.Random(3).shuffle(mixed)
    write_rows(
        path / "blind.tsv", [(file, caption) for (file, _), caption in zip(dev, mixed, strict=True)], "image\tcaption"
    )
    return path


def test_captions_of_pictures_are_learned(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = {
        **SMALL,
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48}},
        "output": {"column": "caption"},
        "attention": {"over": "image", "score": "additive", "size": 32},
        "decoder": {"size": 64, "start": "image", "embedding": {"size": 16}},
        "evaluation": {"metrics": ["exact", "bleu4_plain"]},
    }
    model = seq2see.train(recipe, data=folder / "train.tsv", dev=folder / "dev.tsv", out=tmp_path / "run")
    right = model.evaluate(folder / "dev.tsv")
    blind = model.evaluate(folder / "blind.tsv")
    assert right.metrics["exact"] > 0.6
    assert blind.metrics["exact"] < 0.2
    assert right.baseline["exact"] < 0.2

    loaded = seq2see.load(tmp_path / "run")
    path = next((folder / "images").glob("*.png"))
    prediction = loaded.predict(str(path))
    assert prediction.text == model.predict(str(path)).text
    assert prediction.looks.layouts["image"] == {"kind": "grid", "shape": [3, 6]}
    assert prediction.looks.weights.shape == (len(prediction.tokens), 18)
    assert loaded.places(str(path))[7] == "2,2"
    assert prediction.looks.weights.sum(1) == pytest.approx(1.0, abs=1e-4)

    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main(["look", str(tmp_path / "run"), str(path), "--out", str(tmp_path / "look.svg")])
    assert capsys.readouterr().out.strip() == prediction.text
    svg = (tmp_path / "look.svg").read_text(encoding="utf-8")
    assert svg.count("<image") == 1 + len(prediction.tokens) + 1  # the picture, each word, the key
    assert all(f"look {token.text}" in svg.replace("&lt;", "<").replace("&gt;", ">") for token in prediction.tokens)
    assert f"{prediction.tokens[0].probability:.0%}".replace("%", " %") in svg
    with pytest.raises(SystemExit, match="0"):
        main(["explain", str(tmp_path / "run"), str(path), "--step", "1"])
    cells = loaded.explain(str(path), step=1).looks[0]
    assert [cells.places[0], cells.places[-1]] == ["1,1", "3,6"]
    assert len(cells.places) == len(cells.weights) == 18
    assert "3,6" in capsys.readouterr().out


def test_labels_of_pictures_are_learned(folder: Path, tmp_path: Path) -> None:
    rows = shapes(tmp_path, 260, seed=7)
    write_rows(tmp_path / "train.tsv", [(file, label) for file, _, label in rows[:200]], "image\tlabel")
    write_rows(tmp_path / "dev.tsv", [(file, label) for file, _, label in rows[200:]], "image\tlabel")
    recipe = {
        **SMALL,
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48, "augment": {"light": 0.1}}},
        "output": {"kind": "label", "column": "label"},
        "attention": {"over": "image", "score": "static", "size": 32},
        "decoder": {"size": 32, "start": "none"},
        "loss": {"class_weights": "balanced"},
    }
    model = seq2see.train(
        recipe, data=tmp_path / "train.tsv", dev=tmp_path / "dev.tsv", out=tmp_path / "run", updates=120
    )
    report = model.evaluate(tmp_path / "dev.tsv")
    assert report.metrics["macro_f1"] > 0.85
    assert report.baseline["macro_f1"] < 0.6


def test_rows_of_one_picture_are_references_of_each_other(folder: Path, tmp_path: Path) -> None:
    """In `evaluate` and in the reports of a run alike; a path may be spelt with a dot."""
    seen = [file for file, _, _ in shapes(tmp_path, 4)]
    rows = [(f"./{file}" if number else file, f"{word} thing") for file in seen for number, word in enumerate("abc")]
    table = write_rows(tmp_path / "several.tsv", rows, "image\tcaption")
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48}},
        "encoder": {"kind": "convolutional", "channels": [4], "size": 8},
        "output": {"column": "caption", "min_count": 1},
        "decoder": {"size": 8},
        "training": {"updates": 20, "epochs": 0, "learning_rate": 0.05, "report_every": 20},
        "evaluation": {"metrics": ["exact", "bleu2_plain", "cider_plain"], "baseline": "frequent"},
    }
    model = seq2see.train(recipe, data=table, dev=table, out=tmp_path / "run")
    report = model.evaluate(table)
    assert (report.rows, report.inputs) == (12, 4)
    assert report.baseline["exact"] == 1.0  # whichever of the three is said
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    assert last["baseline"]["exact"] == 1.0
    assert {name: last["dev"][name] for name in report.metrics} == pytest.approx(report.metrics)


def spoilt(folder: Path) -> Path:
    """A table in which every second picture cannot be used, each for a reason of its own."""
    rows = shapes(folder, 40)
    good = (folder / rows[0][0]).read_bytes()
    images = folder / "images"
    (images / "cut.png").write_bytes(good[: len(good) // 2])
    (images / "words.png").write_text("no picture", encoding="utf-8")
    Image.new("L", (20_000, 4)).save(images / "wide.png")
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green")]
    frames[0].save(images / "film.gif", save_all=True, append_images=frames[1:])
    Image.new("CMYK", (48, 24), (0, 255, 255, 0)).save(images / "print.jpg")
    names = ["gone.png", "cut.png", "words.png", "wide.png", "film.gif", "print.jpg"]
    bad = [(f"images/{name}", "red square red square") for name in names]
    return write_rows(folder / "mixed.tsv", [*bad, *((file, caption) for file, caption, _ in rows)], "image\tcaption")


def test_bad_files_are_reported_together_or_left_out(tmp_path: Path) -> None:
    table = spoilt(tmp_path)
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48}},
        "encoder": SMALL["encoder"],
        "output": {"column": "caption"},
        "decoder": {"size": 16},
        "training": {"updates": 2, "epochs": 0},
    }
    with pytest.raises(UserError) as stopped:
        seq2see.train(recipe, data=table, out=tmp_path / "stop")
    message = str(stopped.value)
    assert "5 rows" in message
    names = ["gone.png", "cut.png", "words.png", "wide.png", "film.gif"]
    for line, name in enumerate(names, start=2):
        assert f"line {line}, column 'image': images/{name}: " in message
    assert "20,000 x 4 pixels" in message
    assert "2 frames" in message
    assert "print.jpg" not in message
    assert not (tmp_path / "stop").exists()

    recipe["data"] = {"on_error": "skip"}
    model = seq2see.train(recipe, data=table, out=tmp_path / "skip")
    with pytest.warns(Notice, match="5 rows"):
        assert model.evaluate(table).rows == 41


def test_a_missing_picture_is_named_at_prediction(folder: Path, tmp_path: Path) -> None:
    recipe = {
        "inputs": {"image": {"kind": "image", "height": 24, "width": 48}},
        "encoder": SMALL["encoder"],
        "output": {"column": "caption"},
        "training": {"updates": 1, "epochs": 0},
    }
    model = seq2see.train(recipe, data=folder / "dev.tsv", out=tmp_path / "run")
    with pytest.raises(UserError, match=r"nowhere\.png"):
        model.predict("nowhere.png")
