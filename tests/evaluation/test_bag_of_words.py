from __future__ import annotations

import math

import pytest

from seq2see.errors import UserError
from seq2see.evaluation import BagOfWords, baseline_from_dict
from seq2see.evaluation.metrics import Rows

ROWS = [("good good film", "yes"), ("bad film", "no"), ("bad bad plot", "no")]


def test_it_is_naive_bayes_to_the_digit() -> None:
    model = BagOfWords.fit(ROWS)
    assert model.labels == {"no": 2, "yes": 1}
    words, text = 4, "good plot"
    no = math.log(2 / 3) + math.log((0 + 1) / (5 + words)) + math.log((1 + 1) / (5 + words))
    yes = math.log(1 / 3) + math.log((2 + 1) / (3 + words)) + math.log((0 + 1) / (3 + words))
    assert model.scores({"good": 1, "plot": 1}) == pytest.approx([no, yes])
    assert model.predict([text, "Bad!", "unheard of"]) == ["yes" if yes > no else "no", "no", "no"]


def test_it_goes_into_a_folder_and_comes_back() -> None:
    model = BagOfWords.fit(ROWS)
    again = baseline_from_dict(model.to_dict())
    rows = Rows(["", ""], [["yes"], ["no"]], inputs=["good", "bad film"])
    assert again.measure(["accuracy", "macro_f1", "perplexity"], rows) == {"accuracy": 1.0, "macro_f1": 1.0}


def test_with_many_labels_fewer_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file has a count of every word for every label, and has to stay one that can be read."""
    monkeypatch.setattr("seq2see.evaluation.baselines.MOST_COUNTS", 5)
    model = BagOfWords.fit(ROWS)
    assert len(model.counts) == 2
    assert set(model.counts) < set(" ".join(text for text, _ in ROWS).split())


def test_it_needs_rows() -> None:
    with pytest.raises(UserError, match="needs training rows"):
        BagOfWords.fit([])
