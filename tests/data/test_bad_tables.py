"""What is wrong with a table is told with file, line and column, the value and what is allowed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from seq2see.data.formats import DataSettings
from seq2see.data.tables import read, write
from tests.data.helpers import Put, error_of, skipping


def reading(path: Path) -> str:
    """The message with which reading a whole table ends."""
    return error_of(lambda: list(read(path)))


def test_a_missing_file_names_the_nearest(put: Put) -> None:
    path = put("train.tsv", "a\tb\n")
    assert reading(path.with_name("trian.tsv")).endswith("trian.tsv: no such file (did you mean 'train.tsv'?)")
    assert "the folder" in reading(path.parent / "nowhere" / "x.tsv")


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.tsv", ""), ("x.csv", "\n\n"), ("x.jsonl", "\n"), ("x.txt", b"\xef\xbb\xbf"), ("x.tsv.gz", gzip.compress(b""))],
)
def test_an_empty_file(put: Put, name: str, content: str | bytes) -> None:
    assert reading(put(name, content)).endswith(f"{name}: the file is empty")


def test_a_header_alone_is_reported_when_the_table_is_opened(put: Put) -> None:
    path = put("x.tsv", "en\tde\n\n")
    assert error_of(lambda: read(path)).endswith("x.tsv: a header (en, de) but no rows")


def test_too_few_and_too_many_fields(put: Put) -> None:
    few = reading(put("x.tsv", "en\tde\na\tb\nc\n"))
    assert few.endswith("x.tsv, line 3: too few fields: 1 found, 2 expected (en, de); column 'de' is missing")
    many = reading(put("x.csv", 'en,de\n"a\nb",c\nd,e,f\n'))
    assert "x.csv, line 4: too many fields: 3 found, 2 expected (en, de)" in many


def test_wrong_encoding_names_line_and_byte(put: Put) -> None:
    message = reading(put("x.tsv", b"en\tde\na\tb\nM\xe4dchen\tgirl\n"))
    assert "x.tsv, line 3, byte 2: 0xe4 is not utf-8" in message
    assert "--set data.encoding=cp1252" in message
    unknown = error_of(lambda: read(put("z.tsv", "a\tb\n"), settings=DataSettings(encoding="uft-8")))
    assert "unknown encoding 'uft-8'" in unknown


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a\tb\n\x00\x01\x02", "a binary file, not text (a zero byte at byte 5)"),
        (b"\x89PNG\r\n\x1a\n\x00", "an image"),
        (b"PK\x03\x04rest", "an Excel workbook: name that .xlsx"),
        (gzip.compress(b"a\tb\n"), "compressed by gzip: name it .gz"),
    ],
)
def test_a_binary_file(put: Put, content: bytes, what: str) -> None:
    message = reading(put("x.tsv", content))
    assert "x.tsv: " in message
    assert what in message


def test_broken_gzip(put: Put) -> None:
    rows = "a\tb\n" + "".join(f"{n}\t{n * n}\n" for n in range(5000))
    whole = gzip.compress(rows.encode())
    assert "damaged or cut short" in reading(put("cut.tsv.gz", whole[: len(whole) // 2]))
    assert "not a gzip file" in reading(put("plain.tsv.gz", "a\tb\nc\td\n"))
    damaged = bytearray(whole)
    damaged[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    assert "gzip" in reading(put("damaged.tsv.gz", bytes(damaged)))


def test_bad_json_lines(put: Put) -> None:
    assert "x.jsonl, line 2, character 12: not JSON: " in reading(put("x.jsonl", '{"a": "b"}\n{"a": "b", }\n'))
    assert "line 1: " in reading(put("y.jsonl", '["a", "b"]\n'))
    missing = reading(put("z.jsonl", '{"word": 1}\n{"wrod": 2}\n'))
    assert "z.jsonl, line 2: key 'word' is missing (did you mean 'wrod'?); found: wrod" in missing
    assert "line 1: half of a surrogate pair" in reading(put("s.jsonl", '{"a": "\\ud800"}\n'))


def test_an_unknown_suffix_lists_the_known(put: Put) -> None:
    message = reading(put("x.cvs", "a,b\n"))
    assert "unknown suffix '.cvs' (did you mean '.csv'?)" in message
    assert ".tsv, .csv, " in message
    assert ".jsonl" in message
    assert "folder," not in message


def test_a_header_with_a_name_twice(put: Put) -> None:
    message = reading(put("x.tsv", "en\tde\ten\na\tb\tc\n"))
    assert message.endswith("x.tsv, line 1: column 'en' occurs twice in the header")


def test_quotes_that_do_not_close(put: Put) -> None:
    assert "x.csv, line 3: a quote is opened and never closed" in reading(put("x.csv", 'en,de\na,b\n"c,d\ne,f\n'))
    wrong = reading(put("y.csv", 'en,de\n"a" b,c\n'))
    assert "y.csv, line 2: " in wrong
    assert "data.quoting=false" in wrong


def test_a_folder_that_is_no_dataset(tmp_path: Path) -> None:
    assert "no table in this folder, which is empty; a table ends in .txt" in reading(tmp_path)
    (tmp_path / "notes.doc").write_text("")
    assert "no table in this folder; a table ends in .txt" in reading(tmp_path)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        (tmp_path / split / "state.json").write_text("{}")
    assert f"{tmp_path / 'test'}" in reading(tmp_path)


def test_a_damaged_parquet_file(put: Put) -> None:
    pytest.importorskip("pyarrow")
    assert "x.parquet: not a Parquet file, or a damaged one" in reading(put("x.parquet", b"PAR1 and then nothing"))


def test_bad_rows_can_be_skipped_and_are_counted(put: Put) -> None:
    table = skipping(put("x.tsv", b"en\tde\na\tb\nc\nM\xe4\td\ne\tf\tg\nh\ti\n"))
    assert [row.values["en"] for row in table] == ["a", "h"]
    assert [reason.split(":")[0].rsplit(", line ")[1] for reason in table.skipped] == ["3", "4, byte 2", "5"]
    list(table)
    assert len(table.skipped) == 3, "counted anew at each reading"

    quoted = skipping(put("x.csv", 'en,de\na,b\n"c" d,e\nf,g\n'))
    assert [row.values["en"] for row in quoted] == ["a", "f"]
    lines = skipping(put("x.jsonl", '{"a": 1}\nnonsense\n[]\n{"a": 2}\n'))
    assert [row.values["a"] for row in lines] == [1, 2]
    assert len(lines.skipped) == 2


def test_skipping_every_row_is_an_error(put: Put) -> None:
    path = put("x.tsv", "en\tde\nc\nd\n")
    assert "none of its 2 rows can be read; the first: " in error_of(lambda: skipping(path))


def test_writing_where_it_cannot_be(tmp_path: Path) -> None:
    assert "does not exist" in error_of(lambda: write(tmp_path / "no" / "x.tsv", [], ["a"]))
    assert "unknown suffix '.doc'" in error_of(lambda: write(tmp_path / "x.doc", [], ["a"]))
    assert "one column, not 2 (a, b)" in error_of(lambda: write(tmp_path / "x.txt", [], ["a", "b"]))
    assert "unknown suffix '.folder'" in error_of(lambda: write(tmp_path / "x.folder", [], ["a"]))
