"""The output of the most similar row: by an independent formula, from a bounded sample, beside the first baseline."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.evaluation import Rows, Unigram, evaluate
from seq2see.evaluation.baselines import Copy, Frequent, Nearest

WORDS = ("where", "is", "mary", "marie", "what", "colour", "has", "the", "sky", "skyline")


def texts(number: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(2, 6))) for _ in range(number)]


def vectors(rows: list[str], fitted: list[str]) -> np.ndarray:
    """(rows, features): unit vectors of words and character trigrams by the formula of the docstring, dense."""

    def counts(text: str) -> Counter[str]:
        edged = [f"[{word}]" for word in text.split()]
        grams = [word[i : i + 3] for word in edged for i in range(len(word) - 2)]
        return Counter([f"word {word}" for word in text.split()] + grams)

    known = sorted({one for text in fitted for one in counts(text)})
    number = {one: sum(one in counts(text) for text in fitted) for one in known}
    made = np.array(
        [
            [
                (1 + math.log(counts(row)[one])) * math.log(1 + len(fitted) / number[one]) if counts(row)[one] else 0.0
                for one in known
            ]
            for row in rows
        ]
    )
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_it_is_the_row_of_the_largest_cosine() -> None:
    fitted, asked = sorted(set(texts(40, 1))), texts(20, 2)
    model = Nearest(fitted, [f"answer {number}" for number in range(len(fitted))])
    similar = vectors(asked, fitted) @ vectors(fitted, fitted).T
    for row, answer in enumerate(model.predict(asked)):
        assert similar[row][int(answer.split()[1])] == pytest.approx(similar[row].max())


def test_a_text_that_shares_nothing_has_an_answer_too() -> None:
    assert Nearest(["a", "b"], ["x", "y"]).predict(["", "zzz"]) == ["x", "x"]


def test_a_large_table_leaves_a_sample_that_does_not_depend_on_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2see.evaluation.baselines.MOST_ROWS", 10)
    rows = [(f"text {number}", str(number)) for number in range(50)]
    model = Nearest.fit(rows)
    assert len(model.texts) == 10
    assert Nearest.fit(rows[::-1]).to_dict() == model.to_dict()
    monkeypatch.setattr("seq2see.evaluation.baselines.MOST_CHARACTERS", 60)
    assert sum(map(len, Nearest.fit(rows).texts + Nearest.fit(rows).answers)) <= 60
    monkeypatch.setattr("seq2see.evaluation.baselines.LONGEST_TEXT", 20)
    assert Nearest.fit([("long " * 100, " its label "), ("short", "x")]).predict(["long"]) == ["its label"]
    with pytest.raises(UserError):
        Nearest.fit([])


def test_all_text_inputs_count() -> None:
    model = Nearest(["a story\nwhere is it?", "a story\nwho is it?"], ["here", "me"])
    rows = Rows(["?"], [["me"]], inputs=["a story"], joined_inputs=["a story\nwho is it?"])
    assert model.measure(["exact"], rows) == {"exact": 1.0}


def test_further_baselines_stand_beside_the_first() -> None:
    rows = Rows(["b"], [["b"]], inputs=["a"], targets=[["b", "<eos>"]])
    baselines = [Copy(), Nearest(["a"], ["b"]), Frequent("c"), Unigram({"b": 1})]
    report = evaluate(["exact"], rows, baselines=baselines)
    assert report.baseline == {"exact": 0.0}
    assert report.further == {"nearest": {"exact": 1.0}, "frequent": {"exact": 0.0}}
    assert report.to_dict()["further_baselines"] == report.further
    assert report.text().count("1.0000") == 2
    assert "further_baselines" not in evaluate(["exact"], rows, baselines=baselines, further=False).to_dict()
