"""A table nobody prepared: two columns of any name, no setting, and the predictions written back beside them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import seq2see
from seq2see.cli import main
from seq2see.errors import UserError
from tests.system.small import RecordingListener

NAMES = ["Müller, Anna", 'the "old" one', "Łódź", "O'Neill", "Zoë", "São Paulo", "Ñandú", "plain", "two words", "x"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Quotes, commas and accents, as a spreadsheet writes them."""
    path = tmp_path / "list.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Name as given", "Name in capitals"])
        writer.writerows([f"{name} {number}", f"{name} {number}".upper()] for number in range(4) for name in NAMES)
    return path


def test_a_table_of_unknown_columns_trains_and_says_which_is_which(table: Path, tmp_path: Path) -> None:
    listener = RecordingListener()
    model = seq2see.train("transliteration", data=table, out=tmp_path / "model", updates=6, listeners=[listener])
    expected = "columns: 'Name as given' -> 'Name in capitals' (the only two)"
    assert f"{expected}; the first line of list.csv was read as their names" in listener.notes
    assert any("of 40 rows set aside for dev" in note for note in listener.notes)
    assert model.evaluate(table).rows == 40
    assert "ł" in model.bundle.fields.inputs["source"].vocabulary.symbols
    assert "Ł" in model.bundle.fields.output.vocabulary.symbols


def test_more_columns_than_wanted_have_to_be_named(table: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    lines = table.read_text(encoding="utf-8-sig").splitlines()
    wide.write_text("".join(f"{line},7\n" for line in lines).replace(",7", ",more", 1), encoding="utf-8")
    with pytest.raises(UserError, match=r"wide\.csv: no column 'latin', 'native'.*--columns"):
        seq2see.train("transliteration", data=wide, out=tmp_path / "model", updates=1, listeners=[RecordingListener()])
    columns = ["Name as given", "Name in capitals"]
    seq2see.train(
        "transliteration",
        data=wide,
        columns=columns,
        out=tmp_path / "model",
        updates=1,
        listeners=[RecordingListener()],
    )
    assert seq2see.load(tmp_path / "model").predict("Anna").text is not None


def command(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def test_predictions_are_written_back(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, answers = tmp_path / "model", tmp_path / "answers.csv"
    assert command("train", "transliteration", "--data", table, "--out", model, "--updates", 4) == 0
    assert "'Name as given' -> 'Name in capitals'" in capsys.readouterr().err
    assert command("predict", model, "--file", table, "--to", answers) == 0
    with table.open(encoding="utf-8-sig", newline="") as file:
        table_rows = list(csv.DictReader(file))
    with answers.open(encoding="utf-8-sig", newline="") as file:
        answered = list(csv.DictReader(file))
    assert [{name: row[name] for name in table_rows[0]} for row in answered] == table_rows
    assert all("prediction" in row for row in answered)
    predictions = seq2see.load(model).predict([row["Name as given"] for row in table_rows])
    assert [row["prediction"] for row in answered] == [prediction.text for prediction in predictions]
