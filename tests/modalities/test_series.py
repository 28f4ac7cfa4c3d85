"""Series: read from cells, lists, columns and files, with gaps, normalised, cut, changed at random, kept on disk."""

from __future__ import annotations

import io
import json
import math
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import seq2see
from seq2see.data import series_files
from seq2see.data.decoder_pool import DecoderPool
from seq2see.data.media_files import Job, MediaError
from seq2see.data.series_files import (
    Series,
    SeriesAugmentSettings,
    SeriesInput,
    SeriesOutput,
    filled,
    parse_series,
    read_series,
    series_of_columns,
    series_of_lists,
    write_series,
)
from seq2see.errors import CellError, UserError
from seq2see.modalities.base import field_of
from seq2see.modalities.series import SeriesField, SeriesFileField, SeriesOutputField, drawn_lines
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table, read_corpus

NAN = math.nan
LABEL: dict[str, Any] = {
    "inputs": {"x": {"kind": "series"}},
    "output": {"kind": "label", "column": "y"},
    "encoder": {"kind": "pyramidal", "size": 4, "layers": 1, "halvings": 0},
    "training": {"updates": 1, "epochs": 0},
}


def same(values: NDArray[np.float64], expected: list[list[float]]) -> bool:
    return np.array_equal(values, np.array(expected, dtype=np.float64), equal_nan=True)


def built(values: list[str], **settings: Any) -> SeriesField:
    field = SeriesField(SeriesInput(**settings))
    field.build(values)
    return field


# --- Text


@pytest.mark.parametrize(
    "text", ["1 2; 3 4", "1,2;3,4", "1 2\n3 4\n", "[[1, 2], [3, 4]]", " 1, 2 ;3 4; ", "[1 2; 3 4]"]
)
def test_steps_stand_between_semicolons_and_channels_between_spaces_or_commas(text: str) -> None:
    assert same(parse_series(text), [[1, 2], [3, 4]])


def test_without_semicolons_every_number_is_a_step() -> None:
    assert same(parse_series("1 2.5, -3e2"), [[1], [2.5], [-300]])
    assert same(parse_series("[1, 2.5, -3e2]"), [[1], [2.5], [-300]])
    assert same(parse_series("1 2 3;"), [[1, 2, 3]])


@pytest.mark.parametrize("word", ["nan", "NaN", "NA", "n/a", "null", "None", "?"])
def test_missing_values_have_many_names(word: str) -> None:
    assert same(parse_series(f"1 {word}; {word} 4"), [[1, NAN], [NAN, 4]])
    assert same(parse_series("1,;,4"), [[1, NAN], [NAN, 4]])
    assert same(parse_series("1;;3"), [[1], [NAN], [3]])


@pytest.mark.parametrize("values", [[[1.5, NAN], [3, 4]], [[0.1], [1e-300], [NAN]], [[1, 2, 3]]])
def test_what_is_written_is_read_again(values: list[list[float]]) -> None:
    assert same(parse_series(write_series(np.array(values))), values)


def test_lists_hold_numbers_or_steps() -> None:
    assert same(series_of_lists([1, None, "3"]), [[1], [NAN], [3]])
    assert same(series_of_lists([[1, None], [3.5, 4]]), [[1, NAN], [3.5, 4]])


def test_columns_hold_steps_or_channels() -> None:
    assert same(series_of_columns(["1", "", None, 4]), [[1], [NAN], [NAN], [4]])
    assert same(series_of_columns(["1 2", "3 ?"]), [[1, 3], [2, NAN]])
    assert same(series_of_columns([[1, 2], "", [3, None]]), [[1, NAN, 3], [2, NAN, NAN]])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2; 3 x", ["step 2", "channel 2", "'x'"]),
        ("1 2; 3", ["step 2", "1 number", "step 1 has 2"]),
        ("1 2; 3 inf", ["step 2, channel 2", "inf"]),
        ("1e39", ["step 1", "1e39"]),
        ("[1, [2]]", ["lists"]),
        ("[[[1]]]", ["step 1", "[1]"]),
        ("[true]", ["step 1", "True"]),
        ("[]", ["no number"]),
        (";", ["no number"]),
        ("?; ?", ["2 values", "missing"]),
        ("[" * 100_000, ["not a number"]),
    ],
)
def test_what_is_no_series_is_refused_with_its_place(text: str, words: list[str]) -> None:
    problem = SeriesField(SeriesInput()).problem(text) or ""
    assert all(word in problem for word in words), problem


def test_every_row_has_the_channels_of_the_first() -> None:
    field = SeriesField(SeriesInput())
    assert field.problem("1 2; 3 4") is None
    assert field.problem("1 2; 3 4; 5 6") is None
    assert field.problem("1 2 3;") == "3 channels, and every row has 2"
    named = SeriesField(SeriesInput(names=["a", "b"]))
    assert named.problem("1 2; 3 4") is None
    assert named.problem("1;2") == "1 channel, and every row has 2"


