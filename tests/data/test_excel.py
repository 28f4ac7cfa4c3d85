"""Sheets of Excel workbooks as tables."""

from __future__ import annotations

import datetime
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import seq2see
from seq2see.data import excel
from seq2see.data.formats import DataSettings
from seq2see.data.tables import format_of, locate, read, write
from seq2see.errors import UserError
from tests.system.small import RecordingListener

Sheets = dict[str, Sequence[Sequence[Any]]]


def book(path: Path, sheets: Sheets) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(list(row))
    made.save(path)
    return path


def refused(path: Path, **settings: Any) -> str:
    with pytest.raises(UserError) as error:
        list(read(path, settings=DataSettings(**settings)))
    return str(error.value)


def test_a_sheet_is_read_as_a_table(tmp_path: Path) -> None:
    when = datetime.datetime(2020, 5, 17)
    rows = [["word", "count", None, "day"], ["Mädchen", 3, "unread", when], [None] * 4, ["=b", 0.5, None, None]]
    rows = [[None] * 4, *rows, [None, None, None, None]]
    path = book(tmp_path / "book.xlsx", {"List": rows})
    sheet = openpyxl.load_workbook(path)
    sheet["List"]["A5"].data_type = "s"
    sheet.save(path)
    table = read(path)
    assert table.columns == ["word", "count", "day"]
    assert [(row.line, row.values) for row in table] == [
        (3, {"word": "Mädchen", "count": 3, "day": "2020-05-17"}),
        (4, {"word": "", "count": "", "day": ""}),
        (5, {"word": "=b", "count": 0.5, "day": ""}),
    ]


def test_errors_of_formulas_and_formulas_without_a_value_are_empty(tmp_path: Path) -> None:
    path = book(tmp_path / "book.xlsx", {"List": [["a", "b", "c"], ["x", "#N/A", "=1+1"]]})
    assert [row.values for row in read(path)] == [{"a": "x", "b": "", "c": ""}]


def test_one_of_several_sheets_is_named(tmp_path: Path) -> None:
    rows = [["a", "b"], ["1", "2"]]
    path = book(tmp_path / "book.xlsx", {"Train": rows, "Test rows": [*rows, ["3", "4"]], "a#b": rows})
    message = refused(path)
    assert all(name in message for name in ("Train", "Test rows", f"{path}#Train"))
    table = read(f"{path}#Test rows")
    assert len(list(table)) == 2
    assert table.files == [path]
    assert table.place(3).endswith("book.xlsx#Test rows, row 3")
    assert len(list(read(f"{path}#a#b"))) == 1
    assert locate(f"{path}#Train")[0] == Path(f"{path}#Train")
    assert "did you mean 'Train'" in refused(Path(f"{path}#Trian"))


def test_a_file_whose_name_has_the_mark_is_that_file(tmp_path: Path) -> None:
    path = book(tmp_path / "book.xlsx#1.xlsx", {"List": [["a"], ["1"]]})
    assert [row.values for row in read(path)] == [{"a": "1"}]


def test_bad_sheets_name_the_row(tmp_path: Path) -> None:
    path = book(tmp_path / "book.xlsx", {"List": [["a", "b"], ["1", "2", "3"], ["4", "5"]]})
    assert f"{path}, row 2" in refused(path)
    table = read(path, settings=DataSettings(on_error="skip"))
    assert [row.values["a"] for row in table] == ["4"]
    assert "'a' occurs twice" in refused(book(tmp_path / "twice.xlsx", {"List": [["a", "a"], ["1", "2"]]}))
    assert "no rows" in refused(book(tmp_path / "head.xlsx", {"List": [["a", "b"]]}))
    assert "empty" in refused(book(tmp_path / "empty.xlsx", {"List": []}))


def test_files_that_are_no_workbooks_are_refused(tmp_path: Path) -> None:
    for name, content in {"text.xlsx": b"a,b\n1,2\n", "cut.xlsx": b"PK\x03\x04rest"}.items():
        (tmp_path / name).write_bytes(content)
        assert str(tmp_path / name) in refused(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "zip.xlsx", "w") as archive:
        archive.writestr("a.txt", "b")
    assert "not an Excel workbook" in refused(tmp_path / "zip.xlsx")
    (tmp_path / "packed.xlsx.gz").write_bytes(b"\x1f\x8b")
    assert ".xlsx" in refused(tmp_path / "packed.xlsx.gz")


def test_workbooks_that_unpack_to_far_more_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "book.xlsx", {"List": [["a"], ["x" * 30_000]] + [["y" * 30_000]] * 50})
    monkeypatch.setattr(excel, "MAX_UNPACKED", 1 << 10)
    monkeypatch.setattr(excel, "MAX_EXPANSION", 1)
    assert "unpack" in refused(path)


def test_entities_and_rows_beyond_a_sheet_are_refused(tmp_path: Path) -> None:
    path = book(tmp_path / "book.xlsx", {"List": [["a"], ["b"]]})

    def changed(name: str, part: str, before: str, after: str) -> Path:
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(tmp_path / name, "w") as archive:
            for entry in source.infolist():
                content = source.read(entry)
                if entry.filename == part:
                    assert before.encode() in content
                    content = content.replace(before.encode(), after.encode(), 1)
                archive.writestr(entry.filename, content)
        return tmp_path / name

    bomb = changed("bomb.xlsx", "xl/worksheets/sheet1.xml", "<worksheet", '<!DOCTYPE x [<!ENTITY a "a">]><worksheet')
    assert "entities" in refused(bomb)
    far = changed("far.xlsx", "xl/worksheets/sheet1.xml", '<row r="2"', '<row r="9000000000"')
    assert "rows" in refused(far)


def test_a_table_is_written_as_a_workbook_without_formulas(tmp_path: Path) -> None:
    path = tmp_path / "out.xlsx"
    write(path, [{"a": "=1+1", "b": 0.5, "c": ["x", "y"]}, {"a": "\x01", "b": None, "c": ""}], ["a", "b", "c"])
    assert [row.values for row in read(path)] == [
        {"a": "=1+1", "b": 0.5, "c": '["x", "y"]'},
        {"a": "\N{REPLACEMENT CHARACTER}", "b": "", "c": ""},
    ]
    with pytest.raises(UserError, match="column 'a'"):
        write(path, [{"a": "x" * 40_000}], ["a"])
    assert len(list(read(path))) == 2


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "book.xlsx", {"List": [["a"], ["b"]]})
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "seq2see[excel]" in refused(path)
    assert format_of(path) is excel.Sheet


def test_a_model_is_trained_on_a_sheet_and_resumed(tmp_path: Path) -> None:
    words = [a + b + c for a in "abcd" for b in "ab" for c in "abcd"]
    path = book(
        tmp_path / "book.xlsx", {"Pairs": [["word", "capitals"], *([word, word.upper()] for word in words)], "x": []}
    )
    recipe = {
        "inputs": {"source": {"tokens": "character"}},
        "output": {"tokens": "character"},
        "encoder": {"size": 4},
        "decoder": {"size": 4},
        "training": {"updates": 1, "epochs": 0},
    }
    data = f"{path}#Pairs"
    heard = RecordingListener()
    model = seq2see.train(recipe, data, columns=["word", "capitals"], out=tmp_path / "run", listeners=[heard])
    assert model.recipe.inputs["source"].column == "word"
    assert model.evaluate(data).rows == len(words)
    more = seq2see.train(None, out=tmp_path / "run", resume=True, updates=2, listeners=[heard])
    assert len(more.predict([{"word": "abc"}])) == 1
