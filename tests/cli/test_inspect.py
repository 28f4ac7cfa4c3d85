"""`seq2see inspect`: what is in a table, what a recipe makes of it, which recipes fit."""

from __future__ import annotations

import json
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from seq2see.data import inspection
from seq2see.data.inspection import ColumnFacts, inspect_table
from seq2see.data.tables import read
from seq2see.recipe import shipped
from seq2see.training.inspection import FITTING, fitting_recipes
from tests.commands import Run

Call = Callable[..., Run]


def table(path: Path, rows: Sequence[Sequence[str]], header: Sequence[str] = ("word", "spelled")) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]), encoding="utf-8")
    return path


def told(run: Run) -> dict[str, Any]:
    assert run.code == 0, run.err
    record: dict[str, Any] = json.loads(run.out)
    return record


def test_rows_lengths_blanks_and_duplicates(tmp_path: Path, call: Call) -> None:
    path = table(
        tmp_path / "x.tsv", [("ab", "A"), ("abcd", "B"), ("ab", "A"), ("ab", "C"), ("", "D"), (" x", "E"), ("", "F")]
    )
    record = told(call("inspect", path, "--json"))
    word = record["columns"][0]
    assert (record["rows"], record["complete"], record["inputs"], record["output"]) == (7, True, ["word"], "spelled")
    assert word["lengths"] == {"least": 2, "median": 2, "p95": 4, "most": 4}
    assert (word["blanks"], word["distinct"], word["outer_spaces"]["rows"]) == (2, 3, 1)
    assert sum(rows for _, rows in word["histogram"]) == 5
    assert (record["duplicates"]["rows"], record["duplicates"]["first"]) == (1, "line 4")
    assert (record["several_outputs"]["rows"], record["several_outputs"]["first"]) == (1, "line 5")


def test_scripts_forms_and_odd_characters(tmp_path: Path) -> None:
    composed = "né"
    apart = unicodedata.normalize("NFD", composed)
    words = ["plain", composed, apart, "раypal", "zero\u200bwidth", "re\ufffdplaced", "कि\u200dत", "漢字かな", "x y"]
    facts = inspect_table(read(table(tmp_path / "x.tsv", [(word, "A") for word in words])))
    column = facts.column("word")
    assert column.forms["NFD"] == 1
    assert column.forms["NFC"] >= 1
    assert (column.mixed.rows, column.mixed.where) == (1, "line 5")
    assert {what.split()[0] for what in column.odd} == {"U+200B", "U+FFFD"}
    assert {"latin", "cyrillic", "devanagari", "cjk", "hiragana"} <= set(column.scripts)
    assert len(facts.problems) >= 4


def test_rows_that_dev_shares(tmp_path: Path, call: Call) -> None:
    path = table(tmp_path / "x.tsv", [("ab", "A"), ("cd", "B")])
    dev = table(tmp_path / "dev.tsv", [("ab", "A"), ("cd", "X"), ("ef", "C")])
    record = told(call("inspect", path, "--dev", dev, "--json"))
    assert {name: record["dev"][name] for name in ("rows", "same", "same_inputs")} == {
        "rows": 3,
        "same": 1,
        "same_inputs": 1,
    }
    assert len([problem for problem in record["problems"] if problem.startswith("dev: ")]) == 2


def test_what_a_recipe_makes_of_it_and_how_long_that_takes(spelling: Path, pairs: Path, call: Call) -> None:
    record = told(call("inspect", pairs, spelling, "--updates", 2, "--json"))["recipe"]
    assert record["columns"] == {"source": "word", "output": "spelled"}
    assert record["rows"] + record["dev_rows"] == 200
    assert record["vocabularies"] == {"source": 10, "output": 10}
    timing = record["timing"]
    assert timing["measured"] == 2
    assert timing["limit"] == "training.updates"
    assert 0 < timing["seconds"] < timing["total"]
    text = call("inspect", pairs, spelling, "--updates", 0)
    assert text.code == 0
    assert "spelling" in text.out


def test_a_recipe_that_does_not_fit_is_said_after_the_facts(spelling: Path, tmp_path: Path, call: Call) -> None:
    path = table(tmp_path / "x.tsv", [("a", "b", "c")], header=("x", "y", "z"))
    done = call("inspect", path, spelling, "--json")
    assert done.code == 2
    assert "'word'" in done.err
    record = json.loads(done.out)
    assert record["rows"] == 1
    assert "'word'" in record["recipe"]["error"]


