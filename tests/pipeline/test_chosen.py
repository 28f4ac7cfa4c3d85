"""Which rows a run is judged by, where they are too many: no matter of their order."""

from __future__ import annotations

from itertools import product

from seq2see.api import Model
from seq2see.pipeline.evaluator import choose_questions, evaluate_model

WORDS = ["".join(letters) for letters in product("abcd", "aeio", "xyzw")]
ROWS = [{"source": word, "output": word.upper()} for word in WORDS]


def asked(rows: list[dict[str, str]], most: int) -> list[str]:
    return [question.inputs["source"] for question in choose_questions(rows, most)]


def test_a_sorted_table_is_not_judged_by_its_beginning() -> None:
    chosen = asked(ROWS, 16)
    assert len(set(chosen)) == 16
    assert {word[0] for word in chosen} == set("abcd")


def test_the_order_of_the_table_does_not_matter() -> None:
    assert asked(ROWS, 16) == asked(ROWS[::-1], 16)
    assert asked(ROWS, 0) == asked(ROWS, len(ROWS)) == WORDS


def test_texts_without_inputs_are_chosen_by_the_text() -> None:
    texts = [{"output": word} for word in WORDS]

    def chosen(rows: list[dict[str, str]]) -> list[str]:
        return [question.references[0] for question in choose_questions(rows, 5)]

    assert chosen(texts) == chosen(texts[::-1]) != WORDS[:5]


def test_the_same_measures_of_a_table_and_its_reverse(model: Model) -> None:
    one, other = (evaluate_model(model.bundles, rows, most=7) for rows in (ROWS, ROWS[::-1]))
    assert [question.inputs for question in one.questions] == [question.inputs for question in other.questions]
    assert one.report.metrics == other.report.metrics
    assert one.report.rows == 7
