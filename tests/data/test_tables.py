"""Tables in every format, and data sets by name."""

from __future__ import annotations

import csv
import gzip
import io
import random
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from seq2see.data import sources
from seq2see.data.formats import DataSettings
from seq2see.data.sources import RowError
from seq2see.data.tables import Table, locate, read, write
from seq2see.errors import MissingExtra, UserError
from seq2see.recipe import load_recipe
from tests.data.helpers import Put, error_of

PAIRS = [{"en": "a dog", "de": "ein Hund"}, {"en": 'say "hi", you', "de": "sag हाय"}, {"en": "", "de": "x"}]
SUFFIXES = [".tsv", ".csv", ".jsonl", ".parquet"]


def values(table: Table) -> list[dict[str, Any]]:
    return [row.values for row in table]


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_written_is_read_again_in_every_format(tmp_path: Path, suffix: str, packed: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"pairs{suffix}{packed}"
    write(path, iter(PAIRS), ["en", "de"])
    table = read(path)
    assert table.columns == ["en", "de"]
    assert values(table) == PAIRS
    assert values(table) == PAIRS, "a table can be read as often as one likes"
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == bool(packed)
    assert [other.name for other in tmp_path.iterdir()] == [path.name], "no part of the writing is left behind"


def test_plain_text_keeps_every_line(put: Put, tmp_path: Path) -> None:
    table = read(put("lines.txt", "one\n\nthree"))
    assert [(row.values, row.line) for row in table] == [
        ({"text": "one"}, 1),
        ({"text": ""}, 2),
        ({"text": "three"}, 3),
    ]
    write(tmp_path / "out.txt.gz", [{"text": "a\nb"}, {"text": "c"}], ["text"])
    assert gzip.decompress((tmp_path / "out.txt.gz").read_bytes()) == b"a b\nc\n"


def test_byte_order_mark_and_windows_line_ends_do_not_show(put: Put) -> None:
    table = read(put("x.tsv", b"\xef\xbb\xbfen\tde\r\na\tb\r\n\r\n"))
    assert table.columns == ["en", "de"]
    assert values(table) == [{"en": "a", "de": "b"}]


def test_tsv_takes_quotes_as_they_stand_unless_told(put: Put) -> None:
    path = put("x.tsv", 'en\tde\n"a\tb"\n')
    assert values(read(path)) == [{"en": '"a', "de": 'b"'}]
    one = put("y.tsv", 'en\tde\n"a\tb"\tc\n')
    assert values(read(one, settings=DataSettings(quoting=True))) == [{"en": "a\tb", "de": "c"}]


def test_csv_quotes_can_hold_commas_and_lines_and_line_numbers_stay_right(put: Put) -> None:
    table = read(put("x.csv", 'en,de\n"a, b","c ""d"""\n"first\nsecond",e\nf,g\n'))
    assert [(row.line, row.values["en"], row.values["de"]) for row in table] == [
        (2, "a, b", 'c "d"'),
        (3, "first\nsecond", "e"),
        (5, "f", "g"),
    ]


def test_csv_of_a_country_with_decimal_commas(put: Put) -> None:
    assert values(read(put("x.csv", "en;de\na,5;b\n"))) == [{"en": "a,5", "de": "b"}]


def test_a_semicolon_csv_whose_header_holds_a_comma(put: Put) -> None:
    table = read(put("x.csv", "Heard (age, village);Spelt\nabe;ab\nbee, bea;be\n"))
    assert values(table) == [
        {"Heard (age, village)": "abe", "Spelt": "ab"},
        {"Heard (age, village)": "bee, bea", "Spelt": "be"},
    ]
    assert [note for note in table.notes if "semicolon" in note and "data.delimiter" in note]


@pytest.mark.parametrize("between", [";", "\t", "|"])
def test_the_delimiter_of_a_csv_is_the_one_that_fits_most_rows(put: Put, between: str) -> None:
    rows = [["a, b", "c"], ["1", "2"], ['"x, y"', '"z, w, v"']]
    table = read(put("x.csv", "".join(f"{between.join(row)}\n" for row in rows)))
    assert table.columns == ["a, b", "c"]
    assert [list(row.values.values()) for row in table] == [["1", "2"], ["x, y", "z, w, v"]]


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("Name, first;Name, last\nabe, a;bee, b\n", ["Name, first", "Name, last"]),
        ("x, m;y, m;label\n0,5;1,5;a\n", ["x, m", "y, m", "label"]),
        ("a, b, c\n1, 2, 3\n", ["a", "b", "c"]),
    ],
)
def test_a_comma_before_a_space_in_the_header_is_part_of_a_name_where_another_delimiter_fits(
    put: Put, content: str, columns: list[str]
) -> None:
    assert read(put("x.csv", content)).columns == columns