def test_a_page_without_scripts_whatever_the_table_holds(tmp_path: Path, call: Call) -> None:
    evil = "<script>alert(1)</script>"
    path = table(tmp_path / "x.tsv", [(evil, '"><img src=x onerror=y>')] * 3, header=(evil, "b"))
    out = tmp_path / "x.html"
    assert call("inspect", path, "--out", out).code == 0
    page = out.read_text("utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert call("inspect", path, "--out", tmp_path / "x.json").out == ""
    assert json.loads((tmp_path / "x.json").read_text("utf-8"))["rows"] == 3


def test_limits_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "x.tsv", [("x" * 50_000 + str(n), "y") for n in range(20)])
    monkeypatch.setattr(inspection, "MAX_ROWS", 5)
    monkeypatch.setattr(inspection, "MAX_SYMBOLS", 2)
    facts = inspect_table(read(path))
    assert (facts.rows, facts.complete) == (5, False)
    assert facts.column("word").quantile(1) == inspection.MAX_READ
    assert len(facts.column("word").values) <= 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--out", "x.png"), ["x.png", ".html"]),
        (("--columns", "word,spelt"), ["'spelt'", "spelled"]),
        (("--updates", "3"), ["--updates", "RECIPE"]),
        (("--set", "a=b"), ["--set", "RECIPE"]),
    ],
)
def test_options_that_make_no_sense_are_refused(
    given: tuple[str, ...], words: list[str], pairs: Path, call: Call
) -> None:
    done = call("inspect", pairs, *given)
    assert done.code == 2
    assert [word for word in words if word not in done.err] == []


ROWS: dict[str, tuple[Sequence[str], ...]] = {
    "grapheme-to-phoneme": (["hello", "world", "table"], ["HH AH L OW", "W ER L D", "T EY B AH L"]),
    "transliteration": (["india", "delhi", "pune"], ["इंडिया", "दिल्ली", "पुणे"]),
    "translation": (["a dog runs here", "two men sleep there"], ["ein Hund läuft hier", "zwei Männer schlafen dort"]),
    "document-classification": (["a good film indeed", "this was quite bad"] * 10, ["good", "bad"] * 10),
    "entailment": (["a b c", "d e f g"] * 10, ["a b d", "h i"] * 10, ["yes", "no"] * 10),
    "image-captioning": (["1.png", "b/2.JPG"], ["a red square", "a blue one here"]),
    "speech-recognition": (["1.wav", "2.flac"], ["one two", "three four"]),
    "forecasting": (["1 2 3", "4 5 6.5"], ["4 5", "7 8"]),
    "language-model": (["a line of text", "another line"],),
}


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_short_texts_are_written_letter_by_letter(first: int, second: int) -> None:
    columns = [ColumnFacts("a"), ColumnFacts("b")]
    for number in range(30):
        values = (f"the {number}th of some month", f"2021-03-{number:02d}")
        for column, value in zip(columns, (values[first], values[second]), strict=True):
            column.add(value, f"line {number}")
    (found,) = fitting_recipes(inspection.TableFacts("x", columns, ["a"], "b"))
    assert found["recipe"] == "transliteration"
    assert "short text" in found["why"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1 2.5 -3", "numbers"),
        ("0.1 0.9; 0.2 ?; 1e-3 .5", "numbers"),
        ("[[0.1, 2], [null, 3]]", "numbers"),
        ("1,5", "number"),
        ("2021-03-05", "word"),
        ("12:30", "word"),
        ("12+35", "word"),
        ("10.0.0.1", "word"),
        ("? ?", "text"),
    ],
)
def test_numbers_are_told_from_dates_and_sums(value: str, kind: str) -> None:
    column = ColumnFacts("x")
    column.add(value, "line 2")
    assert column.kind == kind


@pytest.mark.parametrize("pair", [("12+35", "47"), ("forty seven", "47"), ("47", "forty seven")])
def test_digits_are_written_too(pair: tuple[str, str]) -> None:
    columns = [ColumnFacts("a"), ColumnFacts("b")]
    for column, value in zip(columns, pair, strict=True):
        column.add(value, "line 2")
    assert fitting_recipes(inspection.TableFacts("x", columns, ["a"], "b"))[0]["recipe"] == "transliteration"