@pytest.mark.parametrize("source", ["cells", "files"])
def test_names_that_do_not_fit_are_told_once(tmp_path: Path, source: str) -> None:
    names = ["a", "b", "c"]
    recipe = LABEL | {"inputs": {"x": {"kind": "series", "names": names, "source": source}}}
    np.save(tmp_path / "s.npy", np.ones((3, 2)))
    cell = "1 2; 3 4" if source == "cells" else "s.npy"
    path = put(tmp_path, "x\ty\n" + f"{cell}\ta\n" * 5, "t.tsv")
    table, resolution = open_table(load_recipe(recipe), path, None)
    with pytest.raises(UserError) as stopped:
        list(resolution.rows(table))
    assert str(stopped.value) == f"{path}, line 2: inputs.x.names: 3 names, and the series has 2 channels"
    skipping = load_recipe(recipe | {"data": {"on_error": "skip"}})
    table, resolution = open_table(skipping, put(tmp_path, f"x\ty\n{cell}\ta\n", "t.tsv"), None)
    with pytest.raises(UserError, match="no row is left"):
        list(resolution.rows(table))


def test_names_of_an_output_are_told_once(tmp_path: Path) -> None:
    recipe = LABEL | {"output": {"kind": "series", "column": "y", "names": ["a"]}}
    table, resolution = open_table(load_recipe(recipe), put(tmp_path, "x\ty\n1\t1 2; 3 4\n", "t.tsv"), None)
    with pytest.raises(UserError, match=r"output\.names: 1 name, and the series has 2 channels"):
        list(resolution.rows(table))


@pytest.mark.parametrize(
    ("value", "words"),
    [("1 2; 3 x", ["step 2, channel 2", "'x'"]), ("1;2;3", ["1 channel"]), ("nan nan;", ["missing"])],
)
def test_a_bad_row_is_named_with_line_and_column(tmp_path: Path, value: str, words: list[str]) -> None:
    table = tmp_path / "t.tsv"
    table.write_text(f"x\ty\n1 2;3 4\ta\n4 5;6 7\tb\n{value}\tc\n", encoding="utf-8")
    with pytest.raises(UserError) as stopped:
        seq2see.train(LABEL, data=table, out=tmp_path / "run")
    assert all(word in str(stopped.value) for word in [f"{table}, line 4, column 'x'", *words])


# --- Gaps and normalisation


def test_gaps_become_lines_or_zeros() -> None:
    values = np.array([[NAN, 1], [2, NAN], [NAN, NAN], [4, NAN], [NAN, 1]])
    assert same(filled(values, "interpolate"), [[2, 1], [2, 1], [3, 1], [4, 1], [4, 1]])
    assert same(filled(values, "zero"), [[0, 1], [2, 0], [0, 0], [4, 0], [0, 1]])
    assert same(filled(np.array([[NAN, 1.0]]), "interpolate"), [[0, 1]])


@pytest.mark.parametrize("missing", ["interpolate", "zero"])
@pytest.mark.parametrize("normalise", ["channel", "series", "none"])
@pytest.mark.parametrize("indicator", [False, True])
def test_a_network_never_sees_nan(missing: str, normalise: str, indicator: bool) -> None:
    rows = ["1 5 ?; ? 5 ?; 4 5 2", "? ? 3;", "7 5 ?;"]
    field = built(rows, missing=missing, normalise=normalise, indicator=indicator)
    frames = field.batch(rows)
    assert frames.values.shape == (3, 3, field.size) == (3, 3, 6 if indicator else 3)
    assert bool(torch.isfinite(frames.values).all())
    assert frames.mask.tolist() == [[True] * 3, [True, False, False], [True, False, False]]
    assert not frames.values[~frames.mask].any()


def test_an_indicator_tells_what_is_missing() -> None:
    field = built(["1 2; 3 ?", "5 6; ? ?; 7 8"], indicator=True)
    assert field.batch(["? 6; 7 8"]).values[0, :, 2:].tolist() == [[1, 0], [0, 0]]


def test_channels_are_normalised_by_all_training_rows() -> None:
    random = np.random.default_rng(0)
    rows = [random.normal([3, -100], [0.5, 20], (int(steps), 2)) for steps in random.integers(1, 30, 40)]
    for row in rows:
        row[random.random(row.shape) < 0.1] = NAN
    rows = [row for row in rows if not np.isnan(row).all()]
    field = built([write_series(row) for row in rows])
    every = np.concatenate(rows)
    assert np.allclose(field.mean, np.nanmean(every, 0))
    assert np.allclose(field.deviation, np.nanstd(every, 0))
    frames = field.batch([write_series(rows[0])]).values[0].numpy()
    known = ~np.isnan(rows[0])
    assert np.allclose(frames[known], ((rows[0] - field.mean) / field.deviation)[known], atol=1e-5)


def test_a_series_may_be_normalised_by_itself() -> None:
    field = built(["1 5; 3 5", "100 7; 300 7"], normalise="series")
    first, second = field.batch(["1 5; 3 5"]).values, field.batch(["100 7; 300 7"]).values
    assert torch.allclose(first, second)
    assert first[0].tolist() == [[-1, 0], [1, 0]]
    assert built(["1 5; 3 5"], normalise="none").batch(["1 5; 3 5"]).values[0].tolist() == [[1, 5], [3, 5]]


def test_numbers_far_beyond_the_training_rows_are_refused() -> None:
    with pytest.raises(UserError, match="deviations from"):
        built(["1 2 3", "2 3 4"]).batch(["1 1e30"])


