"""Rows that are held in memory: lists of dicts and DataFrames, wherever a table may be given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import seq2see
from seq2see.api import Model
from seq2see.data import tables
from seq2see.data.formats import DataSettings
from seq2see.data.tables import as_lines, records_of, table_of
from seq2see.errors import Notice, UserError
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, same, weights

WORDS = [a + b + c for a in "abcd" for b in "abc" for c in "ab"]
NAMED: dict[str, Any] = {
    **ROWS,
    "inputs": {"source": {"tokens": "character", "column": "latin"}},
    "output": {"tokens": "character", "column": "native"},
}
LISTED = [{"latin": word, "native": word.upper()} for word in WORDS]


class Frame:
    """What pandas' DataFrame has of what is asked for here."""

    columns = ("latin", "native")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return [dict(row) for row in LISTED]


class Polars:
    """The same of polars."""

    columns = ("latin", "native")

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in LISTED]


class HuggingFace:
    """The same of a Hugging Face dataset."""

    column_names = ("latin", "native")

    def __iter__(self) -> Any:
        return iter(LISTED)


def run(data: Any, folder: Path, **given: Any) -> Model:
    return seq2see.train(NAMED, data, out=folder, updates=2, listeners=[], **given)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return run(LISTED, tmp_path_factory.mktemp("records") / "run")


@pytest.mark.parametrize("data", [LISTED, Frame(), Polars(), HuggingFace(), tuple(LISTED)], ids=type)
def test_rows_in_memory_are_trained_on_like_a_table(data: Any, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("latin,native\n" + "".join(f"{word},{word.upper()}\n" for word in WORDS), encoding="utf-8")
    run(data, tmp_path / "held", dev=LISTED[:5])
    run(table, tmp_path / "read", dev=LISTED[:5])
    assert same(weights(tmp_path / "held"), weights(tmp_path / "read"))


def test_a_real_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([*LISTED, {"latin": None, "native": "X"}])
    model = run(frame, tmp_path / "run")
    with pytest.warns(Notice, match="empty"):
        assert model.evaluate(frame).rows == len(WORDS)
    with pytest.warns(Notice, match="1 of 25 rows"):
        found = model.predict(frame)
    assert [bool(one.reason) for one in found] == [False] * len(WORDS) + [True]
    assert model.predict(pandas.DataFrame({"latin": WORDS[:3]}))[2].text == found[2].text


def test_a_run_of_rows_in_memory_is_resumed_from_what_it_wrote_down(tmp_path: Path) -> None:
    seq2see.train(NAMED, LISTED, out=tmp_path / "halted", updates=2, listeners=[])
    seq2see.train(None, out=tmp_path / "halted", resume=True, updates=4, listeners=[])
    seq2see.train(None, LISTED, out=tmp_path / "halted", resume=True, updates=4, listeners=[])
    with pytest.raises(UserError, match="the run was started with"):
        seq2see.train(None, LISTED[:9], out=tmp_path / "halted", resume=True, listeners=[])


def test_rows_are_measured_by_column_or_by_the_names_of_the_recipe(model: Model) -> None:
    named = [{"source": row["latin"], "output": row["native"]} for row in LISTED]
    wide = [{"id": 7, **row} for row in LISTED]
    reports = [model.evaluate(rows) for rows in (LISTED, named, wide, Frame())]
    assert all(report.metrics == reports[0].metrics for report in reports)
    assert model.score(LISTED).log_probability == model.score(named).log_probability
    swapped = [{"a": row["native"], "b": row["latin"]} for row in LISTED]
    assert model.evaluate(swapped, columns=["b", "a"]).metrics == reports[0].metrics


def test_rows_are_predicted_by_column(model: Model) -> None:
    texts = [one.text for one in model.predict(WORDS[:4])]
    assert [one.text for one in model.predict([{"latin": word} for word in WORDS[:4]])] == texts
    assert [one.text for one in model.predict(LISTED[:4])] == texts
    assert [one.text for one in model.predict([{"source": word} for word in WORDS[:4]])] == texts
    assert len(model.encode([{"latin": word} for word in WORDS[:4]])) == 4


def test_rows_in_memory_are_compared(tmp_path: Path) -> None:
    told = RecordingListener()
    options: dict[str, Any] = {"vary": ["decoder.size=6,7"], "updates": 1, "out": tmp_path, "listeners": [told]}
    recipe = {**NAMED, "attention": {"score": "additive", "size": 4}}
    seq2see.compare(recipe, LISTED, **options)
    seq2see.compare(recipe, LISTED, **options)
    assert len([note for note in told.notes if "trained before" in note]) == 2


@pytest.mark.parametrize("data", [5, {"latin": ["a"], "native": ["b"]}, ["ab", "cd"], [], b"latin", object()])
def test_what_is_no_table_is_refused_with_what_is_allowed(data: Any, model: Model, tmp_path: Path) -> None:
    for action in (
        lambda: run(data, tmp_path / "run"),
        lambda: run(LISTED, tmp_path / "run", dev=data),
        lambda: model.evaluate(data),
        lambda: model.score(data),
        lambda: seq2see.compare(NAMED, data, vary=["decoder.cell=gru,lstm"], out=tmp_path / "compared"),
    ):
        with pytest.raises(UserError, match=r"DataFrame|no rows"):
            action()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"wrong": "a", "native": "b", "more": "c"}], ["latin", "wrong"]),
        ([{"latin": "a", "native": "b"}, {"latin": "a"}], ["row 2", "native"]),
        ([{"latin": "a", "native": "b"}, {"latin": "a", "native": {"x": 1}}], ["row 2", "native", "dict"]),
        ([{"latin": "a", 3: "b"}], ["row 1", "3"]),
    ],
)
def test_rows_that_do_not_fit_are_named(rows: Any, words: list[str], model: Model, tmp_path: Path) -> None:
    for action in (lambda: run(rows, tmp_path / "run", dev=LISTED), lambda: model.evaluate(rows)):
        with pytest.raises(UserError) as caught:
            action()
        assert [word for word in words if word not in str(caught.value)] == []


