from __future__ import annotations

import pytest
from rouge_score import rouge_scorer, tokenize

from seq2see.evaluation import Rows, compute, measure
from seq2see.evaluation.ngrams import RougeWords

NAMES = ["rouge1", "rouge2", "rougeL"]


def test_rouge_is_the_mean_of_the_best_reference_of_each_row(corpus: Rows) -> None:
    scorer = rouge_scorer.RougeScorer(NAMES)
    found = measure(NAMES, corpus)
    for name in NAMES:
        best = [
            max(scorer.score(text, said)[name].fmeasure for text in texts)
            for said, texts in zip(corpus.predictions, corpus.references, strict=True)
        ]
        assert found[name] == pytest.approx(100 * sum(best) / len(best))


def test_rouge_by_hand() -> None:
    found = compute(NAMES, ["the cat sat"], [["the cat on the mat sat"]])
    assert found["rouge1"] == pytest.approx(100 * 2 * 3 / (3 + 6))
    assert found["rouge2"] == pytest.approx(100 * 2 * 1 / (2 + 5))
    assert found["rougeL"] == pytest.approx(100 * 2 * 3 / (3 + 6))


@pytest.mark.parametrize("text", ["Don't stop: it's 3.5 km (or so)!", "A_b c-d", "", "...", "UPPER  lower\ttab"])
def test_words_of_english_are_the_librarys(text: str) -> None:
    assert RougeWords().tokenize(text) == tokenize.tokenize(text, None)


def test_other_scripts_have_words_too() -> None:
    assert compute(NAMES, ["यह एक हिन्दी वाक्य है।"], [["यह एक हिन्दी वाक्य है"]]) == pytest.approx(dict.fromkeys(NAMES, 100))
    assert RougeWords().tokenize("Äpfel, élan") == ["äpfel", "élan"]
    assert RougeWords().tokenize("हिन्दी वाक्य।") == ["हिन्दी", "वाक्य"]


def test_rouge_of_empty_texts_is_nothing() -> None:
    assert compute(NAMES, ["", "a"], [["a b"], [""]]) == dict.fromkeys(NAMES, 0.0)
