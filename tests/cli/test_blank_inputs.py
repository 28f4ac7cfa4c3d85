"""An empty input is answered by nothing: rows stay in their place, and are counted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import seq2see
from seq2see.errors import Notice, UserError
from tests.commands import Run

Call = Callable[..., Run]


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """A table with an empty cell and one of spaces among its words."""
    path = tmp_path / "gaps.csv"
    path.write_text("id,word\n1,abcd\n2,\n3,fade\n4,  \n", encoding="utf-8")
    return path


def test_a_blank_cell_gets_a_blank_answer_in_its_place(speller: Path, gaps: Path, call: Call) -> None:
    done = call("predict", speller, "--file", gaps)
    assert done.code == 0
    assert [bool(line) for line in done.lines] == [True, False, True, False]
    assert "2 of 4 rows" in done.err


def test_answers_beside_blank_ones_are_what_they_are_without_them(speller: Path, gaps: Path, call: Call) -> None:
    sampled = ("predict", speller, "--file", gaps, "--sample", "--seed", 5)
    whole = gaps.with_name("whole.csv")
    whole.write_text("id,word\n1,abcd\n2,bead\n3,fade\n4,face\n", encoding="utf-8")
    other = call("predict", speller, "--file", whole, "--sample", "--seed", 5).lines
    assert call(*sampled).lines[::2] == other[::2]


def test_a_table_is_written_back_with_blank_cells(speller: Path, gaps: Path, call: Call) -> None:
    to = gaps.with_name("out.csv")
    assert call("predict", speller, "--file", gaps, "--to", to).code == 0
    with to.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "3", "4"]
    assert [bool(row["prediction"]) for row in rows] == [True, False, True, False]
    assert [bool(row["score"]) for row in rows] == [True, False, True, False]


def test_the_json_of_a_blank_answer_says_why(speller: Path, gaps: Path, call: Call) -> None:
    lines = [json.loads(line) for line in call("predict", speller, "--file", gaps, "--json", "--beam", 3).lines]
    assert [line["text"] == "" for line in lines] == [False, True, False, True]
    assert [line["score"] is None for line in lines] == [False, True, False, True]
    assert ["reason" in line for line in lines] == [False, True, False, True]
    assert lines[1]["tokens"] == lines[1]["alternatives"] == []


@pytest.mark.parametrize("kind", ["txt", "stdin"])
def test_empty_lines_keep_their_place(
    kind: str, speller: Path, tmp_path: Path, call: Call, stdin: Callable[[str], None]
) -> None:
    text = "abcd\n\nfade\n"
    (tmp_path / "words.txt").write_text(text, encoding="utf-8")
    stdin(text)
    done = call("predict", speller, *(["--file", tmp_path / "words.txt"] if kind == "txt" else []))
    assert [bool(line) for line in done.lines] == [True, False, True]
    assert "1 of 3 rows" in done.err


def test_a_row_without_one_of_several_inputs_is_left_blank_as_training_leaves_it_out(
    judge: Path, tmp_path: Path, call: Call
) -> None:
    table = tmp_path / "gaps.tsv"
    table.write_text("first\tsecond\naab\tabb\naab\t\n\tabb\n", encoding="utf-8")
    lines = [json.loads(line) for line in call("predict", judge, "--file", table, "--json").lines]
    assert [bool(line["label"]) for line in lines] == [True, False, False]
    assert "second" in lines[1]["reason"]
    assert "first" in lines[2]["reason"]


def test_looks_of_blank_rows_are_not_drawn(speller: Path, gaps: Path, call: Call, tmp_path: Path) -> None:
    assert call("predict", speller, "--file", gaps, "--looks", tmp_path / "looks").code == 0
    assert [path.name[:5] for path in sorted((tmp_path / "looks").iterdir())] == ["00001", "00003"]


def test_lists_in_python_have_blank_predictions(speller: Path) -> None:
    model = seq2see.load(speller)
    with pytest.warns(Notice, match="1 of 2"):
        full, blank = model.predict(["abcd", ""])
    assert full.text == model.predict("abcd").text
    assert (full.reason, blank.text, bool(blank.reason), blank.alternatives) == ("", "", True, [])
    with pytest.raises(UserError, match="empty"):
        model.predict(" ")


def test_several_inputs_come_one_after_the_other_or_with_tabs(judge: Path, call: Call) -> None:
    apart = call("predict", judge, "ab", "ba", "b", "bb", "--json").lines
    assert [json.loads(line)["input"] for line in apart] == [
        {"first": "ab", "second": "ba"},
        {"first": "b", "second": "bb"},
    ]
    assert apart == call("predict", judge, "ab\tba", "b\tbb", "--json").lines


def test_one_question_with_an_empty_input_is_refused(judge: Path) -> None:
    with pytest.raises(UserError, match="second"):
        seq2see.load(judge).predict({"first": "ab", "second": ""})


def test_an_empty_input_has_no_vector_and_is_no_neighbour(speller: Path, gaps: Path, call: Call) -> None:
    lines = [json.loads(line) for line in call("encode", speller, "--file", gaps, "--json").lines]
    assert [line["vector"] is None for line in lines] == [False, True, False, True]
    near = call("encode", speller, "--file", gaps, "--json", "--neighbours", 3)
    found = [json.loads(line)["neighbours"] for line in near.lines]
    assert [[one["input"] for one in others] for others in found] == [["fade"], [], ["abcd"], []]


def test_rows_with_gaps_are_neither_measured_nor_scored(speller: Path, tmp_path: Path, call: Call) -> None:
    table = tmp_path / "gaps.tsv"
    table.write_text("word\tspelled\nabcd\tA B C D\n\tA B\nfade\t\n", encoding="utf-8")
    for command in ("evaluate", "score"):
        done = call(command, speller, "--data", table, "--json")
        assert json.loads(done.out)["rows"] == 1
        assert "1 row with an empty 'word'" in done.err


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of pictures, beside its table and one with an empty cell."""
    folder = tmp_path_factory.mktemp("colours")
    rows = []
    for number in range(12):
        colour = ("red", "blue")[number % 2]
        Image.new("RGB", (8, 8), colour).save(folder / f"{number}.png")
        rows.append(f"{number}.png\t{colour}\n")
    (folder / "train.tsv").write_text("file\tcolour\n" + "".join(rows), encoding="utf-8")
    (folder / "gaps.tsv").write_text("file\tnote\n0.png\ta\n\tb\n1.png\tc\n", encoding="utf-8")
    made = {
        "inputs": {"image": {"kind": "image", "height": 8, "width": 8, "column": "file"}},
        "output": {"kind": "label", "column": "colour"},
        "encoder": {"kind": "convolutional", "backbone": "small"},
        "decoder": {"kind": "label", "size": 8},
        "training": {"updates": 1, "epochs": 0},
    }
    seq2see.train(made, folder / "train.tsv", out=folder / "model", listeners=[])
    return folder


