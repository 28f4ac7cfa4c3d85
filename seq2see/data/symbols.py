"""Text to symbols and back: one small class per kind of token."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from seq2see.data.words import join_words, split_words
from seq2see.files import whole_characters
from seq2see.registry import Registry

Case = Literal["keep", "lower"]
UnicodeForm = Literal["none", "NFC", "NFD", "NFKC", "NFKD"]


def normalise(text: str, *, case: Case, unicode: UnicodeForm, punctuation: bool = True) -> str:
    """Case first, then the Unicode form: lowering can take text out of it (the Turkish dotted capital I).

    punctuation false: its marks go, and what they parted is one word (dog's: dogs). Halves of surrogate pairs, which no
    tokeniser, file or terminal takes, are read as U+FFFD.
    """
    text = whole_characters(text)
    if not punctuation:
        text = "".join(letter for letter in text if unicodedata.category(letter)[0] != "P")
    if case == "lower":
        text = text.lower()
    return text if unicode == "none" or text.isascii() else unicodedata.normalize(unicode, text)


class Splitter(ABC):
    """How text becomes symbols of one kind, and symbols text."""

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The symbols of one line of text."""

    @abstractmethod
    def join(self, symbols: Sequence[str]) -> str:
        """Text from symbols."""

    def split_stream(self, line: str) -> list[str]:
        """The symbols of one line of a contiguous text, without its newline."""
        return self.split(line)


class LearnedSplitter(Splitter):
    """A splitter that learns its symbols from text first, and keeps what it learned in a file."""

    @abstractmethod
    def learn(self, texts: Iterable[str], *, size: int, min_count: int) -> None:
        """Learn at most `size` symbols (0: a number that fits the kind) from normalised texts."""

    @abstractmethod
    def known(self) -> list[str]:
        """All symbols it can produce, in order of id, special ones left out."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write what was learned."""

    @abstractmethod
    def load(self, path: Path) -> None:
        """Read what was learned; a UserError names a missing or damaged file."""


splitters: Registry[type[Splitter]] = Registry("kind of tokens")


@splitters.register("word")
class Words(Splitter):
    """Unicode words, and punctuation apart from them."""

    def split(self, text: str) -> list[str]:
        return split_words(text)

    def join(self, symbols: Sequence[str]) -> str:
        return join_words(symbols)


@splitters.register("character")
class Characters(Splitter):
    """Every code point, spaces included (outer ones do not count)."""

    def split(self, text: str) -> list[str]:
        return list(text.strip())

    def split_stream(self, line: str) -> list[str]:
        return list(line)

    def join(self, symbols: Sequence[str]) -> str:
        return "".join(symbols)


@splitters.register("symbol")
class Spaced(Splitter):
    """What stands between spaces: phonemes, text split beforehand."""

    def split(self, text: str) -> list[str]:
        return text.split()

    def join(self, symbols: Sequence[str]) -> str:
        return " ".join(symbols).replace(" \n ", "\n").replace(" \n", "\n").replace("\n ", "\n")


def make(tokens: str) -> Splitter:
    """A splitter by the name a recipe gives it."""
    if tokens == "bpe" and tokens not in splitters:
        import seq2see.data.bpe  # noqa: F401  late: the tokenizers library is slow to import
    return splitters[tokens]()
