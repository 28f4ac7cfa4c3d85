"""Symbols, their ids, and the file they are kept in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from seq2see.data.vocabulary import SPECIALS, Vocabulary
from tests.data.helpers import error_of

AWKWARD = [" ", "\t", "\n", "\r", "\\", "\\n", "\u2028", "\x85", "# symbols", "é", "a b", '"']


def test_special_symbols_come_first_then_the_most_frequent() -> None:
    vocabulary = Vocabulary.build(Counter({"b": 2, "a": 2, "c": 5}))
    assert vocabulary.symbols == [*SPECIALS, "c", "a", "b"]
    assert vocabulary.encode(["a", "zebra", "c"]) == [5, 1, 4]
    assert vocabulary.decode([4, 1]) == ["c", "<unk>"]


def test_limits() -> None:
    counts = Counter({"a": 5, "b": 3, "c": 1})
    assert Vocabulary.build(counts, size=2).symbols[4:] == ["a", "b"]
    assert Vocabulary.build(counts, min_count=2).symbols[4:] == ["a", "b"]
    assert Vocabulary.build(counts, specials=False).symbols == ["a", "b", "c"]


def test_the_order_of_the_text_does_not_matter() -> None:
    assert Vocabulary.build(Counter("abcabc")) == Vocabulary.build(Counter("cbacba"))


def test_text_cannot_smuggle_in_special_symbols() -> None:
    vocabulary = Vocabulary.build(Counter(["<eos>", "<pad>", "a"]))
    assert len(vocabulary) == 5
    assert vocabulary.encode(["<eos>", "<pad>", "a"]) == [1, 1, 4]


@pytest.mark.parametrize("specials", [True, False])
def test_saved_and_loaded_it_is_the_same_whatever_the_symbols(tmp_path: Path, specials: bool) -> None:
    vocabulary = Vocabulary.build({symbol: i + 1 for i, symbol in enumerate(AWKWARD)}, specials=specials)
    vocabulary.save(tmp_path / "v.txt")
    again = Vocabulary.load(tmp_path / "v.txt", specials=specials)
    assert again == vocabulary
    assert again.counts == vocabulary.counts


def test_the_file_can_be_read_by_a_person(tmp_path: Path) -> None:
    Vocabulary.build({"the": 10, "\n": 3}).save(tmp_path / "v.txt")
    lines = (tmp_path / "v.txt").read_text().splitlines()
    assert lines == ["# symbols\t6", "<pad>\t0", "<unk>\t0", "<sos>\t0", "<eos>\t0", "the\t10", "\\n\t3"]


def test_damage_is_told_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    assert f"{path}: " in error_of(lambda: Vocabulary.load(path))
    Vocabulary.build(Counter("some letters")).save(path)
    whole = path.read_bytes()

    def damaged(content: bytes) -> str:
        path.write_bytes(content)
        return error_of(lambda: Vocabulary.load(path))

    cut = damaged(b"".join(whole.splitlines(keepends=True)[:-2]))
    assert "symbols announced" in cut
    assert "cut short" in cut
    assert "cut short" in damaged(whole[:-1])
    assert "line 1: damaged vocabulary: expected '# symbols<tab>number', found ''" in damaged(b"")
    assert "line 3: damaged vocabulary: expected 'symbol<tab>count'" in damaged(whole.replace(b"<unk>\t0", b"<unk>"))
    assert "the first symbols must be <pad> <unk> <sos> <eos>" in damaged(whole.replace(b"<unk>", b"<uno>"))
    assert "not UTF-8 at byte" in damaged(whole + b"\xff")
    assert "line 6: damaged vocabulary: unknown escape '\\q'" in damaged(whole.replace(b"\ne\t3", b"\n\\q\t3"))
    assert "['s']" in damaged(whole.replace(b"m\t", b"s\t"))
