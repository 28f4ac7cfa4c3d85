"""Columns of a recipe in a table, and rows with equal inputs as references of each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seq2see.data.columns import group_references, resolve
from seq2see.data.tables import read
from tests.data.helpers import Put, error_of, skipping

WANTED = [("word", "word"), ("output", "phonemes")]
PAIR = [("premise", "premise"), ("hypothesis", "hypothesis"), ("output", "label")]


def test_the_recipes_names_win_wherever_they_stand() -> None:
    found = resolve(["count", "phonemes", "word"], WANTED, path="x.tsv")
    assert (found.mapping, found.note) == ({"word": "word", "output": "phonemes"}, None)


def test_given_columns_are_in_the_recipes_order() -> None:
    found = resolve(["word", "phonemes", "x"], WANTED, ["x", "word"], path="x.tsv")
    assert (found.mapping, found.note) == ({"word": "x", "output": "word"}, None)


def test_the_only_columns_are_taken_and_said() -> None:
    found = resolve(["english", "hindi"], WANTED, path="names.csv")
    assert found.mapping == {"word": "english", "output": "hindi"}
    assert found.note == "columns: 'english' -> 'hindi' (the only two)"
    three = resolve(["a", "b", "c"], PAIR, path="x.tsv")
    assert three.note == "columns: 'a', 'b' -> 'c' (the only three)"


def test_a_name_that_is_there_is_not_given_to_another() -> None:
    assert resolve(["phonemes", "spelling"], WANTED, path="x.tsv").mapping == {"word": "spelling", "output": "phonemes"}


def test_the_name_of_an_input_does_not_turn_a_table_round() -> None:
    wanted = [("word", "latin"), ("output", "native")]
    message = error_of(lambda: resolve(["arabic", "latin"], wanted, path="x.tsv"))
    assert "x.tsv: column 'latin'" in message
    assert "--columns latin,arabic" in message
    assert "--columns arabic,latin" in message
    assert resolve(["latin", "arabic"], wanted, path="x.tsv").mapping == {"word": "latin", "output": "arabic"}
    assert resolve(["arabic", "latin"], wanted, path="x.tsv", optional=("output",)).mapping == {"word": "latin"}


def test_other_counts_are_refused_with_both_lists() -> None:
    message = error_of(lambda: resolve(["id", "wrod", "ipa"], WANTED, path="x.tsv"))
    assert message.startswith("x.tsv: no column 'word', 'phonemes' (did you mean 'wrod'?)")
    assert "the recipe wants: word, phonemes; the table has: id, wrod, ipa" in message
    assert "--columns WORD,PHONEMES" in message, "nobody knows which are meant"


def test_wrong_columns_given() -> None:
    message = error_of(lambda: resolve(["word", "ipa"], WANTED, ["wrod", "ipa"], path="x.tsv"))
    assert message == "x.tsv: no column 'wrod' (did you mean 'word'?); the table has: word, ipa"
    count = error_of(lambda: resolve(["word", "ipa"], WANTED, ["word"], path="x.tsv"))
    assert count == "--columns word: 1 columns given, 2 expected, in this order: word, output"


def test_numbered_columns_of_one_input_are_suggested_together() -> None:
    wanted = [("series", "series"), ("output", "output")]
    table = ["label", *(f"t{step}" for step in range(100))]
    assert "--columns 't*,label'" in error_of(lambda: resolve(table, wanted, path="x.csv", several={"series"}))
    assert "--columns SERIES,OUTPUT" in error_of(lambda: resolve(table, wanted, path="x.csv"))
    given = error_of(lambda: resolve(table, wanted, ["t0", "t1", "label"], path="x.csv", several={"series"}))
    assert "--columns 't*,label'" in given
    other = ["label", "time", "t0", "t1", "t2"]  # t* is more than those that are numbered
    assert "t*" not in error_of(lambda: resolve(other, wanted, path="x.csv", several={"series"}))


def test_the_given_column_that_is_missing_among_several_is_named() -> None:
    message = error_of(lambda: resolve(["word", "ipa"], WANTED, ["word, wrod", "ipa"], path="x.csv"))
    assert message.startswith("x.csv: no column 'wrod' (did you mean 'word'?)")


def test_outputs_may_be_absent_at_prediction() -> None:
    def predict(columns: list[str], given: list[str] | None = None, *, path: str = "x.tsv") -> dict[str, str]:
        return resolve(columns, WANTED, given, path=path, optional=("output",)).mapping

    assert predict(["word"]) == {"word": "word"}
    assert predict(["id", "word"]) == {"word": "word"}
    assert predict(["word", "phonemes"]) == {"word": "word", "output": "phonemes"}
    assert predict(["spelling"]) == {"word": "spelling"}
    assert predict(["a", "b"]) == {"word": "a", "output": "b"}
    assert predict(["a", "b", "c"], ["c"]) == {"word": "c"}
    assert "no column 'word'" in error_of(lambda: predict(["a", "b", "c"]))


def test_lines_of_plain_text_are_the_single_input_and_need_no_note() -> None:
    found = resolve(["text"], WANTED, path="words.txt", optional=("output",))
    assert (found.mapping, found.note) == ({"word": "text"}, None)
    assert resolve(["text"], WANTED, path="words.txt.gz", optional=("output",)).note is None
    assert "the recipe wants: premise" in error_of(lambda: resolve(["text"], PAIR, path="x.txt", optional=("output",)))


def test_a_language_model_has_an_output_alone() -> None:
    assert resolve(["text"], [("output", "text")], path="x.txt").mapping == {"output": "text"}
    assert resolve(["line"], [("output", "text")], path="x.tsv").note == "columns: 'line' (the only one)"


def test_rows_come_by_the_recipes_names_with_their_place(put: Put) -> None:
    table = read(put("x.jsonl", '{"q": "a", "n": 1}\n\n{"q": "b", "n": true}\n'))
    rows = list(resolve(table.columns, [("question", "q"), ("output", "n")], path=table.path).rows(table))
    assert rows == [{"question": "a", "output": "1"}, {"question": "b", "output": "true"}]
    assert rows[1].where == f"{table.path}, line 3"


def test_values_that_are_no_text_are_bad_rows(put: Put) -> None:
    path = put("x.jsonl", '{"q": "a", "n": "x"}\n{"q": ["b"], "n": "y"}\n{"q": "c", "n": null}\n{"q": "d", "n": " "}\n')
    wanted = [("q", "q"), ("output", "n")]
    message = error_of(lambda: list(resolve(["q", "n"], wanted, path=path).rows(read(path))))
    assert message == f"{path}, line 2, column 'q': expected text, found a list"
    table = skipping(path)
    assert [row["q"] for row in resolve(["q", "n"], wanted, path=path).rows(table)] == ["a", "d"]
    assert len(table.skipped) == 2
    filled = list(resolve(["q", "n"], wanted, path=path).rows(table, filled=("output",)))
    assert [row["q"] for row in filled] == ["a"]
    assert table.notes[0] == "x.jsonl: 1 row with an empty 'n' left out, the first at line 4"
    assert len(table.skipped) == 2


def test_rows_with_an_empty_value_are_left_out_and_counted_anew_at_each_reading(put: Put) -> None:
    table = read(put("names.tsv", "word\tsaid\na\tA\n\tB\nc\t \nd\tD\n\u00a0\tE\n"))
    found = resolve(table.columns, WANTED, path=table.path)
    for _ in range(2):
        assert [row["word"] for row in found.rows(table, filled=("word", "output"))] == ["a", "d"]
        assert table.notes == [
            "names.tsv: 2 rows with an empty 'word' left out, the first at line 3",
            "names.tsv: 1 row with an empty 'said' left out, the first at line 4",
        ]
    assert len(list(found.rows(table))) == 5
    assert not table.notes


def test_a_table_without_a_row_that_can_be_used_is_refused(put: Put) -> None:
    table = read(put("names.tsv", "word\tsaid\na\t\nb\t \n"))
    found = resolve(table.columns, WANTED, path=table.path)
    message = error_of(lambda: list(found.rows(table, filled=("word", "output"))))
    assert message == (
        f"{table.path}: no row is left to use; names.tsv: 2 rows with an empty 'said' left out, the first at line 2"
    )


def test_an_item_of_a_list_is_a_column_too(put: Put) -> None:
    path = put("x.jsonl", '{"history": ["a", "b"], "response": "c"}\n{"history": [], "response": "d"}\n')
    wanted = [("utterance", "history[-1]"), ("output", "response")]
    table = skipping(path)
    found = resolve(table.columns, wanted, path=path)
    assert found.note is None
    assert list(found.rows(table)) == [{"utterance": "b", "output": "c"}]
    assert table.skipped == [f"{path}, line 2, column 'history': no item [-1] in a list of 0"]
    given = resolve(table.columns, wanted, ["history[0]", "response"], path=path)
    assert next(given.rows(table))["utterance"] == "a"
    flat = read(put("y.tsv", "history\tresponse\nx\ty\n"))
    message = error_of(lambda: list(resolve(flat.columns, wanted, path=flat.path).rows(flat)))
    assert "y.tsv, line 2, column 'history': " in message
    stranger = resolve(["question", "answer"], wanted, path="x.csv")
    assert stranger.mapping == {"utterance": "question", "output": "answer"}
    assert resolve(["history", "reply"], wanted, path="x").mapping == {"utterance": "history[-1]", "output": "reply"}
    literal = read(put("z.tsv", "a[0]\tb\nx\ty\n"))
    assert next(resolve(literal.columns, [("q", "a[0]"), ("output", "b")], path="z").rows(literal))["q"] == "x"


def test_names_of_one_column_count_as_one() -> None:
    wanted = [("source", "text"), ("output", "text")]
    both = {"source": "words", "output": "words"}
    assert resolve(["words"], wanted, path="x.tsv").mapping == both
    assert resolve(["words", "other"], wanted, ["words"], path="x.tsv").mapping == both
    assert resolve(["a", "b"], wanted, ["a", "b"], path="x.tsv").mapping == {"source": "a", "output": "b"}
    assert "no column 'text'" in error_of(lambda: resolve(["a", "b"], wanted, path="x.tsv"))


def test_distinct_inputs_in_order_with_all_their_references() -> None:
    rows = [
        {"word": "A", "output": "AH"},
        {"word": "B", "output": "B IY"},
        {"word": "A", "output": "EY"},
        {"word": "A", "output": "AH"},
    ]
    found = group_references(rows)
    assert [question.inputs for question in found] == [{"word": "A"}, {"word": "B"}]
    assert [question.references for question in found] == [["AH", "EY", "AH"], ["B IY"]]
    assert [question.rows for question in found] == [[0, 2, 3], [1]]


def test_all_inputs_count() -> None:
    rows = [{"a": "x", "b": "y", "output": "1"}, {"a": "x", "b": "z", "output": "2"}]
    assert len(group_references(rows)) == 2


def test_without_outputs_or_without_inputs() -> None:
    assert [question.references for question in group_references([{"word": "A"}, {"word": "A"}])] == [[]]
    assert len(group_references([{"output": "same"}, {"output": "same"}])) == 2


def test_one_name_may_stand_for_several_columns(put: Put) -> None:
    table = read(put("wide.tsv", "label\tt1\tx\tt2\na\t1\t7\t2\nb\t3\t8\t4\n"))
    for column, expected in {"t*": ["1+2", "3+4"], "x, t*": ["7+1+2", "8+3+4"], "*": ["1+7+2", "3+8+4"]}.items():
        found = resolve(table.columns, [("row", column), ("output", "label")], path=table.path)
        assert found.mapping == {"row": column, "output": "label"}
        rows = replace(found, several={"row": "+".join}).rows(table)
        assert [dict(row) for row in rows] == [
            {"row": expected[0], "output": "a"},
            {"row": expected[1], "output": "b"},
        ]


def test_a_column_with_a_star_in_its_own_name_is_itself(put: Put) -> None:
    table = read(put("star.tsv", "label\tt*\tt1\na\t1\t2\n"))
    found = resolve(table.columns, [("row", "t*"), ("output", "label")], path=table.path)
    assert [dict(row) for row in replace(found, several={"row": "+".join}).rows(table)] == [{"row": "1", "output": "a"}]


@pytest.mark.parametrize(("column", "owner"), [("t*, label", "the output's"), ("t*, id", "that of 'id'")])
def test_a_column_of_another_is_not_one_of_several(put: Put, column: str, owner: str) -> None:
    table = read(put("x.tsv", "id\tt0\tt1\tlabel\n7\t1\t2\ta\n"))
    wanted = [("row", column), ("id", "id"), ("output", "label")]
    found = replace(resolve(table.columns, wanted, path=table.path), several={"row": "+".join})
    taken = column.rpartition(" ")[2]
    assert error_of(lambda: list(found.rows(table))).endswith(f"column '{taken}' is {owner}")


def test_values_that_lie_in_one_column_are_not_joined_from_several(put: Put) -> None:
    table = read(put("wide.tsv", "label\tt1\tt2\na\t1\t2\n"))
    found = resolve(table.columns, [("word", "t*"), ("output", "label")], path=table.path)
    message = error_of(lambda: list(found.rows(table)))
    assert "t1, t2" in message
    assert "'word'" in message


@pytest.mark.parametrize(("column", "missing"), [("t*", "t*"), ("x, z", "z"), ("a, z", "a, z")])
def test_a_name_for_several_columns_needs_all_of_them(column: str, missing: str) -> None:
    wanted = [("row", column), ("output", "label")]
    assert f"no column '{missing}'" in error_of(lambda: resolve(["x", "y", "label"], wanted, path="x.tsv"))