@pytest.mark.parametrize("normalise", ["channel", "series"])
def test_a_large_offset_costs_no_digits(normalise: str) -> None:
    rows = ["1700000000 1700000010 1700000020 1700000030 1700000040 1700000050"] * 2
    fields, data = dataset(rows, normalise=normalise)
    expected = (np.arange(6) - 2.5) / np.arange(6).std()
    for frames in (fields.inputs["x"].batch(rows), data.batch([0]).inputs["x"]):
        assert np.allclose(frames.values[0, :, 0].numpy(), expected, atol=1e-6)


def test_a_large_offset_of_an_output_costs_no_digits() -> None:
    rows = [f"{1_700_000_000 + 10 * number} {1_700_000_010 + 10 * number}" for number in range(4)]
    recipe = load_recipe({"inputs": {"x": {"kind": "series"}}, "output": {"kind": "series"}})
    values = [{"x": row, "output": row} for row in rows]
    fields = Fields.build(recipe, lambda: iter(values))
    trained = Dataset.build(fields, iter(values)).batch(range(4)).target
    evaluated = fields.output.batch(rows)
    assert torch.equal(trained.values, evaluated.values)  # type: ignore[union-attr]
    restored = fields.numeric_output.restored(evaluated.values.numpy())
    assert np.allclose(restored, [parse_series(row).ravel() for row in rows], rtol=0, atol=1e-4)


# --- Length


def test_steps_are_joined_and_long_series_are_cut() -> None:
    rows = ["0 2 4 6 8 10 12"]
    field = built(rows, stride=2, normalise="none")
    frames = field.batch(rows)
    assert frames.values[0, :, 0].tolist() == [1, 5, 9, 12]
    assert frames.names == [["t=0", "t=2", "t=4", "t=6"]]
    assert built(rows, stride=3, pooling="first", normalise="none").batch(rows).values[0, :, 0].tolist() == [0, 6, 12]
    last = built(rows, longest=3, normalise="none")
    assert last.batch(rows).values[0, :, 0].tolist() == [8, 10, 12]
    assert last.batch(rows).names == [["t=4", "t=5", "t=6"]]
    assert last.is_cut(last.read(rows[0]))
    assert not last.is_cut(last.read("1 2 3"))
    first = built(rows, longest=3, keep="first", normalise="none")
    assert (first.batch(rows).values[0, :, 0].tolist(), first.batch(rows).names) == ([0, 2, 4], [["t=0", "t=1", "t=2"]])


def test_cut_series_are_told(tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("x\ty\n" + "".join(f"{i} 2 3 4 5\t{'ab'[i % 2]}\n" for i in range(40)), encoding="utf-8")
    recipe = LABEL | {"inputs": {"x": {"kind": "series", "longest": 4}}}
    corpus = read_corpus(load_recipe(recipe), table)
    assert any("longest 4" in note and "'x'" in note for note in corpus.notes)


# --- Chance


def dataset(rows: list[str], **settings: Any) -> tuple[Fields, Dataset]:
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", **settings}}})
    values = [{"x": row, "output": "ab"[number % 2]} for number, row in enumerate(rows)]
    fields = Fields.build(recipe, lambda: iter(values))
    return fields, Dataset.build(fields, iter(values))


def test_stored_rows_are_read_as_they_were() -> None:
    rows = ["1 5; 3 ?", "1 5; ? 5; 3 9"]
    fields, data = dataset(rows)
    stored, direct = data.batch([1, 0]).inputs["x"], fields.inputs["x"].batch([rows[1], rows[0]])
    assert torch.equal(stored.values, direct.values)
    assert torch.equal(stored.mask, direct.mask)


@pytest.mark.parametrize("augment", [{"noise": 0.1}, {"scale": 0.2}, {"time_masks": 2, "time_width": 3}])
def test_training_rows_are_changed_at_random_and_others_are_not(augment: dict[str, Any]) -> None:
    rows = [" ".join(map(str, np.arange(20) + number)) for number in range(2)]
    fields, data = dataset(rows, augment=augment)
    plain = fields.inputs["x"].batch(rows).values
    torch.manual_seed(1)
    first, second = (data.batch([0, 1]).inputs["x"].values for _ in range(2))
    assert not torch.equal(first, plain)
    assert not torch.equal(first, second)
    assert float((first - plain).abs().max()) < 2
    torch.manual_seed(1)
    assert torch.equal(data.batch([0, 1]).inputs["x"].values, first)
    assert torch.equal(fields.inputs["x"].batch(rows).values, plain)


# --- Outputs


def test_an_output_is_restored_to_its_own_units() -> None:
    field = SeriesOutputField(SeriesOutput())
    field.build(["1 10; 3 30", "5 50; 7 70"])
    assert (field.steps, field.channels, field.size) == (2, 2, 4)
    normal = field.batch(["1 10; 3 30"]).values
    assert np.allclose(field.restored(normal.numpy()), [[1, 10, 3, 30]])
    assert field.answer(field.numbers("1 10; 3 30")) == {"vector": [[1, 10], [3, 30]]}
    single = SeriesOutputField(SeriesOutput(normalise="none"))
    single.build(["1 2 3"])
    assert single.batch(["4 5 6"]).values.tolist() == [[4, 5, 6]]
    assert single.answer(single.numbers("4 5 6")) == {"vector": [4, 5, 6]}


@pytest.mark.parametrize(
    ("value", "horizon", "words"),
    [("1 2", 0, ["2 steps", "3"]), ("1 ? 3", 0, ["step 2", "missing"]), ("1 2 3", 4, ["3 steps", "horizon", "4"])],
)
def test_an_output_is_whole_and_always_as_long(value: str, horizon: int, words: list[str]) -> None:
    field = SeriesOutputField(SeriesOutput(horizon=horizon))
    assert horizon or field.problem("1 2 3") is None
    problem = field.problem(value) or ""
    assert all(word in problem for word in words), problem


def test_the_baseline_repeats_the_last_known_value() -> None:
    history = built(["1 10; 2 20; ? 30", "3 10; 4 ?; 5 50"], names=["level", "wind"])
    for names, expected in (([], [2, 2]), (["wind"], [30, 30])):
        field = SeriesOutputField(SeriesOutput(names=names))
        field.build(["7 8"])
        continued = field.continued({"h": "1 10; 2 20; ? 30"}, {"h": history})
        assert continued is not None
        assert continued.tolist() == expected
    other = SeriesOutputField(SeriesOutput(names=["rain"]))
    other.build(["7 8"])
    assert other.continued({"h": "1 10; 2 20"}, {"h": history}) is None


# --- On disk


def test_what_was_learned_is_kept(tmp_path: Path) -> None:
    field = built(["1 5; 3 ?", "4 6;"])
    field.save(tmp_path, "x")
    again = SeriesField.load(tmp_path, "x", field.settings, output=False)
    assert torch.equal(again.batch(["1 2; 3 4"]).values, field.batch(["1 2; 3 4"]).values)
    output = SeriesOutputField(SeriesOutput())
    output.build(["1 2 3"])
    output.save(tmp_path, "output")
    loaded = SeriesOutputField.load(tmp_path, "output", output.settings, output=True)
    assert (loaded.steps, loaded.size) == (3, 3)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        [],
        {"mean": [1], "deviation": [1]},
        {"mean": [1], "deviation": [0], "steps": 1},
        {"mean": [], "deviation": [], "steps": 1},
        {"mean": [1], "deviation": [1], "steps": 10**9},
        {"mean": [1], "deviation": [1], "steps": True},
        {"mean": ["1"], "deviation": [1], "steps": 1},
        {"mean": [1, 2], "deviation": [1], "steps": 1},
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, stored: Any) -> None:
    path = tmp_path / "series-output.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    with pytest.raises(UserError, match=r"series-output\.json: damaged"):
        SeriesOutputField.load(tmp_path, "output", SeriesOutput(), output=True)