def test_a_tsv_without_tabs_is_read_by_the_delimiter_it_has(put: Put) -> None:
    table = read(put("x.tsv", 'en;de\n"a;b";c\nd;e\n'))
    assert values(table) == [{"en": "a;b", "de": "c"}, {"en": "d", "de": "e"}]
    assert [note for note in table.notes if "semicolon" in note and "data.delimiter" in note]
    one = read(put("y.tsv", "text, plain\na, b, c\nd\n"))
    assert (one.columns, [row.values["text, plain"] for row in one]) == (["text, plain"], ["a, b, c", "d"])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt", "x.jsonl"])
def test_a_byte_order_mark_tells_the_encoding(put: Put, name: str, encoding: str) -> None:
    lines = {"csv": '"en",de\nMädchen,girl\n', "tsv": "en\tde\nMädchen\tgirl\n", "txt": "Mädchen\n"}
    content = lines.get(name.partition(".")[2], '{"en": "Mädchen", "de": "girl"}\n')
    table = read(put(name, content.encode(encoding)))
    assert next(iter(next(iter(table)).values.values())) == "Mädchen"
    assert table.columns == (["text"] if name == "x.txt" else ["en", "de"])
    blocks = [row.values for block in table.blocks() for row in table.block_rows(block)]
    assert blocks == [row.values for row in table]


def test_quotes_count_when_a_delimiter_is_chosen(put: Put) -> None:
    table = read(put("x.csv", '"a;b",c\n"1;2",3\n"4;5;6",7\n'))
    assert table.columns == ["a;b", "c"]
    assert not table.notes


def test_delimiters_that_fit_equally_well_leave_a_csv_its_comma(put: Put) -> None:
    assert read(put("x.csv", "a,b;c\n1,2;3\n")).columns == ["a", "b;c"]


def test_of_delimiters_that_fit_equally_well_the_one_with_more_fields_is_taken(put: Put) -> None:
    assert read(put("x.csv", "a;b, c;d\n1,5;2;3\n")).columns == ["a", "b, c", "d"]


def test_a_delimiter_by_which_quotes_are_wrong_is_not_taken(put: Put) -> None:
    assert read(put("x.csv", 'a,b|c\n1,"2"|3\n')).columns == ["a,b", "c"]


def test_a_row_with_a_comma_too_many_is_still_found(put: Put) -> None:
    message = error_of(lambda: list(read(put("x.csv", "en,de\na,b\nc,d,e\n"))))
    assert "line 3" in message
    assert "too many fields" in message


@pytest.mark.parametrize(("given", "columns"), [("comma", ["a", "b;c"]), (";", ["a,b", "c"]), ("pipe", ["a,b;c"])])
def test_the_delimiter_can_be_set(put: Put, given: Any, columns: list[str]) -> None:
    table = read(put("x.csv", "a,b;c\n1,2;3\n"), settings=DataSettings(delimiter=given))
    assert table.columns == columns
    assert not table.notes


def test_a_tsv_is_read_by_its_tabs_where_it_has_some_or_that_is_set(put: Put) -> None:
    assert read(put("x.tsv", "a;b;c\td\n1;2;3\t4\n")).columns == ["a;b;c", "d"]
    path = put("y.tsv", "a;b\n1;2\n")
    assert read(path).columns == ["a", "b"]
    assert read(path, settings=DataSettings(delimiter="tab")).columns == ["a;b"]


@pytest.mark.parametrize("given", ["comma", "tab", ",", ";", "|", "\t"])
def test_a_delimiter_is_set_on_the_command_line_as_it_stands(given: str) -> None:
    recipe = load_recipe({"inputs": {"source": {}}}, overrides=[f"data.delimiter={given}"])
    assert recipe.data.delimiter == given


