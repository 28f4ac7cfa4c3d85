"""`KEY=A,B`: values between commas, every value with every other."""

from __future__ import annotations

import pytest

from seq2see.errors import UserError
from seq2see.training.variants import variants


def test_all_values_meet_all_others_in_the_order_given() -> None:
    made = variants(["attention.score=dot,none", "decoder.size=8,16"])
    assert [one.overrides for one in made] == [
        ["attention.score=dot", "decoder.size=8"],
        ["attention.score=dot", "decoder.size=16"],
        ["attention.score=none", "decoder.size=8"],
        ["attention.score=none", "decoder.size=16"],
    ]


def test_a_comma_inside_brackets_or_quotes_parts_nothing() -> None:
    made = variants(["encoder={size: 8, layers: 2},{size: 4}", "attention.over=[a, b],a", 'task="x, y",z'])
    assert len(made) == 8
    assert made[0].overrides == ["encoder={size: 8, layers: 2}", "attention.over=[a, b]", 'task="x, y"']


def test_names_are_short_where_that_is_clear() -> None:
    assert str(variants(["attention.score=dot,none"])[1]) == "none"
    assert str(variants(["encoder.size=8", "decoder.size=9"])[0]) == "encoder.size 8, decoder.size 9"


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ([], r"nothing varies: give --vary KEY=A,B"),
        (["attention.score"], r"--vary attention.score: not KEY=A,B"),
        (["=dot"], r"--vary =dot: not KEY=A,B"),
        (["attention.score=dot,,none"], r"a value is missing"),
        (["attention.score="], r"a value is missing"),
        (["attention.score=dot,none,dot"], r"'dot' is given twice"),
        (["decoder.size=1,2", "decoder.size=3,4"], r"decoder.size varies already"),
        (["decoder.size=1,2", "decoder={size: 3}"], r"decoder.size varies already"),
        (["decoder={size: 3}", "decoder.size=1,2"], r"decoder varies already"),
    ],
)
def test_what_is_no_variant_is_refused(vary: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        variants(vary)
