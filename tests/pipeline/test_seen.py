"""Measuring on rows that were trained on is noticed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import seq2see
from seq2see.api import Model
from seq2see.errors import Notice, UserError
from seq2see.modalities import files
from seq2see.pipeline import trained_rows
from seq2see.pipeline.trained_rows import FILE, Recorder, RowHasher, training_overlap
from seq2see.pipeline.weights import CHECKSUMS
from seq2see.recipe import load_recipe
from tests.pipeline.conftest import PAIRS, SMALL
from tests.system.small import RecordingListener, write_table

NEW = [{"source": f"{a}{b}", "output": f"{a}{b}".upper()} for a in "wxyz" for b in "wxyz"]


def measured(model: Model, data: Any, *, told: str | None) -> dict[str, int] | None:
    """What a report tells of rows trained on; told: what a warning says of it, None: there is none."""
    if told is None:
        report = model.evaluate(data)
    else:
        with pytest.warns(Notice, match=told):
            report = model.evaluate(data)
    assert report.to_dict().get("seen") == (None if report.seen is None else report.seen.to_dict())
    return None if report.seen is None else report.seen.to_dict()


def trained_of(model: Model, table: Path) -> list[dict[str, str]]:
    """The rows of the table that were not set aside for dev."""
    rows = [
        dict(zip(["source", "output"], line.split("\t"), strict=True)) for line in table.read_text().split("\n")[1:-1]
    ]
    hasher = RowHasher(model.recipe)
    assert model.bundle.trained is not None
    return [row for row in rows if hasher(row)[1] in model.bundle.trained.pairs]


def test_rows_of_the_training_table_are_counted_without_those_set_aside(model: Model, table: Path) -> None:
    trained = len(trained_of(model, table))
    assert 0 < trained < 64
    found = measured(model, table, told=f"{trained} of 64 rows were trained on")
    assert found == {"trained_on": trained, "other_output": 0, "checked": 64}


def test_new_rows_are_nothing_to_speak_of(model: Model, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    found = measured(model, write_table(tmp_path / "new.tsv", NEW), told=None)
    assert found == {"trained_on": 0, "other_output": 0, "checked": len(NEW)}
    assert not [one for one in recwarn if "trained on" in str(one.message)]


def test_known_inputs_with_another_output_are_counted_for_themselves(model: Model, table: Path, tmp_path: Path) -> None:
    row = trained_of(model, table)[0]
    rows = [row, {**row, "output": "else"}, NEW[0]]
    path = write_table(tmp_path / "rows.tsv", rows)
    assert measured(model, path, told="another output") == {"trained_on": 1, "other_output": 1, "checked": 3}


def test_spaces_and_unicode_forms_do_not_hide_a_row() -> None:
    hasher = RowHasher(load_recipe(PAIRS))
    assert hasher({"source": " né  le", "output": "x"}) == hasher({"source": "ne\u0301 le ", "output": "x"})
    assert hasher({"source": "a", "output": "bc"})[1] != hasher({"source": "ab", "output": "c"})[1]


def test_scores_tell_it_too(model: Model, table: Path) -> None:
    with pytest.warns(Notice, match="trained on"):
        found = model.score(table)
    assert found.seen is not None
    assert found.to_dict()["seen"]["trained_on"] == len(trained_of(model, table))


def test_a_saved_and_loaded_model_remembers(model: Model, table: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "saved")
    again = seq2see.load(tmp_path / "saved")
    assert measured(again, table, told="trained on") == measured(model, table, told="trained on")
    ensemble = Model([*again.bundles, *model.bundles])
    assert measured(ensemble, table, told="trained on") == measured(model, table, told="trained on")


def test_a_folder_of_an_earlier_version_makes_no_claim(model: Model, table: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "saved")
    (tmp_path / "saved" / FILE).unlink()
    (tmp_path / "saved" / CHECKSUMS).unlink()
    assert measured(seq2see.load(tmp_path / "saved"), table, told=None) is None
    (tmp_path / "saved" / FILE).write_bytes(b"no such file")
    with pytest.raises(UserError, match="damaged"):
        seq2see.load(tmp_path / "saved")


def test_a_model_that_goes_on_from_another_remembers_the_rows_of_both(
    model: Model, table: Path, tmp_path: Path
) -> None:
    new = write_table(tmp_path / "new.tsv", NEW)
    tuned = seq2see.train(None, new, start=model, out=tmp_path / "tuned", updates=1, listeners=[])
    assert measured(tuned, table, told="trained on") == measured(model, table, told="trained on")
    assert measured(tuned, new, told="trained on") is not None
    resumed = seq2see.train(None, out=tmp_path / "tuned", resume=True, updates=2, listeners=[])
    assert measured(resumed, table, told="trained on") == measured(model, table, told="trained on")


def test_rows_of_a_dev_table_that_are_trained_on_are_told_of(table: Path, tmp_path: Path) -> None:
    told = RecordingListener()
    seq2see.train(PAIRS, table, dev=table, out=tmp_path / "run", overrides=SMALL, updates=1, listeners=[told])
    assert [line for line in told.notes if line.startswith("dev: 64 of 64 rows were trained on")]


def test_rows_left_out_of_training_are_not_taken_for_trained(tmp_path: Path) -> None:
    rows = [{"source": word["source"], "output": word["output"]} for word in NEW] + [
        {"source": "aa", "output": "A" * 9}
    ]
    path = write_table(tmp_path / "rows.tsv", rows)
    made = {**PAIRS, "output": {"tokens": "character", "max_length": 5}}
    dev = write_table(tmp_path / "dev.tsv", [{"source": "b", "output": "B"}])
    model = seq2see.train(made, path, dev=dev, out=tmp_path / "run", overrides=SMALL, updates=1, listeners=[])
    assert measured(model, path, told="16 of 17") == {"trained_on": 16, "other_output": 0, "checked": 17}


@pytest.mark.parametrize("stream", [False, True])
def test_lines_of_a_language_model_are_known(stream: bool, tmp_path: Path) -> None:
    draw = random.Random(1)
    lines = ["".join(draw.choices("abcdef", k=9)) for _ in range(40)]
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "dev.txt").write_text("fedcba\nabcdef\n", encoding="utf-8")
    (tmp_path / "test.txt").write_text("\n".join([lines[0], lines[1], "fffffffff"]) + "\n", encoding="utf-8")
    made = {"output": {"tokens": "character", "column": "text"}, "data": {"stream": stream}}
    small = ["decoder.size=8", "decoder.embedding.size=4"]
    run = {"out": tmp_path / "run", "dev": tmp_path / "dev.txt", "updates": 1, "listeners": []}
    model = seq2see.train(made, tmp_path / "train.txt", overrides=small, **run)
    found = measured(model, tmp_path / "test.txt", told="2 of 3")
    assert found == {"trained_on": 2, "other_output": 0, "checked": 3}


def test_a_copy_of_a_file_is_the_same_file(tmp_path: Path) -> None:
    recipe = load_recipe("image-captioning")
    (name,) = recipe.inputs
    draw = np.random.default_rng(1)
    for number, place in enumerate(("a.png", "b.png")):
        Image.fromarray(draw.integers(0, 255, (8, 8 + number, 3), dtype=np.uint8)).save(tmp_path / place)
    (tmp_path / "copy.png").write_bytes((tmp_path / "a.png").read_bytes())
    one, copy, other = (
        RowHasher(recipe)({name: str(tmp_path / place), "output": "a dog"}) for place in ("a.png", "copy.png", "b.png")
    )
    assert one == copy
    assert one[0] != other[0]


def test_large_files_that_differ_in_the_middle_differ(tmp_path: Path) -> None:
    content = bytearray(files.BLOCK * files.BLOCKS * 2)
    (tmp_path / "a").write_bytes(content)
    content[len(content) // 2 - 20_000 : len(content) // 2 + 20_000] = b"x" * 40_000
    (tmp_path / "b").write_bytes(content)
    assert files._content(tmp_path / "a") != files._content(tmp_path / "b")


def test_of_many_rows_a_sample_is_kept_and_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained_rows, "MAX_ROWS", 100)
    recipe = load_recipe(PAIRS)
    rows = [{"source": str(number), "output": str(number)} for number in range(3000)]
    recorder = Recorder.of(recipe)
    for row in rows:
        recorder.add(row)
    trained = recorder.finish()
    assert 25 <= len(trained.pairs) <= 100
    seen = training_overlap([(recipe, trained)], rows)
    assert seen is not None
    assert seen.checked == seen.trained_on == len(trained.pairs)
    assert f"{seen.checked} of {seen.checked} rows" in seen.lines()[0]
    assert "3,000" in seen.lines()[0]
    fresh = training_overlap([(recipe, trained)], [{"source": f"x{number}", "output": "y"} for number in range(3000)])
    assert fresh is not None
    assert (fresh.trained_on, fresh.lines()) == (0, [])
    both = trained.joined(trained)
    assert both.pairs.tolist() == trained.pairs.tolist()


def test_the_file_is_small_and_holds_no_text(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "saved")
    content = (tmp_path / "saved" / FILE).read_bytes()
    assert len(content) < 64 * 16 + 400
    assert json.loads((tmp_path / "saved" / "baselines.json").read_text()) is not None
