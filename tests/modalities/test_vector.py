"""Rows of numbers: read with care, standardised, spoilt, kept on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import seq2see
from seq2see.cli import main
from seq2see.errors import UserError
from seq2see.modalities.vector import VectorField, VectorInput, VectorOutputField, parsed, written
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table

RECIPE: dict[str, Any] = {
    "inputs": {"x": {"kind": "vector"}},
    "output": {"kind": "vector", "column": "x"},
    "encoder": {"kind": "dense", "hidden": [], "size": 2},
    "training": {"updates": 1, "epochs": 0},
}


@pytest.mark.parametrize("text", ["1 2.5 -3e2", "1,2.5,-3e2", "[1, 2.5, -300.0]", " 1  2.5\t-300 "])
def test_numbers_stand_between_spaces_or_commas(text: str) -> None:
    assert parsed(text).tolist() == [1.0, 2.5, -300.0]
    assert parsed(written(parsed(text))).tolist() == [1.0, 2.5, -300.0]


BAD = {
    "1 2": "2 numbers, and every row has 3",
    "1 2 3 4": "4 numbers, and every row has 3",
    "1 two 3": "number 2 is 'two', which is not a number",
    "1 2 nan": "number 3 is nan",
    "inf 2 3": "number 1 is inf",
    "1 1e39 3": "number 2 is 1e39",
    "[]": "there is no number",
}


@pytest.mark.parametrize(("value", "reason"), BAD.items())
def test_a_bad_row_is_named_with_line_and_column(tmp_path: Path, value: str, reason: str) -> None:
    table = tmp_path / "t.tsv"
    table.write_text(f"id\tx\na\t1 2 3\nb\t4 5 6\nc\t{value}\n", encoding="utf-8")
    with pytest.raises(UserError) as stopped:
        seq2see.train(RECIPE, data=table, out=tmp_path / "run")
    head, row, advice = str(stopped.value).splitlines()
    assert head == "t.tsv: 1 row with numbers that cannot be used:"
    assert row.startswith(f"  {table}, line 4, column 'x': {reason}")
    assert "--set data.on_error=skip" in advice


def test_all_bad_rows_are_told_at_once(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("\n".join(["x", "1 2 3", *BAD, "4 5 6"]) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="7 rows with numbers that cannot be used") as stopped:
        seq2see.train(RECIPE, data=table, out=tmp_path / "run")
    for line, reason in enumerate(BAD.values(), start=3):
        assert f"line {line}, column 'x': {reason}" in str(stopped.value)


def test_bad_rows_are_left_out_where_asked_for_and_empty_ones_always(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("x\ty\n1 2 3\ta\n\tb\n1 2\tc\n4 5 six\td\n7 8 9\te\n", encoding="utf-8")
    opened, resolution = open_table(load_recipe({**RECIPE, "data": {"on_error": "skip"}}), table, None)
    assert [row["x"] for row in resolution.rows(opened, filled=["x"])] == ["1 2 3", "7 8 9"]
    assert "1 row with an empty 'x' left out, the first at line 3" in opened.notes[0]
    assert "2 rows with numbers that cannot be used" in opened.notes[1]
    assert "line 5, column 'x': number 3 is 'six'" in opened.notes[1]


def test_lists_of_numbers_are_read(tmp_path: Path) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps({"x": row}) + "\n" for row in ([1, 2.5], [3, 4], [5, 6])), encoding="utf-8")
    opened, resolution = open_table(load_recipe(RECIPE), table, None)
    assert [row["x"] for row in resolution.rows(opened)] == ["1 2.5", "3 4", "5 6"]
    table.write_text('{"x": [1, 2]}\n{"x": [1, null]}\n{"x": [1, 2, 3]}\n', encoding="utf-8")
    opened, resolution = open_table(load_recipe(RECIPE), table, None)
    with pytest.raises(UserError, match=r"2 rows .*\n.*line 2, column 'x': .* found nothing.*\n.*line 3, .*3 numbers"):
        list(resolution.rows(opened))


def test_tables_of_later_use_have_rows_of_the_same_length(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("x\n" + "".join(f"{i} {i * i} 1\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "other.tsv").write_text("x\n1 2\n3 4\n", encoding="utf-8")
    said = r"other.tsv, line 2, column 'x': 2 numbers, and every row has 3"
    with pytest.raises(UserError, match=said):
        seq2see.train(RECIPE, data=tmp_path / "train.tsv", dev=tmp_path / "other.tsv", out=tmp_path / "run")
    model = seq2see.train(RECIPE, data=tmp_path / "train.tsv", out=tmp_path / "run")
    with pytest.raises(UserError, match=said):
        model.evaluate(tmp_path / "other.tsv")
    with pytest.raises(UserError, match="2 numbers, and every row has 3"):
        model.predict("1 2")


def test_means_and_deviations_are_learned_and_kept(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(5, 3, size=(50, 3)) * [1, 100, 0] + [0, 0, 7]
    field = VectorField(VectorInput())
    field.build(map(written, rows))
    np.testing.assert_allclose(field.mean, rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(field.deviation[:2], rows.std(0)[:2], rtol=1e-5)
    assert field.deviation[2] == 1.0  # never differs: read as 0
    field.save(tmp_path, "x")
    loaded = VectorOutputField.load(tmp_path, "x", VectorInput(), output=False)
    made = loaded.batch([written(row) for row in rows]).values
    assert made.mean(0).abs().max() < 1e-4
    np.testing.assert_allclose(loaded.restored(made.numpy()), rows, rtol=1e-3, atol=1e-3)
    (tmp_path / "numbers-x.json").write_text('{"mean": [1, 2], "deviation": [1]}', encoding="utf-8")
    with pytest.raises(UserError, match="damaged"):
        VectorField.load(tmp_path, "x", VectorInput(), output=False)


@pytest.mark.parametrize("kind", ["gaussian", "masking"])
def test_noise_is_in_what_is_read_and_not_in_what_should_come_out(kind: str) -> None:
    noisy = {**RECIPE, "inputs": {"x": {"kind": "vector", "noise": {"kind": kind, "amount": 0.5}}}}
    rows = [{"x": written(row), "output": written(row)} for row in np.random.default_rng(1).normal(size=(200, 8))]
    recipe = load_recipe(noisy)
    fields = Fields.build(recipe, lambda: iter(rows))
    data = Dataset.build(fields, rows)
    torch.manual_seed(3)
    batch = data.batch(range(200))
    clean = fields.batch(rows, target=True)
    assert batch.target is not None
    torch.testing.assert_close(batch.target.values, clean.inputs["x"].values)  # type: ignore[union-attr]
    apart = batch.inputs["x"].values - clean.inputs["x"].values
    if kind == "gaussian":
        assert apart.std() == pytest.approx(0.5, rel=0.1)
    else:
        assert (batch.inputs["x"].values == 0).float().mean() == pytest.approx(0.5, abs=0.05)
    again = data.batch(range(200)).inputs["x"].values
    assert not torch.equal(again, batch.inputs["x"].values)  # other noise each time


def _classifier(folder: Path, numbers: int = 2, **more: Any) -> seq2see.Model:
    """A model that reads so many numbers, from 0 to 29, and gives a label."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{' '.join(str(i + j) for j in range(numbers))}\t{'ab'[i % 2]}" for i in range(30)]
    (folder / "train.tsv").write_text("\n".join(["x\tlabel", *lines]) + "\n", encoding="utf-8")
    recipe = {**RECIPE, "output": {"kind": "label", "column": "label"}, **more}
    return seq2see.train(recipe, data=folder / "train.tsv", out=folder / "run", listeners=[])