def test_an_unknown_delimiter_is_refused_with_those_that_are_known() -> None:
    message = error_of(lambda: load_recipe({"inputs": {"source": {}}}, overrides=["data.delimiter=semi"]))
    assert "data.delimiter" in message
    assert "semicolon" in message


def test_other_encodings_are_settings(put: Put) -> None:
    latin = put("x.tsv", "en\tde\nMädchen\tgirl\n".encode("latin-1"))
    assert values(read(latin, settings=DataSettings(encoding="latin-1")))[0]["en"] == "Mädchen"
    wide = put("y.csv", "en,de\nMädchen,girl\n".encode("utf-16"))
    assert values(read(wide, settings=DataSettings(encoding="utf-16"))) == [{"en": "Mädchen", "de": "girl"}]


def test_wide_encodings_break_lines_at_newlines_only(put: Put) -> None:
    path = put("x.txt.gz", gzip.compress("a\u2028b\x85c\r\nd\n".encode("utf-16")))
    assert [row.values["text"] for row in read(path, settings=DataSettings(encoding="utf-16"))] == [
        "a\u2028b\x85c",
        "d",
    ]


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_a_single_column_may_hold_empty_values(put: Put, suffix: str) -> None:
    assert [row.values["text"] for row in read(put("x" + suffix, "text\na\n\nb\n"))] == ["a", "", "b"]


def test_fields_of_a_megabyte_are_read(put: Put) -> None:
    assert len(values(read(put("x.csv", "en,de\n" + "a" * 1_000_000 + ",b\n")))[0]["en"]) == 1_000_000


def test_reading_leaves_the_limit_of_the_csv_module_alone(put: Put) -> None:
    """It is one for the whole process, and may be the user's own."""
    limit = csv.field_size_limit()
    try:
        for own in (1 << 30, 5_000):
            csv.field_size_limit(own)
            assert len(list(read(put("x.csv", 'en,de\n"a","b"\n')))) == 1
            assert csv.field_size_limit() == own
    finally:
        csv.field_size_limit(limit)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-7", "shift_jis"])
def test_lines_read_in_blocks_are_those_read_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    draw, path = random.Random(3), tmp_path / "x.txt"
    monkeypatch.setattr(sources, "_BLOCK", 7)
    monkeypatch.setattr(sources, "_PIECE", 16)
    monkeypatch.setattr(sources, "MAX_ROW", 20)
    pieces = [b"a", b"bcd", "ä\u2028é".encode(), b"\xff", b"\r", b"\n", b"\r\n", b"\n\n", b"x" * 15, b"+2AA-", b"\x82"]
    for _ in range(300):
        content = b"start\n" + b"".join(draw.choices(pieces, k=draw.randrange(30)))
        path.write_bytes(content)
        expected, wrong, found = [], [], list[RowError]()
        for number, raw in enumerate(io.BytesIO(content), start=1):
            try:
                text = raw.decode(encoding)
                text.encode("utf-8")
                too_long = len(raw.removesuffix(b"\n")) > 20
            except UnicodeError:
                too_long = True
            if too_long:
                wrong.append(number)
            else:
                expected.append((number, text.rstrip("\r\n")))
        assert (
            list(sources.read_lines(path, encoding=encoding, bad=lambda error, found=found: found.append(error)))
            == expected
        )
        assert [str(error).split("line ")[1].split(":")[0].split(",")[0] for error in found] == list(map(str, wrong))


def test_json_lines_keep_types_and_further_keys(put: Put) -> None:
    table = read(put("x.jsonl", '{"q": "a", "n": 1}\n\n{"q": "b", "n": 2, "more": []}\n'))
    assert table.columns == ["q", "n"]
    assert [(row.line, row.values) for row in table] == [(1, {"q": "a", "n": 1}), (3, {"q": "b", "n": 2, "more": []})]


def test_parquet_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("seq2see.data.parquet._ROWS", 7)
    parquet.write_table(pyarrow.table({"n": list(range(100))}), tmp_path / "x.parquet", row_group_size=10)
    assert [(row.values["n"], row.line) for row in read(tmp_path / "x.parquet")] == [(n, n + 1) for n in range(100)]


