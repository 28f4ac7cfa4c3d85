"""CIDEr-D against its equations: once by hand, once written over dense NumPy vectors."""

from __future__ import annotations

from itertools import product
from math import exp, log

import numpy as np
import pytest

from seq2see.evaluation import Rows, compute, lookup, measure


def by_arrays(rows: Rows) -> float:
    """The equations over one vector per text, a number for every n-gram of the whole set."""
    texts = [text.split() for row in zip(rows.predictions, rows.references, strict=True) for text in (row[0], *row[1])]
    total = 0.0
    for n in range(1, 5):
        grams = sorted({tuple(text[i : i + n]) for text in texts for i in range(len(text) - n + 1)})

        def counts(text: str, grams: list[tuple[str, ...]] = grams, n: int = n) -> np.ndarray:
            words = text.split()
            here = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
            return np.array([here.count(gram) for gram in grams], dtype=float)

        documents = np.array([np.sum([counts(text) for text in row], axis=0) > 0 for row in rows.references])
        idf = np.log(len(rows)) - np.log(np.maximum(documents.sum(0), 1))
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            for reference in references:
                c, s = counts(prediction) * idf, counts(reference) * idf
                apart = len(prediction.split()) - len(reference.split())
                below = np.linalg.norm(c) * np.linalg.norm(s)
                cosine = np.minimum(c, s) @ s / below if below else 0.0
                total += 10 / 4 * np.exp(-(apart**2) / 72) * cosine / len(references)
    return total / len(rows)


def test_one_worked_by_hand() -> None:
    """Two rows of one reference each; `a` stands in both and weighs nothing, all else log 2."""
    found = compute(["cider"], ["a b b", "x"], [["a b c"], ["a d"]])["cider"]
    w = log(2)
    unigrams = (w * w) / (2 * w * (2 * w * w) ** 0.5)  # min(2, 1) of b; |(b b)| = 2 w, |(b, c)| = w sqrt 2
    bigrams = (w * w) / ((2 * w * w) ** 0.5 * (2 * w * w) ** 0.5)  # `a b` is shared; `b b` and `b c` are not
    assert found == pytest.approx(10 * (unigrams + bigrams) / 4 / 2)


def test_lengths_apart_cost_by_a_gaussian() -> None:
    near = compute(["cider"], ["b c", "x"], [["b c"], ["y"]])["cider"]
    far = compute(["cider"], ["b c q q q q q q", "x"], [["b c"], ["y"]])["cider"]
    assert near == pytest.approx(10 * 2 / 4 / 2)  # trigrams and longer are not there to agree on
    b, q = 1.0, 6.0
    unigrams = 2 / ((2 * b + q * q) ** 0.5 * 2**0.5)
    bigrams = 1 / (1 + 1 + 25) ** 0.5
    assert far == pytest.approx(10 * exp(-36 / 72) * (unigrams + bigrams) / 4 / 2)


def test_it_is_what_the_equations_say_over_arrays(corpus: Rows) -> None:
    assert measure(["cider"], corpus)["cider"] == pytest.approx(by_arrays(corpus))
    assert by_arrays(corpus) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_random_texts_too(seed: int) -> None:
    chance = np.random.default_rng(seed)
    words = [" ".join(pair) for pair in product("abc", "de")]

    def text() -> str:
        return " ".join(chance.choice(words, chance.integers(0, 6)))

    rows = Rows([text() for _ in range(12)], [[text() for _ in range(chance.integers(1, 4))] for _ in range(12)])
    assert measure(["cider"], rows)["cider"] == pytest.approx(by_arrays(rows))


def test_case_and_punctuation_may_be_left_out() -> None:
    rows = Rows(["A dog .", "Two cats ran !"], [["a dog runs"], ["two cats ran"]])
    plain, lower, cased = (measure([name], rows)[name] for name in ("cider_plain", "cider_lc", "cider"))
    assert plain > lower > cased
    assert lookup("cider_plain").show(1.23456) == "1.235"


def test_saying_it_twice_does_not_help() -> None:
    references = [["a red ball"], ["the blue sky"]]
    once = compute(["cider"], ["a red ball", "no"], references)["cider"]
    twice = compute(["cider"], ["a red ball red ball", "no"], references)["cider"]
    assert twice < once


def test_alone_or_empty() -> None:
    assert compute(["cider"], ["a b"], [["a b"]])["cider"] == 0.0
    assert compute(["cider"], ["", ""], [["a"], [""]])["cider"] == 0.0
    assert compute(["cider"], ["ab", "cd"], [["ab"], ["cd"]], unit="character")["cider"] == pytest.approx(5.0)
