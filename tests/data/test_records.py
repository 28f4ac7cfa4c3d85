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
from seq2see.data.records import as_lines, records_of, table_of
from seq2see.errors import Notice, UserError
from seq2see.recipe import load_recipe
from seq2see.training.dataset import lines_of
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


# ---------------------------------------------------------------- rows without names, real libraries

PAIRS = [(word, word.upper()) for word in WORDS]


class Interchanged:
    """A DataFrame that others can ask for its columns, and nothing else."""

    def __init__(self, protocol: str):
        import pyarrow

        table = pyarrow.Table.from_pylist(LISTED)
        setattr(type(self), protocol, staticmethod(getattr(table, protocol)))


def frames() -> dict[str, Any]:
    """The same rows in every form."""
    import datasets
    import pandas
    import polars
    import pyarrow

    return {
        "pairs": PAIRS,
        "lists": [list(pair) for pair in PAIRS],
        "dicts": LISTED,
        "pandas": pandas.DataFrame(LISTED),
        "polars": polars.DataFrame(LISTED),
        "polars query": polars.DataFrame(LISTED).lazy(),
        "pyarrow": pyarrow.Table.from_pylist(LISTED),
        "dataset": datasets.Dataset.from_list(LISTED),
        "capsule": type("Capsule", (Interchanged,), {})("__arrow_c_stream__"),
        "interchange": type("Interchange", (Interchanged,), {})("__dataframe__"),
    }


FORMS = ["pairs", "lists", "dicts", "pandas", "polars", "polars query", "pyarrow", "dataset", "capsule", "interchange"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::seq2see.errors.Notice")
def test_every_form_is_measured_predicted_and_encoded(form: str, model: Model) -> None:
    data = frames()[form]
    assert model.evaluate(data).metrics == model.evaluate(LISTED).metrics
    assert model.score(data).log_probability == model.score(LISTED).log_probability
    assert [answer.text for answer in model.predict(data)] == [answer.text for answer in model.predict(WORDS)]
    assert model.encode(data) == model.encode(WORDS)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_written_down_alike_for_training(form: str) -> None:
    recipe = load_recipe(NAMED)
    assert lines_of(recipe, frames()[form], None, what="data") == lines_of(recipe, LISTED, None, what="data")


def test_a_column_of_a_frame_is_a_list_of_inputs(model: Model) -> None:
    expected = [answer.text for answer in model.predict(WORDS)]
    data = frames()
    for column in (*(data[form]["latin"] for form in ("pandas", "polars", "pyarrow", "dataset")),):
        assert [answer.text for answer in model.predict(column)] == expected
        assert len(model.encode(column)) == len(WORDS)
    with pytest.warns(Notice, match="1 of 25 rows has an empty input"):
        assert model.predict(pandas_column([*WORDS, None]))[-1].reason


def pandas_column(values: list[str | None]) -> Any:
    import pandas

    return pandas.Series(values)


def test_rows_without_names_have_as_many_values_as_the_recipe_has_columns(model: Model, tmp_path: Path) -> None:
    for rows in ([("a", "b", "c")], [("a", "b"), ("a",)], [("a", "b"), "ab"]):
        for action in (lambda rows=rows: run(rows, tmp_path / "run"), lambda rows=rows: model.evaluate(rows)):
            with pytest.raises(UserError, match=r"row [12]"):
                action()


def test_columns_name_the_values_of_rows_without_names(tmp_path: Path) -> None:
    trained = run(PAIRS, tmp_path / "run", columns=["heard", "spelt"])
    assert (trained.recipe.inputs["source"].column, trained.recipe.output.column) == ("heard", "spelt")


def test_texts_of_a_language_model_need_no_names(tmp_path: Path) -> None:
    recipe = {"inputs": {}, "output": {"tokens": "character"}, "decoder": {"size": 4}}
    model = seq2see.train(recipe, WORDS, out=tmp_path / "run", updates=1, epochs=0, listeners=[])
    with pytest.warns(Notice, match="trained on"):
        assert model.score(WORDS).rows == len(WORDS)


def test_a_dataset_with_splits_names_them(model: Model) -> None:
    import datasets

    splits = datasets.DatasetDict(train=frames()["dataset"], test=frames()["dataset"])
    with pytest.raises(UserError, match=r"'train', 'test'.*data\['train'\]"):
        model.evaluate(splits)
