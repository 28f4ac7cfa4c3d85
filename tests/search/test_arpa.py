"""N-gram models: back-off by hand, and files that strangers wrote."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.search.arpa import NgramModel
from seq2see.search.language_model import log_probabilities

FILE = """made by hand

\\data\\
ngram 1=5
ngram 2=4
ngram 3=2

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.5
-0.7\t</s>
-0.3\ta\t-0.2
-0.6 b -0.4

\\2-grams:
-0.1\t<s> a\t-0.05
-0.25\ta b
-0.35\tb a\t-0.15
-0.45\tb </s>

\\3-grams:
-0.01\t<s> a b
-0.02\tb a b

\\end\\
"""


@pytest.fixture
def model(tmp_path: Path) -> NgramModel:
    path = tmp_path / "toy.arpa"
    path.write_text(FILE, encoding="utf-8")
    return NgramModel.load(path)


# P(symbol | context) in log10, with the back-off weights that lead there
BY_HAND = {
    ("<s>", "a"): -0.1,  # listed
    ("<s>", "b"): -0.5 - 0.6,  # b(<s>) P(b)
    ("<s>", "?"): -0.5 - 1.0,  # <unk>
    ("<s>", "a", "b"): -0.01,  # listed
    ("<s>", "a", "a"): -0.05 - 0.2 - 0.3,  # b(<s> a) b(a) P(a)
    ("b", "a", "b"): -0.02,
    ("b", "a", "</s>"): -0.15 - 0.2 - 0.7,
    ("a", "b", "a"): 0.0 - 0.35,  # a b has no weight: 1
    ("a", "b", "</s>"): -0.45,
    ("a", "a", "b"): -0.25,  # a a is not listed: b = 1
    ("?", "a", "b"): -0.25,
    ("a", "?", "b"): -0.6,
}


@pytest.mark.parametrize("ngram", BY_HAND, ids=" ".join)
def test_what_is_not_listed_is_backed_off(model: NgramModel, ngram: tuple[str, ...]) -> None:
    special = {"<s>": model.start, "</s>": model.end}
    *context, last = (special.get(symbol, model.id_of(symbol)) for symbol in ngram)
    assert float(model.after(tuple(context))[last]) == pytest.approx(BY_HAND[ngram] * math.log(10), rel=1e-5)


def test_a_text_is_scored_from_its_beginning_to_its_end(model: NgramModel) -> None:
    a, b = model.id_of("a"), model.id_of("B")
    # <s> a | <s> a b | a b a: b(a b) = 1, P(a | b) | b a </s>; and the empty text: b(<s>) P(</s>)
    total = -0.1 - 0.01 - 0.35 + (-0.15 - 0.2 - 0.7)
    found = log_probabilities(model, [[], [a, b, a], [b]])
    assert found == pytest.approx([x * math.log(10) for x in (-1.2, total, -1.1 - 0.45)], rel=1e-5)


def test_hypotheses_are_selected_with_their_contexts(model: NgramModel) -> None:
    a, b = model.id_of("a"), model.id_of("b")
    steps = model.steps(2)
    steps.begin(2)
    steps.step(np.full(4, model.start))
    after = steps.step(np.array([a, b, a, b]))[0]
    np.testing.assert_array_equal(after[0], after[2])
    assert (after[0] != after[1]).any()
    steps.select(np.array([3, 2]), np.array([1]))
    last = steps.step(np.array([a, b]))[0]
    np.testing.assert_array_equal(last[0], model.after((b, a)))
    np.testing.assert_array_equal(last[1], model.after((a, b)))


def test_gzip_unigrams_and_files_without_unk(tmp_path: Path) -> None:
    path = tmp_path / "small.arpa.gz"
    text = "\\data\\\nngram 1=3\n\\1-grams:\n-0.5\t</s>\n-0.2\t<space>\n-0.3\té\n\\end\\\n"
    path.write_bytes(gzip.compress(text.encode()))
    model = NgramModel.load(path)
    assert model.start == -1
    found = log_probabilities(model, [[model.id_of(" "), model.id_of("é")], [model.id_of("x")]])
    assert found == pytest.approx([-1.0 * math.log(10), -100.5 * math.log(10)], rel=1e-5)


HOSTILE = {
    "empty": ("", "line 0"),
    "no header": ("hello\n" * 2000, "line 1,000:"),
    "ends in the header": ("\\data\\\nngram 1=3\n", "line 2"),
    "more than the file can hold": ("\\data\\\nngram 1=99999999\n\n\\1-grams:\n", "line 3: 99,999,999"),
    "more than is read": ("\\data\\\nngram 1=9999999999999\n\n", "line 2:"),
    "a negative number": ("\\data\\\nngram 1=-1\n\n", "line 2:"),
    "no order 1": ("\\data\\\nngram 2=1\n\n", "line 2:"),
    "fewer than announced": (FILE.replace("ngram 3=2", "ngram 3=3"), "line 24:"),
    "more than announced": (FILE.replace("ngram 3=2", "ngram 3=1"), "line 23:"),
    "cut short": (FILE[:120], "line"),
    "not a number": (FILE.replace("-0.35", "much"), "line 18:"),
    "not finite": (FILE.replace("-0.35", "nan"), "line 18:"),
    "above 1": (FILE.replace("-0.35", "0.35"), "line 18:"),
    "a symbol too many": (FILE.replace("a b\n-0.35", "a b b b\n-0.35"), "line 17:"),
    "an unknown symbol": (FILE.replace("-0.25\ta b", "-0.25\ta c"), "line 17:"),
    "twice": (FILE.replace("-0.25\ta b", "-0.25\tb a"), "line 18:"),
    "a unigram twice": (FILE.replace("-0.3\ta", "-0.3\tb"), "line 13:"),
    "without its beginning": (FILE.replace("-0.02\tb a b", "-0.02\ta a b"), "line 23:"),
    "no end": (FILE.replace("</s>", "end"), "</s>"),
    "binary": ("\\data\\\0", "byte 7"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_is_wrong_is_refused_with_its_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.arpa"
    text, message = HOSTILE[case]
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message) as refused:
        NgramModel.load(path)
    assert str(refused.value).startswith(str(path))


def test_a_file_that_is_absent_or_not_packed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        NgramModel.load(tmp_path / "absent.arpa")
    path = tmp_path / "plain.arpa.gz"
    path.write_text(FILE, encoding="utf-8")
    with pytest.raises(UserError, match="gzip"):
        NgramModel.load(path)