def test_an_empty_cell_in_place_of_a_file_is_left_blank(colours: Path, call: Call) -> None:
    to = colours / "out" / "answers.tsv"
    to.parent.mkdir()
    done = call("predict", colours / "model", "--file", colours / "gaps.tsv", "--to", to)
    assert done.code == 0, done.err
    rows = [line.split("\t") for line in to.read_text("utf-8").splitlines()[1:]]
    assert [bool(row[2]) for row in rows] == [True, False, True]
    assert [row[0] for row in rows] == ["../0.png", "", "../1.png"]


def test_an_empty_cell_in_place_of_numbers_is_left_blank(tmp_path: Path, call: Call) -> None:
    numbers = "".join(f"{n} {n + 1} {2 * n}\n" for n in range(20))
    (tmp_path / "train.tsv").write_text("x\n" + numbers, encoding="utf-8")
    changes = ["encoder.size=2", "encoder.hidden=[]"]
    run = {"out": tmp_path / "model", "overrides": changes, "updates": 1, "listeners": []}
    seq2see.train("autoencoder", tmp_path / "train.tsv", **run)
    (tmp_path / "gaps.tsv").write_text("x\tnote\n1 2 2\ta\n\tb\n", encoding="utf-8")
    done = call("predict", tmp_path / "model", "--file", tmp_path / "gaps.tsv", "--json")
    assert done.code == 0, done.err
    full, blank = (json.loads(line) for line in done.lines)
    assert (len(full["vector"]), blank["vector"], bool(blank["reason"])) == (3, [], True)
