"""Tables that were made to fill the memory or to break their reader: a message with file and line, in little memory."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seq2see.cli import inputs
from seq2see.data import delimited, parquet, sources, tables
from seq2see.data.formats import DataSettings
from seq2see.data.pretrained_vectors import read_vectors
from seq2see.data.tables import read, write
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table
from tests.hostile.mutations import SEED, mutate_bytes, survived

Call = Callable[..., tuple[int, str, str]]
MEBIBYTE = 1 << 20


def refused(path: Path, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        list(read(path, settings=DataSettings(**settings)))
    return str(caught.value)


# ---------------------------------------------------------------- bombs, at their full size

HEADS = {"tsv": b"a\tb\n", "csv": b"a,b\n", "jsonl": b'{"a": 1}\n{"a": "', "txt": b"a\n", "mac.tsv": b"a\tb\rc\td\r"}

READ_ALL = """
import json, re, resource, sys
from pathlib import Path
from seq2see.data.tables import read
from seq2see.errors import UserError
resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = sum(1 for row in read(name))
    except UserError as error:
        found[name] = str(error)
status = Path("/proc/self/status").read_text()  # ru_maxrss would count what the parent had when it forked
print(json.dumps([found, int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])]))
"""


@pytest.fixture
def bombs(tmp_path: Path) -> list[Path]:
    """Files of at most two megabytes that hold 2 GB each."""
    arrow, written = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    much = gzip.compress(b"x" * (64 * MEBIBYTE)) * 32  # one member after the other
    found = []
    for suffix, head in HEADS.items():
        found.append(tmp_path / f"line.{suffix}.gz")
        found[-1].write_bytes(gzip.compress(head) + much)
    for name, length, rows in (("cell", 20, 100), ("table", 3, 700)):
        value = arrow.array(["x" * (length * MEBIBYTE)]).dictionary_encode()
        column = value.take(arrow.array([0] * rows))
        found.append(tmp_path / f"{name}.parquet")
        written.write_table(arrow.table({"a": column, "b": ["y"] * rows}), found[-1], compression="zstd")
    return found


def test_bombs_are_refused_in_little_memory(bombs: list[Path]) -> None:
    assert max(path.stat().st_size for path in bombs) < 3 * MEBIBYTE
    line = [sys.executable, "-c", READ_ALL, *map(str, bombs)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    found, kilobytes = json.loads(done.stdout)
    for path in bombs:
        assert str(found[str(path)]).startswith(f"{path}, "), found[str(path)]
    assert kilobytes < 1_000_000


# ---------------------------------------------------------------- the same limits, lowered


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sources, delimited, tables, parquet):
        for name, value in {"MAX_ROW": 4000, "MAX_CELL": 2000, "MAX_COLUMNS": 30}.items():
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "jsonl", "txt"])
def test_a_line_too_long_is_named_or_skipped(tmp_path: Path, suffix: str, ending: str, packed: str) -> None:
    row = {"tsv": "a\t{}", "csv": "a,{}", "jsonl": '{{"a": 1, "b": "{}"}}', "txt": "{}"}[suffix]
    lines = ["one\ttwo" if suffix == "tsv" else "one,two"] if suffix in ("tsv", "csv") else []
    lines += [row.format(text) for text in ("x", "x" * 5000, "y" * 1500, "z")]
    path = tmp_path / f"t.{suffix}{packed}"
    content = "".join(line + ending for line in lines).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    assert f"{path}, line {len(lines) - 2}: longer than 4,000 bytes" in refused(path)
    assert len(list(read(path, settings=DataSettings(on_error="skip")))) == 3


@pytest.mark.usefixtures("low")
def test_wide_encodings_have_the_same_limit(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(("a\tb\nc\t" + "x" * 9000 + "\ne\tf\n").encode("utf-16"))
    assert f"{path}, line 2: longer than" in refused(path, encoding="utf-16")
    assert len(list(read(path, settings=DataSettings(on_error="skip", encoding="utf-16")))) == 1


@pytest.mark.usefixtures("low")
def test_quoted_records_have_an_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"' + "x\n" * 5000)
    assert f"{path}, lines 2 to " in refused(path)
    path.write_text("a,b\n" + '"x\n",' * 5000)
    assert f"{path}, lines 2 to " in refused(path)
    path.write_text('a,b\nc,d\n"' + "x\n" * 1500 + '",e\nf,g\n')
    assert "never closed?" in refused(path)
    assert [row.values["a"] for row in read(path, settings=DataSettings(on_error="skip"))] == ["c", "f"]


@pytest.mark.usefixtures("low")
@pytest.mark.parametrize("suffix", ["tsv", "jsonl", "parquet"])
def test_a_cell_too_long_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t.{suffix}"
    write(path, [{"a": "x", "b": "y"}, {"a": "x" * 2500, "b": "y"}, {"a": "z", "b": "y"}], ["a", "b"])
    place = 3 if suffix == "tsv" else 2
    unit = "row" if suffix == "parquet" else "line"
    assert f"{path}, {unit} {place}, column 'a': 2,500 characters, at most 2,000" in refused(path)
    assert len(list(read(path, settings=DataSettings(on_error="skip")))) == 2


@pytest.mark.usefixtures("low")
def test_too_many_columns(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(40)]
    for suffix in ("tsv", "csv", "jsonl", "parquet"):
        path = tmp_path / f"t.{suffix}"
        write(path, [dict.fromkeys(names, "x")], names)
        assert "40 columns (c0, c1, " in refused(path)


def test_a_row_of_a_million_cells_gives_a_short_message(tmp_path: Path) -> None:
    for suffix, mark in (("csv", ","), ("tsv", "\t")):
        path = tmp_path / f"t.{suffix}"
        path.write_text(f"a{mark}b\n" + f"1{mark}" * 1_000_000 + "\n")
        message = refused(path)
        assert f"{path}, line 2: too many fields" in message
        assert len(message) < 500


def test_a_table_that_unpacks_to_hundreds_of_times_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_UNPACKED", 100_000)
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\n" + b"x\ty\n" * 200_000))
    assert "times as many" in refused(path)
    packed = tmp_path / "t.parquet.gz"
    monkeypatch.setattr(parquet, "MAX_BATCH", 1000)
    packed.write_bytes(gzip.compress(b"PAR1" + b"\0" * MEBIBYTE))
    assert "unpacks to more than 100 times its own size" in refused(packed)


def test_inputs_are_predicted_together_while_they_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_CHARACTERS", 100)
    items = [inputs.Item({"source": "x" * length}) for length in (60, 60, 10, 200, 5)]
    assert [len(chunk) for chunk in inputs.chunked(items)] == [2, 2, 1]


# ---------------------------------------------------------------- what is no text, no number, no file


def test_parquet_with_text_that_is_none(tmp_path: Path, call: Call, models: dict[str, Path]) -> None:
    arrow, written = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ends = arrow.array([0, 3, 5, 8], arrow.int32()).buffers()[1]
    text = arrow.Array.from_buffers(arrow.string(), 3, [None, ends, arrow.py_buffer(b"one\xff\xfetwo")])
    path = tmp_path / "t.parquet"
    written.write_table(arrow.table({"source": text, "output": ["a", "b", "c"]}), path)
    assert f"{path}, row 2, column 'source': not text in UTF-8" in refused(path)
    assert [row.line for row in read(path, settings=DataSettings(on_error="skip"))] == [1, 3]
    for command in (["predict", models["word"], "--file", path], ["evaluate", models["word"], "--data", path]):
        code, _, err = call(*command)
        assert code == 2
        assert "row 2, column 'source'" in err
        assert "Traceback" not in err


def test_json_that_python_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    for value in ("[" * 50_000 + "]" * 50_000, "9" * 5000):
        path.write_text(f'{{"a": "b"}}\n{{"a": {value}}}\n')
        assert f"{path}, line 2: " in refused(path)


@pytest.mark.parametrize("encoding", ["zlib", "rot13", "undefined", "idna", "unicode_escape", "a\0b", "", "x" * 5000])
def test_encodings_that_are_none(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("a\tb\nc\td\n")
    assert "data.encoding: unknown encoding" in refused(path, encoding=encoding)


def test_encodings_that_give_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_bytes(b"a\tb\n+2AA-\td\n")
    assert "line 2: half of a surrogate pair" in refused(path, encoding="utf-7")


def test_a_pipe_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    os.mkfifo(path)
    assert "a device or a pipe" in refused(path)


def test_vectors_of_a_size_that_nobody_has(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    for content in ("one" + " 1" * 20_000, "2 99999999999\none 1\n", "² 3\none 1 2\n", "9" * 5000 + " 2\none 1 2\n"):
        path.write_text(content + "\n")
        with pytest.raises(UserError, match=r"vectors\.txt"):
            read_vectors(path, Vocabulary(["one"]))


def test_a_parquet_file_whose_description_is_damaged(tmp_path: Path) -> None:
    """pyarrow ends the whole process at some of these; each is a message here."""
    path = tmp_path / "t.parquet"
    write(path, [{"source": "one", "list": ["a", "b"]}] * 9, ["source", "list"])
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    optional, unknown = 2, 6
    for place in (at for at in range(start, start + 80) if whole[at] == optional):
        path.write_bytes(whole[:place] + bytes([unknown]) + whole[place + 1 :])
        survived(lambda: list(read(path)))


def test_the_documentation_names_the_limits() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "tables.md").read_text("utf-8")
    limits = [sources.MAX_ROW, sources.MAX_CELL, sources.MAX_COLUMNS, tables.MAX_EXPANSION, tables.MAX_UNPACKED]
    assert [limit for limit in limits if f"{limit:,}" not in page] == []


# ---------------------------------------------------------------- mutated at random

ROWS = [("one, two", 'zwei "eins"'), ("à b", "ß\u2028c"), ("three", "x" * 200), ("", "y")] * 5
ENCODINGS = ["utf-8"] * 6 + ["utf-16", "latin-1", "utf-7", "unicode_escape", "cp1252", "utf-32", "shift_jis", "hz"]


def seeds(folder: Path) -> Iterator[tuple[str, bytes]]:
    rows = [{"source": source, "output": output, "list": ["a", source]} for source, output in ROWS]
    for suffix in ("tsv", "csv", "jsonl", "txt", "parquet", "tsv.gz", "parquet.gz"):
        path = folder / f"seed.{suffix}"
        write(path, rows, ["source"] if suffix == "txt" else ["source", "output", "list"])
        yield suffix, path.read_bytes()


def read_one(folder: Path, known: list[tuple[str, bytes]], draw: random.Random) -> bool:
    """Whether a mutated table can still be read. known: suffixes and files to mutate."""
    suffix, content = draw.choices(known, [1 if "parquet" in suffix else 5 for suffix, _ in known])[0]
    inside = suffix.endswith(".gz") and draw.random() < 0.6
    changed = gzip.compress(mutate_bytes(gzip.decompress(content), draw), 1) if inside else mutate_bytes(content, draw)
    path = folder / f"mutated.{suffix}"
    path.write_bytes(changed)
    data = DataSettings(
        encoding=draw.choice(ENCODINGS),
        on_error=draw.choice(["stop", "skip"]),
        quoting=draw.choice([None, None, True, False]),
    )

    def whole() -> None:
        recipe = load_recipe({"inputs": {"source": {}}})
        table, columns = open_table(recipe.model_copy(update={"data": data}), path, None)
        rows = list(columns.rows(table))
        write(folder / "again.tsv", rows, list(rows[0]))

    return survived(whole)


def read_mutated(folder: Path, number: int, seed: int) -> int:
    """How many of so many mutated tables can still be read."""
    draw, known = random.Random(seed), list(seeds(folder))
    return sum(read_one(folder, known, draw) for _ in range(number))


def test_mutated_tables(tmp_path: Path) -> None:
    assert 0 < read_mutated(tmp_path, 400, seed=1) < 400


@pytest.mark.slow
def test_many_mutated_tables(tmp_path: Path) -> None:
    assert read_mutated(tmp_path, 8000, seed=SEED)
