from __future__ import annotations

import random

import jiwer
import pytest

from seq2see.errors import UserError
from seq2see.evaluation import compute
from seq2see.evaluation.strings import closest, edit_distance


def plain_edit_distance(first: list[str], second: list[str]) -> int:
    """The textbook's table, row by row."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


@pytest.mark.parametrize("seed", range(20))
def test_edit_distance_is_that_of_the_textbook(seed: int) -> None:
    chance = random.Random(seed)
    first, second = ([chance.choice(["AH0", "B", "क", "x"]) for _ in range(chance.randrange(9))] for _ in range(2))
    assert edit_distance(first, second) == plain_edit_distance(first, second)


def test_closest_reference_has_the_fewest_edits_and_of_equals_is_the_longest() -> None:
    assert closest("abc", ["xyz", "abd", "abcd"]) == (1, 4)
    assert closest("abc", ["abcd", "abd"]) == closest("abc", ["abd", "abcd"])


def test_exact_counts_any_reference() -> None:
    found = compute(["exact"], ["a b", "c", "d"], [["x", "a b"], ["C"], ["d"]])
    assert found == {"exact": pytest.approx(2 / 3)}


def test_exact_ignores_spaces_between_symbols_but_not_between_characters() -> None:
    assert compute(["exact"], ["K  AE1 T "], [["K AE1 T"]], unit="symbol") == {"exact": 1.0}
    assert compute(["exact"], ["a  b"], [["a b"]], unit="character") == {"exact": 0.0}


def test_exact_may_leave_case_out() -> None:
    assert compute(["exact", "exact_lc"], ["Ab"], [["aB"]]) == {"exact": 0.0, "exact_lc": 1.0}
    assert compute(["exact"], ["Ab"], [["aB"]], lowercase=True) == {"exact": 1.0}


def test_n_best_looks_at_the_first_n_different_hypotheses() -> None:
    given = {
        "predictions": ["a", "b", "c"],
        "references": [["a"], ["right"], ["right"]],
        "alternatives": [["x", "y"], ["b", "right"], ["u", "v", "right"]],
    }
    found = compute(["exact", "exact@1", "exact@2", "exact@3", "exact@4"], **given)
    assert list(found.values()) == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3, 1.0])


@pytest.mark.parametrize("name", ["exact@0", "exact@n", "exact@", "exact@-1"])
def test_n_best_needs_a_number(name: str) -> None:
    with pytest.raises(UserError, match=f"metric '{name}'.*exact@5"):
        compute([name], ["a"], [["a"]], alternatives=[["a"]])


def test_n_best_needs_alternatives() -> None:
    with pytest.raises(UserError, match="'exact@5' needs alternatives"):
        compute(["exact@5"], ["a"], [["a"]])


def test_error_rates_agree_with_jiwer() -> None:
    predictions = ["the cat sat on a mat", "hello word", "one two three four", "नमस्ते दुनिया"]
    references = ["the cat sat on the mat", "hello world again", "one two four", "नमस्ते सारी दुनिया"]
    found = compute(["wer", "cer"], predictions, [[text] for text in references], unit="word")
    assert found["wer"] == pytest.approx(jiwer.wer(references, predictions))
    assert found["cer"] == pytest.approx(jiwer.cer(references, predictions))


def test_symbol_error_rate_counts_phonemes_and_sums_before_dividing() -> None:
    found = compute(["cer"], ["K AE1 T", "D AO1"], [["K AA1 T", "K AA1 T S"], ["D AO1 G Z"]], unit="symbol")
    assert found["cer"] == pytest.approx((1 + 2) / (3 + 4))


def test_error_rates_of_empty_texts() -> None:
    assert compute(["cer", "wer"], [""], [["ab c"]]) == {"cer": 1.0, "wer": 1.0}
    assert compute(["cer", "wer"], [""], [[""]]) == {"cer": 0.0, "wer": 0.0}
    assert compute(["cer", "wer"], ["a b", "c"], [[""], ["c"]]) == {"cer": 3.0, "wer": 2.0}
    assert compute(["wer"], ["a b"], [[""]]) == {"wer": 2.0}


def test_recognition_rates_are_what_error_rates_leave() -> None:
    found = compute(["cer", "crr", "wer", "wrr"], ["ab c", "xyz"], [["ab d"], ["x"]], unit="character")
    assert found["crr"] == pytest.approx(1 - found["cer"]) == pytest.approx(1 - 3 / 5)
    assert found["wrr"] == pytest.approx(1 - found["wer"]) == pytest.approx(1 - 2 / 3)
    assert compute(["crr"], ["abc"], [["x"]])["crr"] == -2.0
