"""Blocks of plain lines are numbered as arrays, with the results of reading their values one by one."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from seq2see.data import blocks, plain_blocks
from seq2see.data.blocks import ALL, ColumnParts, EncodedBlock, Encoder
from seq2see.data.formats import Layout
from seq2see.data.plain_blocks import PlainBlock

PAIRS = Layout("fields", [0, 1], "\t", 2)
WORDS = [ColumnParts("source", "word"), ColumnParts("", "word", hashed=False)]
MOST = 1 << 20
LIMITS = {"limit": ALL // 50, "bound": ALL // 3}


def assert_same(first: EncodedBlock | None, second: EncodedBlock | None) -> None:
    assert first is not None
    assert second is not None
    for name, value in vars(second).items():
        found = getattr(first, name)
        found, value = (one if isinstance(one, list) else [one] for one in (found, value))
        assert len(found) == len(value), name
        for one, other in zip(found, value, strict=True):
            assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other, name
            assert not isinstance(one, np.ndarray) or one.dtype == other.dtype, name


def assert_equal_to_values(contents: list[bytes], columns: list[ColumnParts], layout: Layout, *, plain: int) -> None:
    """Blocks of lines, and the same blocks by their values; plain: how many of them are read as arrays."""
    lines, by_value = Encoder(columns), Encoder(columns)
    for content in contents:
        values = layout.split(content, MOST)
        assert values is not None
        assert_same(lines.encode_lines(content, layout, most=MOST, **LIMITS), by_value.encode(values, **LIMITS))
    assert sum(PlainBlock.of(content, layout, MOST) is not None for content in contents) == plain


def made(seed: int, *, rows: int = 200, vocabulary: int = 500, letters: str = "abcdefgh", most: int = 20) -> bytes:
    """Rows of one to four words of one to `most` letters on each side."""
    source = random.Random(seed)
    words = ["".join(source.choices(letters, k=source.randint(1, most))) for _ in range(vocabulary)]
    sides = (" ".join(source.choices(words, k=source.randint(1, 4))) for _ in range(2 * rows))
    return "".join([f"{side}\t{next(sides)}\n" for side in sides]).encode()


def test_blocks_of_plain_lines_give_what_their_values_give() -> None:
    contents = [made(seed, vocabulary=100 << 2 * seed, rows=50 << 2 * seed) for seed in range(4)]
    assert_equal_to_values([*contents, *contents], WORDS, PAIRS, plain=8)


@pytest.mark.parametrize("letters", ["äößé", "абвгд", "कखगघ", "a\U0001f600"])
def test_words_outside_ascii(letters: str) -> None:
    assert_equal_to_values([made(1, letters=letters), made(2, letters=f"{letters}abc")], WORDS, PAIRS, plain=2)


def test_blocks_that_are_not_plain_share_the_numbers_of_those_that_are() -> None:
    odd = [
        b"a  b\tc\n",
        b" a\tb\n",
        b"a \tb\n",
        b"a\xc2\xa0b\tc\n",
        "e\u0301\ta\n".encode(),
        b"a\tb\n\tc\n",
        b"\x00\tb\n",
    ]
    contents = [content for one in odd for content in (made(3), one + made(4))]
    assert_equal_to_values(contents, WORDS, PAIRS, plain=len(odd))


def test_a_last_line_without_an_end() -> None:
    assert_equal_to_values([b"a b\tc", b"a b\tc\n"], WORDS, PAIRS, plain=2)


@pytest.mark.parametrize(
    ("columns", "layout"),
    [
        ([WORDS[0], ColumnParts("", "value", hashed=False)], Layout("fields", [1, 0], "\t", 2)),
        (
            [WORDS[0], ColumnParts("b", "word"), ColumnParts("", "value", hashed=False)],
            Layout("fields", [0, 1, 1], "\t", 2),
        ),
        ([WORDS[0], WORDS[0]], Layout("fields", [0, 1], "\t", 2, quoted=True)),
        ([ColumnParts("", "word", hashed=False)], Layout("fields", [1], "\t", 2)),
    ],
)
def test_labels_and_other_columns(columns: list[ColumnParts], layout: Layout) -> None:
    assert_equal_to_values([made(5), made(6)], columns, layout, plain=2)


def test_other_delimiters_and_lines_of_text() -> None:
    content = made(7)
    assert_equal_to_values([content.replace(b"\t", b",")], WORDS, Layout("fields", [0, 1], ",", 2), plain=1)
    assert_equal_to_values(
        [content.replace(b" ", b"_").replace(b"\t", b" ")], WORDS, Layout("fields", [0, 1], " ", 2), plain=1
    )
    assert_equal_to_values(
        [content.replace(b"\t", b" ")], [ColumnParts("", "word", hashed=False)], Layout("lines", ["text"]), plain=1
    )


@pytest.mark.parametrize(
    "content", [b"", b"a\n", b"a\tb\tc\n", b"a\tb\nc\n\td\n", b"a\t\xff\n", b'a\t"b"\n', b"a\rb\tc\n"]
)
def test_what_is_not_plain(content: bytes) -> None:
    assert PlainBlock.of(content, Layout("fields", [0, 1], "\t", 2, quoted=True), MOST) is None


def test_long_blocks_are_left_to_the_reading_of_values() -> None:
    assert PlainBlock.of(b"a\tb\n", PAIRS, 3) is None


def test_a_process_that_begins_anew_numbers_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_PARTS", 300)
    contents = [made(seed) for seed in range(8)]
    encoder = Encoder(WORDS)
    encoded = [encoder.encode_lines(content, PAIRS, most=MOST, **LIMITS) for content in contents]
    assert [block.anew for block in encoded if block is not None].count(True) > 1
    assert_equal_to_values(contents, WORDS, PAIRS, plain=8)


def test_all_spaces_outside_ascii_are_known() -> None:
    spaces = {chr(code) for code in range(128, sys.maxunicode + 1) if chr(code).isspace()}
    assert set(plain_blocks._WIDE_SPACES) == spaces
