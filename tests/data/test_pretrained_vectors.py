"""Vectors from text files of other programs."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from seq2see.data.pretrained_vectors import read_vectors
from seq2see.data.vocabulary import Vocabulary
from tests.data.helpers import Put, error_of

VOCABULARY = Vocabulary(["the", "Dog", "zebra"])
GLOVE = "the 0.5 1\ndog -1 2e-1\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("glove.txt", GLOVE),
        ("word2vec.txt", "2 2\n" + GLOVE),
        ("fasttext.vec", "2 2\n" + GLOVE.replace("\n", " \n")),
        ("tabs.txt", GLOVE.replace(" ", "\t")),
        ("glove.txt.gz", gzip.compress(GLOVE.encode())),
    ],
)
def test_files_of_all_kinds(put: Put, name: str, content: str | bytes) -> None:
    vectors = read_vectors(put(name, content), VOCABULARY)
    assert vectors.matrix.dtype == np.float32
    expected = np.zeros((7, 2))
    expected[4], expected[5] = [0.5, 1], [-1, 0.2]
    np.testing.assert_allclose(vectors.matrix, expected, rtol=1e-6)
    assert vectors.known.tolist() == [False] * 4 + [True, True, False]
    assert (vectors.matched, vectors.total, vectors.coverage) == (2, 3, 2 / 3)
    assert vectors.note == "vectors for 2 of 3 symbols (66.7%)"


def test_a_symbols_own_spelling_wins_over_its_lower_case_form(put: Put) -> None:
    for content in ("dog 1 1\nDog 2 2\n", "Dog 2 2\ndog 1 1\n"):
        assert read_vectors(put("v.txt", content), VOCABULARY).matrix[5].tolist() == [2, 2]
    both = read_vectors(put("v.txt", "dog 1 1\n"), Vocabulary(["dog", "DOG"]))
    assert both.matrix[4:].tolist() == [[1, 1], [1, 1]]


def test_the_first_of_two_vectors_counts(put: Put) -> None:
    assert read_vectors(put("v.txt", "the 1 1\nthe 2 2\n"), VOCABULARY).matrix[4].tolist() == [1, 1]


def test_words_may_hold_spaces(put: Put) -> None:
    vectors = read_vectors(put("v.txt", "the 1 2\n. . . 3 4\n"), Vocabulary(["the", ". . ."]))
    assert vectors.matrix[5].tolist() == [3, 4]


def test_rows_without_a_vector_are_drawn_like_those_with_one(put: Put) -> None:
    path = put("v.txt", GLOVE)
    one, other = (read_vectors(path, VOCABULARY, generator=np.random.default_rng(3)).matrix for _ in range(2))
    assert np.array_equal(one, other)
    assert one[6].any()
    assert not one[0].any(), "<pad> stays zero"
    assert not read_vectors(path, VOCABULARY).matrix[6].any()


def test_what_is_wrong_is_told_with_the_line(put: Put) -> None:
    def reading(content: str | bytes) -> str:
        path = put("v.txt", content)
        return error_of(lambda: read_vectors(path, VOCABULARY))

    assert "v.txt, line 3: 1 numbers found, 2 expected" in reading("a 1 2\nthe 1 2\ndog 3\n")
    assert "v.txt, line 2: 2 numbers found, 3 expected" in reading("1 3\nthe 1 2\n")
    assert "v.txt, line 2: 'x' is not a number" in reading("a 1 2\nthe 1 x\n")
    assert "v.txt, line 1: " in reading("the 1 nan\n")
    assert "v.txt: " in reading("")
    assert "3 symbols" in reading("cat 1 2\n")
    assert "a binary file" in reading(b"3 2\nthe \x00\x01\x02")
    assert "no such file" in error_of(lambda: read_vectors("nowhere.vec", VOCABULARY))
