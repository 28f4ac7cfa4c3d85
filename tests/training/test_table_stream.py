"""Rows that are read as training needs them: each once an epoch, shuffled in windows, resumed at the same bits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seq2see.data import sources, tables
from seq2see.data.split import row_hash
from seq2see.errors import UserError
from seq2see.modalities.label import LabelField
from seq2see.pipeline import table_stream
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.table_stream import TableStream
from seq2see.recipe import load_recipe
from seq2see.training.dataset import read_corpus
from seq2see.training.feeds import TableStreamFeed
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, last_checkpoint, run, same, weights, words

STREAMED: dict[str, Any] = {**ROWS, "data": {"shuffle_rows": 60, "dev_most": 12}}
ROWS_OF_TABLE = 400


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_PARALLEL", 150)
    monkeypatch.setattr(table_stream, "ROWS_AT_ONCE", 20)


def table_of(tmp_path: Path, suffix: str = "tsv") -> Path:
    path = words(tmp_path / "words.tsv", count=ROWS_OF_TABLE)
    if suffix == "tsv":
        return path
    rows = [dict(row.values) for row in tables.read(path)]
    tables.write(tmp_path / f"words.{suffix}", rows, ["source", "output"])
    return tmp_path / f"words.{suffix}"


def feed_of(data: Path, folder: Path) -> TableStreamFeed:
    corpus = read_corpus(load_recipe(STREAMED), data, folder=folder)
    assert isinstance(corpus.train, TableStream)
    return TableStreamFeed(corpus.train, corpus.recipe.training)


def epoch_of(feed: TableStreamFeed, number: int) -> list[list[str]]:
    """The inputs of each batch of an epoch, as a training takes them."""
    taken: list[list[str]] = []
    while len(taken) < feed.batches(number):
        feed._seek(number, len(taken))
        rows = feed._batches[len(taken) - feed._first]
        field = feed.data.fields.inputs["source"]
        taken.append([field.decode(feed.data.stores["source"][row]) for row in rows.tolist()])
        feed._next = len(taken)
    return taken


@pytest.mark.parametrize("suffix", ["tsv", "jsonl.gz", "parquet"])
def test_an_epoch_has_every_row_once_and_none_of_dev(tmp_path: Path, suffix: str) -> None:
    data = table_of(tmp_path, suffix)
    corpus = read_corpus(load_recipe(STREAMED), data, folder=tmp_path)
    assert isinstance(corpus.train, TableStream)
    rows = [str(row.values["source"]) for row in tables.read(data)]
    left_out = [word for word in rows if row_hash({"source": word}, ["source"]) < corpus.train._threshold]
    assert {row["source"] for row in corpus.dev} <= set(left_out)
    wanted = Counter(rows) - Counter(left_out)
    feed = feed_of(data, tmp_path)
    first, second = epoch_of(feed, 0), epoch_of(feed, 1)
    for batches in (first, second):
        assert Counter(word for batch in batches for word in batch) == wanted
    assert first != second
    assert epoch_of(feed_of(data, tmp_path), 0) == first
    assert left_out
    assert len(first) > 10


def test_rows_are_shuffled_among_those_held(tmp_path: Path) -> None:
    data = table_of(tmp_path)
    whole = read_corpus(load_recipe(ROWS), data, folder=tmp_path).train
    assert isinstance(whole, Dataset)
    stream = read_corpus(load_recipe(STREAMED), data, folder=tmp_path).train
    assert isinstance(stream, TableStream)
    windows = [*stream.windows()]
    assert len(windows) > 3
    assert all(60 <= window.rows < 60 + 60 for window in windows[:-1])
    assert [window.last for window in windows] == [False] * (len(windows) - 1) + [True]
    assert sum(window.rows for window in windows) == ROWS_OF_TABLE
    later = [*stream.windows(number=2, before=windows[2].before)]
    assert [window.number for window in later] == [window.number for window in windows[2:]]
    assert [window.rows for window in later] == [window.rows for window in windows[2:]]


class _Killed(Exception):
    pass


class _Killer(RecordingListener):
    def on_update(self, status: Any) -> None:
        if status.updates >= 40:
            raise _Killed


def test_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    data = table_of(tmp_path)
    training = {**ROWS["training"], "updates": 50, "report_every": 25, "checkpoint_every": 15}
    recipe = {**STREAMED, "training": training}
    run(recipe, data, tmp_path / "whole")
    with pytest.raises(_Killed):
        run(recipe, data, tmp_path / "killed", listeners=[_Killer()])
    before = last_checkpoint(tmp_path / "killed")
    assert 0 < before.state.updates < 40
    assert before.carried["stream"][3] > 0  # not in the first window
    run(recipe, None, tmp_path / "killed", resume=True)
    resumed, whole = last_checkpoint(tmp_path / "killed"), last_checkpoint(tmp_path / "whole")
    assert same(resumed.weights, whole.weights)
    assert same(resumed.optimizer, whole.optimizer)
    assert same(resumed.carried, whole.carried)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
    assert [line["loss"] for line in journal(tmp_path / "killed")] == [
        line["loss"] for line in journal(tmp_path / "whole")
    ]


def test_a_changed_table_is_noticed(tmp_path: Path) -> None:
    data = table_of(tmp_path)
    recipe = {**STREAMED, "training": {**ROWS["training"], "updates": 5}}
    run(recipe, data, tmp_path / "run")
    data.write_bytes(data.read_bytes().replace(b"\na", b"\nb", 1))
    with pytest.raises(UserError, match="the data has changed"):
        run(recipe, None, tmp_path / "run", resume=True, updates=9)


def with_dev_rows(data: Path, at: int) -> None:
    """Write 200 rows of dev alone into a table, from a line on."""
    held_out = read_corpus(load_recipe(STREAMED), data, folder=data.parent).dev[0]["source"]
    lines = data.read_text("utf-8").splitlines()
    rows = [*lines[:at], *[f"{held_out}\t{held_out}"] * 200, *lines[at:]]
    data.write_text("\n".join(rows) + "\n", encoding="utf-8")


@pytest.mark.parametrize("at", [200, ROWS_OF_TABLE + 1])
def test_windows_without_rows_are_passed_over(tmp_path: Path, at: int) -> None:
    data = table_of(tmp_path)
    wanted = Counter(word for batch in epoch_of(feed_of(data, tmp_path), 0) for word in batch)
    with_dev_rows(data, at)
    feed = feed_of(data, tmp_path)
    assert Counter(word for batch in epoch_of(feed, 0) for word in batch) == wanted
    carried = feed.carried()
    resumed = feed_of(data, tmp_path)
    resumed.restore(carried)
    assert resumed.batches(0) == feed.batches(0)
    assert epoch_of(resumed, 1) == epoch_of(feed, 1)


def test_an_epoch_ends_before_windows_without_rows(tmp_path: Path) -> None:
    data = table_of(tmp_path)
    with_dev_rows(data, ROWS_OF_TABLE + 1)
    run({**STREAMED, "training": {**ROWS["training"], "epochs": 1}}, data, tmp_path / "run")
    assert last_checkpoint(tmp_path / "run").state.updates == len(epoch_of(feed_of(data, tmp_path), 0))


@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl.gz"])
def test_the_length_of_an_epoch_is_known_before_its_end(tmp_path: Path, suffix: str) -> None:
    data = table_of(tmp_path, suffix)
    if suffix == "csv":
        data.write_text(data.read_text("utf-8").replace("\na", '\n"a').replace(",a", '",a'), encoding="utf-8")
        assert '"' in data.read_text("utf-8")
    feed = feed_of(data, tmp_path)
    estimate = feed.batches(0)
    assert len(feed.stream) == ROWS_OF_TABLE
    assert estimate == pytest.approx(len(epoch_of(feed, 0)), rel=0.1)
    resumed = feed_of(data, tmp_path)
    resumed._seek(0, estimate // 2)
    assert resumed.batches(0) == estimate  # the learning rate does not depend on the window that is read


LABELS: dict[str, Any] = {
    **{key: ROWS[key] for key in ("inputs", "training", "encoder")},
    "output": {"kind": "label"},
    "data": STREAMED["data"],
}


@pytest.mark.parametrize("suffix", ["tsv", "parquet"])
def test_labels_are_those_of_the_whole_table(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"labels.{suffix}"
    rows = [{"source": f"{'abc'[i % 3]}{i:03}", "output": "late" if i > 300 else "ab"[i % 2]} for i in range(400)]
    tables.write(path, rows, ["source", "output"])
    model = run({**LABELS, "training": {**ROWS["training"], "epochs": 1}}, path, tmp_path / "run")
    output = model.bundle.fields.output
    assert isinstance(output, LabelField)
    assert dict(zip(output.labels, output.counts, strict=True)) == Counter(str(row["output"]) for row in rows)
    rows[350]["output"] = "other"
    tables.write(path, rows, ["source", "output"])
    unit, line = ("row", 351) if suffix == "parquet" else ("line", 352)
    with pytest.raises(UserError, match=f"{unit} {line}: unknown label 'other'"):
        read_corpus(load_recipe(LABELS), path, fields=model.bundle.fields, folder=tmp_path)


def test_a_window_may_be_less_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_PARALLEL", 1 << 20)
    data = table_of(tmp_path)
    stream = read_corpus(load_recipe(STREAMED), data, folder=tmp_path).train
    assert isinstance(stream, TableStream)
    rows = [window.rows for window in stream.windows()]
    assert rows == [60] * (ROWS_OF_TABLE // 60) + [ROWS_OF_TABLE % 60]
    bad = data.read_text("utf-8").splitlines()
    bad[300] += "\tmore"
    data.write_text("\n".join(bad) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 301"):
        epoch_of(feed_of(data, tmp_path), 0)


def test_other_kinds_of_rows_are_refused(tmp_path: Path) -> None:
    data = table_of(tmp_path)
    recipe = {
        "inputs": {"source": {"kind": "vector"}},
        "output": {"kind": "vector", "column": "source"},
        "encoder": {"kind": "dense", "size": 2},
        "data": {"shuffle_rows": 5},
    }
    data.write_text("source\n1 2\n3 4\n5 6\n")
    with pytest.raises(UserError, match="rows are streamed for texts and labels"):
        read_corpus(load_recipe(recipe), data, folder=tmp_path)
    with pytest.raises(UserError, match="rows are streamed for training"):
        read_corpus(load_recipe(STREAMED), table_of(tmp_path))