# --- Files

CSV = SeriesInput(source="files")


def numpy_file(values: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values, **options)
    return file.getvalue()


def numpy_head(dtype: str, shape: str) -> bytes:
    """The beginning of a .npy file that claims to hold this."""
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def put(folder: Path, content: bytes | str, name: str = "s.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a,b\n1,2\n3,\n", ["a", "b"]),
        ("1,2\r\n3,NA\r\n", []),
        ("a\tb\n1\t2\n3\tnull\n", ["a", "b"]),
        ("1;2\n\n3;?\n", []),
        ("1 2\n3 nan\n", []),
        ('"a","b"\n"1","2"\n3,\n', ["a", "b"]),
        ("\ufeffa|b\n1|2\n3|\n", ["a", "b"]),
        (numpy_file([[1, 2], [3, NAN]]), []),
        (numpy_file(np.asfortranarray(np.array([[1, 2], [3, NAN]], dtype=">f4"))), []),
    ],
)
def test_files_are_known_by_what_they_hold(tmp_path: Path, content: bytes | str, names: list[str]) -> None:
    series = read_series(put(tmp_path, content, "whatever.bin"), CSV)
    assert same(series.values, [[1, 2], [3, NAN]])
    assert series.names == names


def test_a_parquet_file_has_a_column_for_each_channel(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"when": ["mon", "tue"], "a": [1, None], "b": [0.5, 1.5], "c": [True, False]}
    parquet.write_table(arrow.table(columns), tmp_path / "s.parquet")
    series = read_series(tmp_path / "s.parquet", SeriesInput(source="files", time="when"))
    assert same(series.values, [[1, 0.5, 1], [NAN, 1.5, 0]])
    assert (series.names, series.times) == (["a", "b", "c"], ["mon", "tue"])
    with pytest.raises(MediaError, match="column 'when' holds"):
        read_series(tmp_path / "s.parquet", CSV)
    with pytest.raises(MediaError, match="no column 'd'"):
        read_series(tmp_path / "s.parquet", SeriesInput(source="files", names=["d"]))


def test_named_columns_can_be_chosen_and_one_may_be_the_time(tmp_path: Path) -> None:
    path = put(tmp_path, "day,x,note,y\nmon,1,ok,2\ntue,3,bad,4\n")
    chosen = read_series(path, SeriesInput(source="files", names=["y", "x"], time="day"))
    assert same(chosen.values, [[2, 1], [4, 3]])
    assert (chosen.names, chosen.times) == (["y", "x"], ["mon", "tue"])
    field = SeriesFileField(SeriesInput(source="files", names=["y"], time="day"))
    field.build([str(path)])
    assert field.batch([str(path)]).names == [["mon", "tue"]]
    assert read_series(put(tmp_path, "0,1\n5,6\n"), SeriesInput(source="files", header=True)).names == ["0", "1"]