def test_reading_does_not_hold_the_table_in_memory(put: Put) -> None:
    rows = iter(read(put("x.tsv", "en\tde\n" + "a\tb\n" * 10 + "only one field\n")))
    assert [next(rows).line for _ in range(10)] == list(range(2, 12)), "the bad row is not met before its turn"


def test_a_failed_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    write(path, PAIRS, ["en"])
    before = path.read_bytes()

    def breaks() -> Any:
        yield PAIRS[0]
        raise RuntimeError("the model broke")

    with pytest.raises(RuntimeError, match="the model broke"):
        write(path, breaks(), ["en"])
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == ["x.tsv"]


def test_values_that_are_no_text_are_written_as_json(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", [{"a": None, "b": ["u", 1], "c": 0.5}], ["a", "b", "c"])
    assert (tmp_path / "x.csv").read_text() == 'a,b,c\n,"[""u"", 1]",0.5\n'


def test_a_tab_in_a_value_cannot_break_a_tsv(tmp_path: Path) -> None:
    write(tmp_path / "x.tsv", [{"a": "u\tv\nw", "b": "x"}], ["a", "b"])
    assert values(read(tmp_path / "x.tsv")) == [{"a": "u v w", "b": "x"}]


class SavedRows(list[dict[str, Any]]):
    column_names = ["en", "de"]


def test_a_hugging_face_folder_goes_through_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load_from_disk(path: str) -> SavedRows:
        asked.append(path)
        return SavedRows(PAIRS)

    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_from_disk=load_from_disk))
    (tmp_path / "state.json").write_text("{}")
    table = read(tmp_path)
    assert (asked, table.columns, values(table)) == ([str(tmp_path)], ["en", "de"], PAIRS)


def test_a_hugging_face_folder_for_real(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(PAIRS).save_to_disk(tmp_path / "saved")
    assert values(read(tmp_path / "saved")) == PAIRS


def test_parquet_without_its_library_names_the_extra(put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = put("x.parquet", b"PAR1")
    with pytest.raises(MissingExtra, match=r"pip install 'seq2see\[parquet\]'"):
        read(path)


def test_a_hugging_face_folder_without_the_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(MissingExtra, match=r"pip install 'seq2see\[datasets\]'"):
        read(tmp_path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "latin-1"])
def test_lines_that_end_in_carriage_returns_alone(put: Put, encoding: str) -> None:
    path = put("mac.csv", 'en,de\rdög,"Hund, ""x"""\rcat,Katze\r'.encode(encoding))
    table = read(path, settings=DataSettings(encoding=encoding))
    assert [(row.line, row.values) for row in table] == [
        (2, {"en": "dög", "de": 'Hund, "x"'}),
        (3, {"en": "cat", "de": "Katze"}),
    ]


def test_a_carriage_return_inside_a_line_is_part_of_it(put: Put) -> None:
    table = read(put("x.tsv", "en\tde\r\na\rb\tc\n"))
    assert [row.values for row in table] == [{"en": "a\rb", "de": "c"}]
    assert [row.values for row in read(put("y.txt", "a b\r"))] == [{"text": "a b"}]


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the folder of data sets beside it, in which there is one, `words`."""
    data = tmp_path / "data" / "words"
    data.mkdir(parents=True)
    for stem in ("train", "dev"):
        (data / f"{stem}.tsv").write_text("source\ttarget\na\tb\n", encoding="utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("SEQ2SEE_DATA", str(tmp_path / "data"))
    return data


def test_a_data_set_is_found_by_name_with_its_dev(beside: Path) -> None:
    assert locate("words") == (beside / "train.tsv", beside / "dev.tsv")


def test_a_run_called_after_its_data_does_not_hide_them(beside: Path) -> None:
    Path("words").mkdir()
    assert locate("words") == (beside / "train.tsv", beside / "dev.tsv")


@pytest.mark.parametrize("mark", ["train.csv", "state.json"])
def test_a_folder_of_data_here_comes_first(beside: Path, mark: str) -> None:
    Path("words").mkdir()
    (Path("words") / mark).write_text("{}", encoding="utf-8")
    assert not locate("words")[0].is_relative_to(beside)


def test_an_unknown_name_is_told_what_there_is(beside: Path) -> None:
    with pytest.raises(UserError, match="words"):
        locate("word")