def test_columns_are_a_list_of_names(model: Model, tmp_path: Path) -> None:
    for action in (
        lambda: run(LISTED, tmp_path / "run", columns="latin,native"),
        lambda: model.evaluate(LISTED, columns="latin,native"),
    ):
        with pytest.raises(UserError, match="list of names"):
            action()


def test_values_are_made_plain() -> None:
    rows = [{"a": np.float32(0.5), "b": np.array([1, 2]), "c": float("nan"), "d": None, "e": Path("x.png"), "f": True}]
    assert records_of(rows) == [{"a": 0.5, "b": [1, 2], "c": "", "d": "", "e": "x.png", "f": True}]


def test_paths_are_those_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Image.new("L", (4, 4)).save("x.png")
    assert (table_of([{"a": "x.png"}], settings=DataSettings()).folder / "x.png").is_file()
    assert str(tmp_path / "x.png") in as_lines([{"a": "x.png"}], files=["a"]).decode()


def test_half_of_a_pair_of_surrogates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="row 1"):
        run([{"latin": "\ud800", "native": "x"}], tmp_path / "run")


def test_rows_in_memory_may_be_as_many_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no file that they could have been unpacked from; a value too long is one here too."""
    monkeypatch.setattr(tables, "MAX_UNPACKED", 1_000)
    monkeypatch.setattr(tables, "MAX_CELL", 500)
    rows = [{"x": [0.5] * 20, "y": "b" * 100}] * 50
    assert len(list(table_of(rows, settings=DataSettings()))) == 50
    with pytest.raises(UserError, match="row 2, column 'y': 501 characters, at most 500"):
        list(table_of([*rows[:1], {"x": [], "y": "b" * 501}], settings=DataSettings()))