BAD_FILES: dict[str, tuple[bytes | str, list[str]]] = {
    "empty": ("", ["length zero"]),
    "header alone": ("a,b\n", ["length zero"]),
    "text": ("a,b\n1,x\n", ["line 2", "column 'b'", "'x'"]),
    "dates": ("2021-01-01,5\n", ["line 1", "column 1", "2021-01-01"]),
    "ragged": ("1,2\n3\n", ["line 2", "1 field"]),
    "beyond": ("1,2\n3,1e300\n", ["step 2, channel 2"]),
    "infinite": (numpy_file([[1.0, math.inf]]), ["step 1, channel 2"]),
    "twice": ("a,a\n1,2\n", ["'a'", "twice"]),
    "no text": (b"\xff\xfe\x00\x01", ["UTF-8"]),
    "quotes": ('1,2\n"' + "x" * 200_000, ["line 2"]),
    "object": (numpy_head("'|O'", "(1,)") + b"\x80\x04K\x01.", ["object"]),
    "huge": (numpy_head("'<f8'", "(1000000000000, 9)"), ["allowed"]),
    "short": (numpy_file(np.zeros((50, 2)))[:-1], ["cut short", "bytes"]),
    "cube": (numpy_file(np.zeros((2, 2, 2))), ["shape"]),
    "no steps": (numpy_file(np.zeros((0, 2))), ["shape"]),
    "words": (numpy_file(np.array(["a"])), ["<U1"]),
    "complex": (numpy_file(np.array([1j])), ["complex"]),
    "header length": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFF0) + b"{}\n", ["4,294,967,280", ".npy"]),
    "header cut": (numpy_head("'<f8'", "(1,)")[:50], ["cut short"]),
    "code": (numpy_head("print(1)", "(1,)"), [".npy", "header"]),
    "header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{" * 20_000, [".npy"]),
    "version": (b"\x93NUMPY\x09\x00v\x00", [".npy"]),
    "parquet": (b"PAR1" + bytes(100), [".parquet"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_series_is_refused_and_named(tmp_path: Path, name: str) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    content, words = BAD_FILES[name]
    path = put(tmp_path, content)
    problem = SeriesFileField(CSV).problem(str(path)) or ""
    assert all(word in problem for word in words), problem
    assert " object at " not in problem
    with pytest.raises(UserError, match=r"s\.csv"):
        SeriesFileField(CSV).read(str(path))


def test_a_file_with_other_channels_is_named(tmp_path: Path) -> None:
    field = SeriesFileField(CSV)
    field.build([str(put(tmp_path, "1,2\n"))])
    with pytest.raises(UserError, match=r"^.*t\.csv: 3 channels, and the model reads 2$"):
        field.read(str(put(tmp_path, "1,2,3\n", "t.csv")))


def test_a_model_tells_its_own_sizes(tmp_path: Path) -> None:
    field = built(["1 2; 3 4"])
    field.save(tmp_path, "x")
    for model in (field, SeriesField.load(tmp_path, "x", SeriesInput(), output=False)):
        assert model.problem("1 2 3;") == "3 channels, and the model reads 2"
    output = SeriesOutputField(SeriesOutput())
    output.build(["1 2"])
    assert output.problem("1 2 3") == "3 steps, and the model gives 2"


def test_named_columns_of_files_are_found_by_their_names(tmp_path: Path) -> None:
    first, other = put(tmp_path, "x,y\n1,10\n3,30\n"), put(tmp_path, "y,x\n10,1\n30,3\n", "t.csv")
    nameless = put(tmp_path, "1,10\n3,30\n", "u.csv")
    strange, more = put(tmp_path, "p,y\n1,10\n", "v.csv"), put(tmp_path, "x,y,z\n1,10,2\n", "w.csv")
    field = SeriesFileField(CSV)
    field.build([str(first), str(other)])
    assert field.mean.tolist() == [2, 20]
    field.save(tmp_path, "x")
    for model in (field, SeriesFileField.load(tmp_path, "x", CSV, output=False)):
        expected = model.batch([str(first)]).values
        for path in (other, nameless):
            assert torch.equal(model.batch([str(path)]).values, expected)
        assert same(model.to_drawable(str(other)).values, [[1, 10], [3, 30]])
        assert model.to_drawable(str(other)).names == ["x", "y"]
        with pytest.raises(UserError, match=r"v\.csv: no column 'x'; it has: p, y$"):
            model.read(str(strange))
        with pytest.raises(UserError, match=r"w\.csv: 3 channels, and the model reads 2$"):
            model.read(str(more))


def test_nameless_files_have_nothing_to_keep(tmp_path: Path) -> None:
    field = SeriesFileField(CSV)
    field.build([str(put(tmp_path, "1,10\n3,30\n"))])
    (path,) = field.save(tmp_path, "x")
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"mean", "deviation"}
    for columns in (["a"], ["a", "a"], [1, 2], "ab", None):
        path.write_text(json.dumps({"mean": [1, 2], "deviation": [1, 1], "columns": columns}), encoding="utf-8")
        with pytest.raises(UserError, match="damaged"):
            SeriesFileField.load(tmp_path, "x", CSV, output=False)


def test_sizes_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_files, "MAX_NUMBERS", 10)
    monkeypatch.setattr(series_files, "MAX_TEXT", 60)
    for content in ("1,2\n" * 6, "1\n" * 40, numpy_file(np.zeros((6, 2)))):
        assert "allowed" in (SeriesFileField(CSV).problem(str(put(tmp_path, content))) or "")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": np.zeros(11)}), tmp_path / "s.parquet")  # a few bytes once it is encoded
    assert "11 steps" in (SeriesFileField(CSV).problem(str(tmp_path / "s.parquet")) or "")
    monkeypatch.setattr(series_files, "MAX_NUMBERS", 10**6)
    monkeypatch.setattr(series_files, "MAX_EXPANSION", 50)
    assert "unpacked" in (SeriesFileField(CSV).problem(str(tmp_path / "s.parquet")) or "")


