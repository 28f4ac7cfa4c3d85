"""Words letter by letter: transliteration and grapheme-to-phoneme."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.system.small import SMALL_TEXT, SMALL_WRITER, learn, split

FAST = [*SMALL_TEXT, *SMALL_WRITER, "training.learning_rate=0.01"]
LETTERS = {"a": "а", "e": "е", "i": "и", "o": "о", "u": "у", "s": "с", "h": "х", "c": "ц", "z": "з", "t": "т"}
PAIRS = {"sh": "ш", "ch": "ч", "zh": "ж", "ts": "ц"}
PHONEMES = {"a": "AE", "e": "EH", "i": "IH", "o": "AA", "p": "P", "t": "T", "c": "K", "n": "N", "s": "S", "h": "HH"}
PHONEME_PAIRS = {"ph": "F", "th": "TH", "sh": "SH"}


def spell(word: str, letters: dict[str, str], pairs: dict[str, str]) -> list[str]:
    """Letter by letter, two at a time where two letters are one sound."""
    symbols = []
    while word:
        size = 2 if word[:2] in pairs else 1
        symbols.append(pairs[word[:2]] if size == 2 else letters[word[0]])
        word = word[size:]
    return symbols


def random_word(draw: random.Random, *, vowels: str, consonants: list[str]) -> str:
    return "".join(draw.choice(consonants) + draw.choice(vowels) for _ in range(draw.randint(2, 4)))


def test_transliteration_reads_two_letters_as_one_where_they_are_one(tmp_path: Path) -> None:
    draw = random.Random(1)
    words = [random_word(draw, vowels="aeiou", consonants=["s", "h", "c", "z", "t", *PAIRS]) for _ in range(600)]
    table = [{"latin": word, "native": "".join(spell(word, LETTERS, PAIRS)), "count": 1} for word in words]
    rows, held_out = split(table)
    trained = learn("transliteration", rows, held_out, tmp_path, updates=240, overrides=FAST)

    assert trained.model.evaluate(trained.rows).metrics["exact"] >= 0.9
    assert trained.untrained.evaluate(trained.rows).metrics["exact"] == 0
    assert trained.model.evaluate(trained.mismatched()).metrics["exact"] <= 0.1

    prediction = trained.model.predict("shatizhu")
    assert prediction.text == "шатижу"
    assert prediction.looks.weights.shape == (7, 8)


@pytest.mark.slow
def test_grapheme_to_phoneme_knows_silent_letters(tmp_path: Path) -> None:
    draw = random.Random(2)
    consonants = ["p", "t", "c", "n", "s", *PHONEME_PAIRS]
    endings = ["", "te", "ne"]
    words = [random_word(draw, vowels="aio", consonants=consonants) + draw.choice(endings) for _ in range(700)]
    table = [
        {"word": word, "phonemes": " ".join(spell(word.removesuffix("e"), PHONEMES, PHONEME_PAIRS))} for word in words
    ]
    rows, held_out = split(table)
    trained = learn(
        "grapheme-to-phoneme", rows, held_out, tmp_path, updates=350, overrides=[*SMALL_TEXT, *SMALL_WRITER]
    )

    assert trained.model.evaluate(trained.rows).metrics["exact"] >= 0.9
    assert trained.untrained.evaluate(trained.rows).metrics["exact"] == 0
    assert trained.model.evaluate(trained.mismatched()).metrics["exact"] <= 0.1
    assert trained.model.predict("phithane").text == "F IH TH AE N"