def test_models_that_read_other_numbers_are_no_ensemble(tmp_path: Path) -> None:
    two, three = _classifier(tmp_path / "two", 2), _classifier(tmp_path / "three", 3)
    with pytest.raises(UserError, match="input 'x' model 1 reads 2 numbers of the vector and model 2 3 numbers"):
        seq2see.Model([two.bundle, three.bundle])
    seq2see.Model([two.bundle, two.bundle])


def test_a_number_that_is_too_far_is_a_bad_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = _classifier(tmp_path)
    table = tmp_path / "new.tsv"
    table.write_text("x\tlabel\n1 2\ta\n3 1e30\tb\n5 6\ta\n", encoding="utf-8")
    place = r"new.tsv, line 3, column 'x': number 2 is 1e\+30, more than 1e\+15 deviations"
    with pytest.raises(UserError, match=place):
        model.evaluate(table)
    with pytest.raises(UserError, match="input 'x': number 2 is 1e"):
        model.predict("3 1e30")
    command = ["predict", str(tmp_path / "run"), "--file", str(table), "--to", str(tmp_path / "out.tsv")]
    with pytest.raises(SystemExit):
        main(command)
    assert "new.tsv, line 3, column 'x'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([*command, "--on-error", "skip"])
    assert left.value.code == 0
    assert "new.tsv, line 3, column 'x'" in capsys.readouterr().err


def test_a_number_of_a_dev_row_that_is_too_far_is_told_before_training(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("x\n" + "".join(f"{i} {i}\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("x\n1 2\n3 1e30\n", encoding="utf-8")
    tables = {"data": tmp_path / "train.tsv", "dev": tmp_path / "dev.tsv", "out": tmp_path / "run", "listeners": []}
    with pytest.raises(UserError, match=r"dev.tsv, line 3, column 'x': number 2 is 1e\+30"):
        seq2see.train(RECIPE, **tables)
    seq2see.train(RECIPE, **tables, overrides=["data.on_error=skip"])


def test_numbers_that_are_read_as_they_are_have_a_limit_from_the_start() -> None:
    field = VectorField(VectorInput(standardise=False))
    assert field.problem("1 2e15") is not None
    assert VectorOutputField(VectorInput(standardise=False)).problem("1 2e15") is None


def test_a_list_of_numbers_is_one_input_in_python(tmp_path: Path) -> None:
    model = _classifier(tmp_path)
    expected = model.predict("3 4")
    for value in ([3, 4], [3.0, 4.0], (3, 4), np.array([3, 4]), torch.tensor([3.0, 4.0]), [np.float32(3), np.int64(4)]):
        prediction: Any = model.predict(value)
        assert prediction.log_probability == expected.log_probability
    for several in ([[3, 4]], ["3 4"], [np.array([3, 4])], [torch.tensor([3, 4])], [{"x": torch.tensor([3, 4])}]):
        (prediction,) = model.predict(several)
        assert prediction.log_probability == expected.log_probability
    with pytest.raises(UserError, match="input 'x': 3 numbers, and every row has 2"):
        model.predict([1, 2, 3])
    with pytest.raises(UserError, match="got 3; give a text or a list of numbers"):
        model.predict(3)