@pytest.mark.parametrize("recipe", list(ROWS))
def test_recipes_that_fit(recipe: str) -> None:
    columns = [ColumnFacts(f"c{number}") for number in range(len(ROWS[recipe]))]
    for column, values in zip(columns, ROWS[recipe], strict=True):
        for number, value in enumerate(values):
            column.add(f"{value}" if column.name == f"c{len(columns) - 1}" else value, f"line {number}")
    if recipe == "entailment":  # sentences that differ
        for column in columns[:2]:
            for number in range(30):
                column.add(f"sentence number {number}", "line 1")
        for _ in range(30):
            columns[2].add("yes", "line 1")
    if recipe == "document-classification":
        for number in range(30):
            columns[0].add(f"film number {number}", "line 1")
            columns[1].add("good", "line 1")
    names = [column.name for column in columns]
    facts = inspection.TableFacts("x", columns, names[:-1] or names, names[-1] if names[1:] else None)
    assert fitting_recipes(facts)[0]["recipe"] == recipe


def test_every_recipe_that_may_fit_is_shipped() -> None:
    assert {name for name, _, _ in FITTING} <= shipped().keys()


def fitting(tmp_path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    return fitting_recipes(inspect_table(read(table(tmp_path / "x.tsv", rows, header))))


def test_recipes_whose_columns_the_table_has_come_first(tmp_path: Path) -> None:
    rows = [(f"{number}", f"wort{number}", f"word{number}", "a.wav") for number in range(30)]
    first = fitting(tmp_path, ("id", "native", "latin", "recording"), rows)[0]
    assert first["recipe"] == "transliteration"
    assert "latin, native" in first["why"]
    facts = [("mary is in the hall .", "where is mary ?", "hall")] * 60
    assert fitting(tmp_path, ("passage", "question", "answer"), facts)[0]["recipe"] == "question-answering-passage"
    assert fitting(tmp_path, ("history", "last", "response"), facts)[0]["recipe"] == "dialog-history"
    assert fitting(tmp_path, ("audio", "text"), [("0.wav", "one")] * 40)[0]["recipe"] == "speech-recognition"
    names = [one["recipe"] for one in fitting(tmp_path, ("image", "text"), [row[:2] for row in facts])]
    assert "text-line-recognition" not in names, "a column of that name holds no images"


def test_columns_that_no_pair_is_made_of_are_left_out(tmp_path: Path) -> None:
    rows = [(f"{number + 1000}", f"word{number}", f"wort{number}", "") for number in range(30)]
    (found,) = fitting(tmp_path, ("id", "one, two", "three", "note"), rows)
    assert found["recipe"] == "transliteration"
    assert found["why"].endswith("""(--columns '"one, two",three')""")


def test_numbers_in_several_columns(tmp_path: Path, call: Call) -> None:
    rows = [(f"{number / 7:.3f}", f"{number / 3:.3f}", f"{-number / 9:.3f}", "ab"[number % 2]) for number in range(40)]
    (found,) = fitting(tmp_path, ("x", "y", "z", "kind"), rows)
    assert found["recipe"] == "series-classification"
    changes = shlex.split(found["why"].partition("(")[2].rstrip(")"))
    assert called_with(call, tmp_path, changes) == {"series": "x, y, z", "output": "kind"}


def called_with(call: Call, folder: Path, changes: list[str]) -> dict[str, str]:
    """The columns that the recipe takes with these settings."""
    run = call("inspect", folder / "x.tsv", "series-classification", *changes, "--updates", "0", "--json")
    return dict(told(run)["recipe"]["columns"])


def test_the_columns_of_a_recipe_are_the_pair_of_a_wider_table(tmp_path: Path, call: Call) -> None:
    """Words with several outputs are found though a third column differs."""
    rows = [("ab", "A B", "1"), ("ab", "A P", "2"), ("cd", "K D", "3"), ("cd", "K D", "4")]
    record = told(call("inspect", table(tmp_path / "x.tsv", rows, ("word", "phonemes", "freq")), "--json"))
    assert (record["inputs"], record["output"]) == (["word"], "phonemes")
    assert (record["several_outputs"]["rows"], record["duplicates"]["rows"]) == (1, 1)
    assert record["fits"][0]["recipe"] == "grapheme-to-phoneme"


def test_symbols_without_spaces_are_noticed(tmp_path: Path, call: Call) -> None:
    letters = "aeioukstmn"
    words = [a + b + c for a in letters for b in letters for c in letters][:300]
    for between, noticed in (("", True), (" ", False)):
        path = table(tmp_path / "x.tsv", [(word, between.join(word.upper())) for word in words], ("word", "phonemes"))
        record = told(call("inspect", path, "grapheme-to-phoneme", "--updates", 0, "--json"))
        assert any("output.tokens=character" in note for note in record["recipe"]["notes"]) == noticed
