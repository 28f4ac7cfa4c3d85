"""Text to symbols and back, for every kind of token."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from seq2see.data.tables import read
from seq2see.data.tokens import LearnedSplitter, make_splitter, normalise, splitters
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError
from tests.data.helpers import error_of

CORPUS = ["the lower the slower, the newest!", "lowest and newest; wide and wider", "über naïve Größe"] * 20


def learned(*, size: int = 120, texts: list[str] = CORPUS) -> LearnedSplitter:
    splitter = make_splitter("bpe")
    assert isinstance(splitter, LearnedSplitter)
    splitter.learn(texts, size=size, min_count=1)
    return splitter


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("Don't stop (at 3.5 km)!", ["Don't", "stop", "(", "at", "3.5", "km", ")", "!"]),
        ("well-known, 1,000.50 or 10:30?", ["well-known", ",", "1,000.50", "or", "10:30", "?"]),
        ("U.S. troops...", ["U.S.", "troops", "..."]),
        ("the end.", ["the", "end", "."]),
        ("¿Qué? «Oui», 'non'", ["¿", "Qué", "?", "«", "Oui", "»", ",", "'", "non", "'"]),
        ("यह परीक्षण है।", ["यह", "परीक्षण", "है", "।"]),
        ("هل هذا كتاب؟", ["هل", "هذا", "كتاب", "؟"]),
        ("می‌خواهم", ["می‌خواهم"]),
        ("我爱你，世界。", ["我", "爱", "你", "，", "世", "界", "。"]),
        ("gut 👍🏽❤️ 👩‍👧!", ["gut", "👍🏽", "❤️", "👩‍👧", "!"]),
        ("", []),
        (" \t\n ", []),
        ("one\ntwo", ["one", "two"]),
    ],
)
def test_words_and_punctuation_part_and_meet_again(text: str, symbols: list[str]) -> None:
    words = make_splitter("word")
    assert words.split(text) == symbols
    if not {"«", "👍"} & set(text):  # French puts spaces inside its quotes, German none: no rule holds for both;
        # and emoji written side by side are set apart.
        assert words.join(symbols) == " ".join(text.split())


def test_words_join_by_rules_that_know_no_language() -> None:
    join = make_splitter("word").join
    assert join(['"', "a", '"', "and", '"', "b", '"', "."]) == '"a" and "b".'
    assert join(["either", "/", "or"]) == "either/or"
    assert join(["50", "%", "of", "$", "5"]) == "50% of $5"
    assert join(["a", "-", "b"]) == "a - b"
    assert join(["one", "\n", "two"]) == "one\ntwo"
    assert join(["<unk>", "of", "<unk>"]) == "<unk> of <unk>"
    assert join([]) == ""


def test_most_real_sentences_survive_words(data_folder: Path) -> None:
    words = make_splitter("word")
    texts = [row.values[side] for row in read(data_folder / "multi30k" / "dev.tsv") for side in ("en", "de")]
    same = sum(words.join(words.split(text)) == " ".join(text.split()) for text in texts)
    assert same / len(texts) > 0.98


def test_characters_and_symbols() -> None:
    assert make_splitter("character").split(" a b ") == ["a", " ", "b"]
    assert make_splitter("character").join(["a", " ", "b"]) == "a b"
    assert make_splitter("symbol").split("K  AE T") == ["K", "AE", "T"]
    assert make_splitter("symbol").join(["K", "AE", "\n", "T"]) == "K AE\nT"


def test_an_unknown_kind_of_tokens_is_named() -> None:
    with pytest.raises(UserError, match=r"unknown kind of tokens 'wrod' \(did you mean 'word'\?\)"):
        splitters["wrod"]


@pytest.mark.parametrize(
    "text", ["the lowest, newest!", "a b  c", "Größe über 中 unseen", "x<eos>y <pad>", "(a) b-c; d'e", ""]
)
def test_bpe_gives_back_what_it_was_given_up_to_spaces(text: str) -> None:
    splitter = learned()
    assert splitter.join(splitter.split(text)) == " ".join(text.split())


def test_bpe_learns_frequent_words_whole_and_splits_punctuation_off() -> None:
    splitter = learned()
    assert splitter.split("the newest!") == ["▁the", "▁newest", "!"]
    assert len(splitter.split("thenewest")) > 1


def test_bpe_keeps_to_its_size_and_alphabet_limits() -> None:
    for size in (10, 40, 80):
        known = learned(size=size).known()
        assert len(known) <= size
        assert len(set(known)) == len(known)
        assert not set(known) & set(SPECIALS)


def test_bpe_learns_the_same_twice() -> None:
    assert learned().known() == learned(texts=list(CORPUS)).known()


def test_bpe_spells_unknown_characters_as_they_stand() -> None:
    assert "中" in learned().split("a中b")


def test_special_names_in_the_text_are_not_special() -> None:
    assert not set(learned(texts=[*CORPUS, "a<eos>b <eos>"] * 5).split("<eos> a<eos>b")) & set(SPECIALS)


def test_bpe_saved_and_loaded_splits_alike(tmp_path: Path) -> None:
    splitter, again = learned(), make_splitter("bpe")
    assert isinstance(again, LearnedSplitter)
    splitter.save(tmp_path / "bpe.json")
    again.load(tmp_path / "bpe.json")
    assert again.split("the lowest unseen") == splitter.split("the lowest unseen")
    assert again.known() == splitter.known()


def test_a_missing_or_damaged_bpe_file_is_named(tmp_path: Path) -> None:
    splitter = learned()
    path = tmp_path / "bpe.json"
    assert f"{path}: missing" in error_of(lambda: splitter.load(path))
    splitter.save(path)
    path.write_text(path.read_text()[:200])
    assert f"{path}: damaged" in error_of(lambda: splitter.load(path))


def test_case_and_unicode_form() -> None:
    decomposed = unicodedata.normalize("NFD", "É")
    assert normalise(decomposed, case="keep", unicode="NFC") == "É"
    assert normalise(decomposed, case="keep", unicode="none") == decomposed
    assert normalise("ÉA", case="lower", unicode="NFD") == unicodedata.normalize("NFD", "éa")
    assert normalise("ﬁ", case="keep", unicode="NFKC") == "fi"
    dotted = normalise("İ", case="lower", unicode="NFC")
    assert unicodedata.is_normalized("NFC", dotted)