def parquet_file(columns: dict[str, Any], **options: Any) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = io.BytesIO()
    parquet.write_table(arrow.table(columns), file, **options)
    return file.getvalue()


def test_damaged_metadata_do_not_end_the_process(tmp_path: Path) -> None:
    content = parquet_file({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert content.count(b"%\x02\x18\x01b") == 1
    content = content.replace(b"%\x02\x18\x01b", b"%\x7f\x18\x01b")  # how often a value is there
    assert "parquet" in (SeriesFileField(CSV).problem(str(put(tmp_path, content))) or "")


def test_row_groups_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, parquet_file({"a": np.random.default_rng(0).normal(size=1000)}, row_group_size=100))
    monkeypatch.setattr(series_files, "MAX_EXPANSION", 20_000)
    assert SeriesFileField(CSV).problem(str(path)) is None
    monkeypatch.setattr(series_files, "MAX_EXPANSION", 4_000)
    assert "unpacked" in (SeriesFileField(CSV).problem(str(path)) or "")


def test_long_time_stamps_of_a_small_file_take_little_memory(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    text = arrow.DictionaryArray.from_arrays(np.zeros(300_000, dtype=np.int32), ["é" * 1000])
    path = put(tmp_path, parquet_file({"t": text, "a": np.zeros(300_000)}, store_schema=False))
    assert path.stat().st_size < 100_000
    pool = arrow.proxy_memory_pool(arrow.default_memory_pool())
    before = arrow.default_memory_pool()
    arrow.set_memory_pool(pool)
    try:
        series = read_series(path, SeriesInput(source="files", time="t"))
    finally:
        arrow.set_memory_pool(before)
    assert (len(series), set(series.times)) == (300_000, {"é" * 40})
    assert pool.max_memory() < 20_000_000


def test_time_stamps_are_texts_numbers_or_times(tmp_path: Path) -> None:
    settings = SeriesInput(source="files", time="t", names=["a"])
    arrow = pytest.importorskip("pyarrow")
    for stamps, expected in [
        ([3, None], ["3", "None"]),
        (["mon", None], ["mon", "None"]),
        (arrow.array(["mon", "mon"]).dictionary_encode(), ["mon", "mon"]),
        (np.array(["2021-01-01", "2021-01-02"], dtype="datetime64[s]"), ["2021-01-01 00:00:00", "2021-01-02 00:00:00"]),
    ]:
        path = put(tmp_path, parquet_file({"t": stamps, "a": [1.0, 2.0]}))
        assert read_series(path, settings).times == expected
    for stamps in ([[1], [2]], [b"x", b"y"], [{"x": 1}, {"x": 2}]):
        with pytest.raises(MediaError, match="column 't' holds"):
            read_series(put(tmp_path, parquet_file({"t": stamps, "a": [1.0, 2.0]})), settings)


def test_no_pickle_runs(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (Path(tmp_path / "harmed").write_text, ("x",))

    harmful = np.empty(1, dtype=object)
    harmful[0] = Harm()
    path = put(tmp_path, numpy_file(harmful, allow_pickle=True))
    assert "object" in (SeriesFileField(CSV).problem(str(path)) or "")
    assert not (tmp_path / "harmed").exists()


def test_a_decoder_process_reads_the_same(tmp_path: Path) -> None:
    good, bad = put(tmp_path, "day,x\nmon,1\ntue,\n", "a.csv"), put(tmp_path, BAD_FILES["object"][0], "b.npy")
    settings = SeriesInput(source="files", time="day")
    pool = DecoderPool(processes=1, memory=1 << 30, seconds=30, queue_size=4, result_bytes=1 << 20)
    try:
        decoded, refused = pool.submit([Job(str(good), settings), Job(str(bad), CSV)])
        values, named = decoded.result(60)
        assert same(values, [[1], [NAN]])
        assert json.loads(bytes(named)) == [["x"], ["mon", "tue"]]
        with pytest.raises(MediaError, match="object"):
            refused.result(60)
    finally:
        pool.close()


@pytest.mark.parametrize(
    "named", [b"", b"[" * 100_000, b"5", b"[[], [], []]", b'[["a"], ["mon"]]', b"[[1], []]", b"\xff"]
)
def test_what_a_decoder_process_returns_is_not_trusted(named: bytes) -> None:
    arrays = [np.zeros((2, 1)), np.frombuffer(named, dtype=np.uint8)]
    with pytest.raises(MediaError, match="did not return a series"):
        Series.from_arrays(arrays)
    with pytest.raises(MediaError, match="did not return a series"):
        Series.from_arrays([np.zeros(2), np.frombuffer(b"[[], []]", dtype=np.uint8)])


def test_files_in_a_table_are_read_once_and_stored(tmp_path: Path) -> None:
    for number in range(6):
        np.save(tmp_path / f"{number}.npy", np.arange(4.0) + number)
    table = put(tmp_path, "x\ty\n" + "".join(f"{i}.npy\t{'ab'[i % 2]}\n" for i in range(6)), "t.tsv")
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", "source": "files"}}})
    assert field_of(recipe.inputs["x"], output=False) is SeriesFileField
    opened, resolution = open_table(recipe, table, None)
    rows = list(resolution.rows(opened))
    fields = Fields.build(recipe, lambda: iter(rows))
    data = Dataset.build(fields, iter(rows))
    for number in range(6):
        (tmp_path / f"{number}.npy").unlink()
    assert data.batch([2]).inputs["x"].values.shape == (1, 4, 1)
    table.write_text("x\ty\n0.npy\ta\n", encoding="utf-8")
    opened, resolution = open_table(recipe, table, None)
    with pytest.raises(UserError, match=r"line 2, column 'x': 0\.npy: no such file"):
        list(resolution.rows(opened))


def test_a_header_is_not_read_before_its_length_is_checked(tmp_path: Path) -> None:
    path = put(tmp_path, BAD_FILES["header length"][0])
    tracemalloc.start()
    try:
        assert SeriesFileField(CSV).problem(str(path)) is not None
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("numbers", ["0.1 0.9; 0.2 1.1", "1 2 3 " * 500])
def test_numbers_that_are_taken_for_paths_are_cut_and_explained(tmp_path: Path, numbers: str) -> None:
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", "source": "files"}}})
    opened, resolution = open_table(recipe, put(tmp_path, f"x\ty\n{numbers}\ta\n", "t.tsv"), None)
    with pytest.raises(UserError, match="source: cells") as stopped:
        list(resolution.rows(opened))
    assert max(map(len, str(stopped.value).splitlines())) < 400 + len(str(tmp_path))
    assert "too long" not in str(stopped.value)


# --- Columns, lists and recipes


@pytest.mark.parametrize(
    ("header", "row", "column", "expected"),
    [
        ("y\tt1\tt2\tt3", "a\t1\t\t3", "t*", [[1], [NAN], [3]]),
        ("up\ty\tdown", "1 2\ta\t3 4", "up, down", [[1, 3], [2, 4]]),
        ("a\ty\tb", "1\ta\t2", "*", [[1], [2]]),
    ],
)
def test_a_series_may_lie_in_several_columns(
    tmp_path: Path, header: str, row: str, column: str, expected: list[list[float]]
) -> None:
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", "column": column}}})
    table, resolution = open_table(recipe, put(tmp_path, f"{header}\n{row}\n", "t.tsv"), None)
    (values,) = resolution.rows(table)
    assert same(parse_series(values["x"]), expected)


def test_cells_of_one_series_have_one_length(tmp_path: Path) -> None:
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", "column": "u, v"}}})
    table, resolution = open_table(recipe, put(tmp_path, "u\tv\ty\n1 2\t3 4 5\ta\n", "t.tsv"), None)
    with pytest.raises(UserError, match=r"line 2, column 'u, v': .*2 numbers in column 1 of 2 and 3 in column 2"):
        list(resolution.rows(table))


@pytest.mark.parametrize("cell", ["-0,33", "1.234,5", "0,33 0,5", "3;0,5"])
def test_decimal_commas_in_several_columns_are_refused(cell: str) -> None:
    with pytest.raises(CellError, match=r"data\.decimal=comma") as refused:
        series_of_columns(["1", cell])
    assert refused.value.place == 1


def test_commas_between_numbers_of_a_column_are_none_in_numbers() -> None:
    assert same(series_of_columns(["1,2,3", "4, 5 ,6"]), [[1, 4], [2, 5], [3, 6]])
    assert same(series_of_columns(["0.5,0.6", "[1,2]"]), [[0.5, 1], [0.6, 2]])


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("0,3,x", ["step 3 is 'x'"]),
        ("abc", ["'abc' is not a number"]),
        ("1e39", ["1e39"]),
        ("1 x", ["step 2 is 'x'"]),
    ],
)
def test_a_bad_cell_among_several_columns_is_named_by_its_own(tmp_path: Path, cell: str, words: list[str]) -> None:
    recipe = load_recipe(LABEL | {"inputs": {"x": {"kind": "series", "column": "t*"}}})
    path = put(tmp_path, f"y;t0;t1\na;1;2\nb;1;{cell.replace(';', ' ')}\n", "t.csv")
    table, resolution = open_table(recipe, path, None)
    with pytest.raises(UserError, match=r"line 3, column 't1': ") as stopped:
        list(resolution.rows(table))
    assert all(word in str(stopped.value) for word in words), stopped.value
    assert "channel" not in str(stopped.value)


def test_lists_of_a_json_table_are_steps(tmp_path: Path) -> None:
    lines = [{"x": [[1, 2], [3, None]], "y": "a"}, {"x": [[1, 2], [3, "no"]], "y": "b"}]
    path = put(tmp_path, "\n".join(map(json.dumps, lines)), "t.jsonl")
    table, resolution = open_table(load_recipe(LABEL), path, None)
    with pytest.raises(UserError, match=r"line 2, column 'x': step 2, channel 2"):
        list(resolution.rows(table))


# --- Shown


def test_a_series_is_shown_in_its_own_units_with_its_gaps() -> None:
    field = built(["1 10; 3 30; ? 50"], names=["a", "b"], longest=2)
    shown = field.to_drawable("1 10; 3 30; ? 50")
    assert isinstance(shown, Series)
    assert same(shown.values, [[3, 30], [NAN, 50]])
    assert (shown.names, shown.times, shown.step_names) == (["a", "b"], [], ["t=1", "t=2"])
    strided = built(["0 2 4 6 8 10 12"], stride=2, longest=3).to_drawable("0 2 4 6 8 10 12")
    assert (strided.first, strided.stride, strided.total) == (2, 2, 4)
    preview = field.preview(field.read("1 10; 3 30; ? 50"))
    assert preview["picture"].startswith("data:image/png;base64,")
    assert (preview["width"], preview["height"], len(preview["axis"])) == (720, 180, 5)


@pytest.mark.parametrize("values", [[[1.0]], [[NAN, 1], [NAN, 1]], [[1, NAN], [NAN, 2], [3, NAN]]])
def test_a_small_picture_can_be_drawn_of_any_series(values: list[list[float]]) -> None:
    picture = drawn_lines(np.array(values))
    assert picture.shape == (180, 720)
    assert picture.min() < 100


def test_a_stretch_is_hidden_by_the_mean_of_each_channel() -> None:
    field = built(["0 0; 2 20; 4 40; 6 60"], normalise="none")
    column = field.batch(["0 0; 2 20; 4 40; 6 60"])
    occlusion = field.occlusion(column, "", [2])
    assert occlusion.count == 2
    hidden = occlusion.without(torch.tensor([1]))
    assert hidden.values[0].tolist() == [[0, 0], [2, 20], [3, 30], [3, 30]]


def test_defaults_change_nothing_at_random() -> None:
    assert SeriesAugmentSettings() == SeriesInput().augment


def test_a_number_too_far_away_is_a_bad_row_with_its_place() -> None:
    field = SeriesField(SeriesInput())
    field.build(["1 2; 2 3; 3 1"])
    assert field.required_numbers == 2
    reason = field.problem("1 2; 3e38 1")
    assert reason is not None
    assert "step 2, channel 1" in reason
    assert field.problem("1 2; 4 1") is None


# ---------------------------------------------------------------- decimal commas


@pytest.mark.parametrize("kind", ["series", "vector"])
@pytest.mark.parametrize("column", ["t*", "t0", "t0, t1"])
def test_decimal_commas_in_a_table_with_semicolons_are_read_and_that_is_said(
    tmp_path: Path, kind: str, column: str
) -> None:
    encoder = {} if kind == "series" else {"encoder": {"kind": "dense"}}
    recipe = load_recipe(LABEL | encoder | {"inputs": {"x": {"kind": kind, "column": column}}})
    path = put(tmp_path, "y;t0;t1\na,b;0,5;1.234,5\nc;2;-0,25\n", "t.csv")
    table, resolution = open_table(recipe, path, None)
    rows = list(resolution.rows(table))
    alone = column == "t0"
    assert [parse_series(row["x"]).ravel().tolist() for row in rows] == (
        [[0.5], [2.0]] if alone else [[0.5, 1234.5], [2.0, -0.25]]
    )
    assert [row["output"] for row in rows] == ["a,b", "c"]
    assert any("data.decimal" in note for note in table.notes)


def test_decimal_commas_are_read_where_the_recipe_says_so(tmp_path: Path) -> None:
    settings = {"inputs": {"x": {"kind": "vector"}}, "encoder": {"kind": "dense"}}
    path = put(tmp_path, "x\ty\n0,5 1,5\ta\n", "t.tsv")
    numbers = {}
    for decimal in ("comma", "point"):
        recipe = load_recipe(LABEL | settings | {"data": {"decimal": decimal}})
        table, resolution = open_table(recipe, path, None)
        numbers[decimal] = parse_series(next(resolution.rows(table))["x"]).ravel().tolist()
    assert numbers == {"comma": [0.5, 1.5], "point": [0, 5, 1, 5]}


@pytest.mark.parametrize("content", ["a;b\n0,5;1\n2;0,25\n", "0,5;1\n2;0,25\n", "a, m\tb\n0,5\t1\n2\t0,25\n"])
def test_decimal_commas_in_files_of_series(tmp_path: Path, content: str) -> None:
    assert same(read_series(put(tmp_path, content), SeriesInput(source="files")).values, [[0.5, 1], [2, 0.25]])
