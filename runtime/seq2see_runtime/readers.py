"""Values of inputs as arrays of a graph: what `seq2see.modalities` does for training, for prediction alone.

The parts that follow a rule (tokens, sentences, decoding of files) are those of seq2see itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy import ndarray

from seq2see.data.sentences import join_texts, shortened, split_texts
from seq2see.data.tokens import LearnedSplitter, Separated, Splitter, make_splitter, normalise
from seq2see.data.vocabulary import EOS, Vocabulary
from seq2see.errors import UserError


@dataclass
class Column:
    """One input of a batch.

    arrays: by the name of the graph's input, without the input's own; names: of the places of each row, by the name of
    the places after the input's own ("" or ".words"); symbols: those of each row one after the other, of texts.
    """

    arrays: dict[str, ndarray]
    names: dict[str, list[list[str]]] = field(default_factory=dict)
    symbols: list[list[str]] = field(default_factory=list)


@dataclass
class TextReader:
    """Text as symbols with ids; also writes ids as text. settings: those of the column, as the export wrote them."""

    settings: Mapping[str, Any]
    vocabulary: Vocabulary
    splitter: Splitter

    @classmethod
    def load(cls, folder: Path, name: str, settings: Mapping[str, Any]) -> TextReader:
        """Read the files that the export wrote for a column."""
        separator = settings.get("separator")
        splitter = make_splitter(settings["tokens"]) if separator is None else Separated(separator)
        if isinstance(splitter, LearnedSplitter):
            splitter.load(file_of(folder, settings["tokens"], name, ".json"))
        return cls(settings, Vocabulary.load(file_of(folder, "vocabulary", name, ".txt")), splitter)

    def normalise(self, value: str) -> str:
        settings = self.settings
        keep = settings["punctuation"] == "keep"
        return normalise(value, case=settings["case"], unicode=settings["unicode"], punctuation=keep)

    def whole(self, value: str) -> list[str]:
        """All symbols of a value."""
        return self.splitter.split(self.normalise(value))

    def text_of(self, symbols: Sequence[str], ids: Sequence[int]) -> str:
        """Symbols as text, without `<eos>`."""
        return self.splitter.join([symbol for symbol, i in zip(symbols, ids, strict=True) if i != EOS])

    def read(self, values: Sequence[str]) -> Column:
        most = self.settings["max_length"] or None
        symbols = [self.whole(value)[:most] for value in values]
        ids, mask = padded([self.vocabulary.encode(row) for row in symbols])
        return Column({"ids": ids, "mask": mask}, {"": symbols}, symbols)


class SetReader(TextReader):
    """A set as a row of symbols; its elements may come as a list."""

    def joined(self, items: Sequence[str]) -> str:
        if self.settings.get("separator") is not None:
            return self.splitter.join(items)
        return ("" if self.settings["tokens"] == "character" else " ").join(items)


class TextsReader(TextReader):
    """Text as sentences of symbols; these may come as a list."""

    def joined(self, items: Sequence[str]) -> str:
        return join_texts(items, by=self.settings["sentences"])

    def sentences(self, value: str) -> list[list[str]]:
        """What is read of a value: symbols by sentence."""
        settings = self.settings
        texts = [self.normalise(text) for text in split_texts(value, settings["sentences"])]
        return shortened(
            [self.splitter.split(text) for text in texts],
            most=settings["max_sentences"],
            keep=settings["keep"],
            longest=settings["max_length"],
        )

    def whole(self, value: str) -> list[str]:
        return [symbol for sentence in self.sentences(value) for symbol in sentence]

    def read(self, values: Sequence[str]) -> Column:
        documents = [self.sentences(value) for value in values]
        shape = (
            len(documents),
            max((len(document) for document in documents), default=1) or 1,
            max((len(row) for document in documents for row in document), default=1) or 1,
        )
        ids, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        for number, document in enumerate(documents):
            for line, row in enumerate(document):
                ids[number, line, : len(row)] = self.vocabulary.encode(row)
                mask[number, line, : len(row)] = True
        words = [[symbol for row in document for symbol in row] for document in documents]
        texts = [[self.splitter.join(row) for row in document] for document in documents]
        return Column({"ids": ids, "mask": mask}, {"": texts, ".words": words}, words)


@dataclass
class LabelWriter:
    """Labels by their ids."""

    vocabulary: Vocabulary

    @classmethod
    def load(cls, folder: Path, name: str, settings: Mapping[str, Any]) -> LabelWriter:
        return cls(Vocabulary.load(file_of(folder, "labels", name, ".txt"), specials=False))

    def text_of(self, symbols: Sequence[str], ids: Sequence[int]) -> str:
        return symbols[0]


def padded(rows: Sequence[Sequence[int]]) -> tuple[ndarray, ndarray]:
    """(ids, mask), both (rows, longest); the longest is at least 1."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    mask = np.arange(max(int(lengths.max(initial=0)), 1)) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = np.fromiter((i for row in rows for i in row), dtype=np.int64, count=int(lengths.sum()))
    return ids, mask


def file_of(folder: Path, what: str, name: str, suffix: str) -> Path:
    """The file of a column; names of inputs are arbitrary, so unsafe characters are escaped."""
    return folder / f"{what}-{quote(name, safe='')}{suffix}"


# --- Kinds

READERS: dict[str, Callable[[Path, str, Mapping[str, Any]], Any]] = {
    "text": TextReader.load,
    "set": SetReader.load,
    "texts": TextsReader.load,
}
WRITERS: dict[str, Callable[[Path, str, Mapping[str, Any]], Any]] = {"text": TextReader.load, "label": LabelWriter.load}


def of_kind(kinds: Mapping[str, Any], folder: Path, name: str, settings: Mapping[str, Any]) -> Any:
    """The reader or writer of a column."""
    kind = str(settings.get("kind"))
    if kind not in kinds:
        raise UserError(f"{folder}: '{name}' is of kind {kind!r}; the runtime knows {', '.join(kinds)}")
    return kinds[kind](folder, name, settings)
