"""Several texts in one input: the sentences of a document, the utterances of a dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from seq2see.data.batches import Nested, flattened, nest
from seq2see.data.sentences import cut
from seq2see.data.store import Ragged
from seq2see.modalities.base import Chosen, kinds
from seq2see.modalities.text import GivenText, TextField
from seq2see.settings.base import Count
from seq2see.settings.encoders import EncoderSettings


class TextsInput(GivenText):
    """One input that holds several texts: the sentences of a document, the utterances of a dialogue so far."""

    kind: Literal["texts"] = Setting("texts", description="what the column holds; a list of texts may stand there")
    sentences: Annotated[str, Setting(min_length=1)] = Setting(
        "rule",
        description="where they end: rule (full stops and their like), newline, tab, or a mark such as |||",
    )
    max_sentences: Count = Setting(0, description="at most so many are read; 0: no limit")
    keep: Literal["first", "last"] = Setting(
        "first", description="which ones max_sentences leaves: a document says first what matters, a dialogue last"
    )
    encoder: EncoderSettings | None = Setting(None, description="how its encoder differs from the recipe's `encoder`")


@kinds.register("texts")
class TextsField(TextField):
    """Text as sentences of symbols; what `max_length` and `max_sentences` leave out is not read.

    >>> field = TextsField(TextsInput(sentences="|||"))
    >>> field.build(["a b ||| c"])
    >>> field.sentences("c ||| a"), field.ids("c ||| a b")
    ([['c'], ['a']], [6, 3, 4, 5, 3])
    """

    settings: TextsInput

    def normalise(self, value: str) -> str:
        """Sentences are found first: the rule goes by capital letters."""
        return " ".join(self._texts(value))

    def _texts(self, value: str) -> list[str]:
        return [super(TextsField, self).normalise(text) for text in cut(value, self.settings.sentences)]

    def observe(self, value: str) -> None:
        self._counts.update(self.whole(value))

    def whole(self, value: str) -> list[str]:
        return [symbol for text in self._texts(value) for symbol in self.splitter.split(text)]

    def sentences(self, value: str) -> list[list[str]]:
        """What is read of a value: symbols by sentence; a sentence without any does not count."""
        settings = self.settings
        rows = [row for row in map(self.splitter.split, self._texts(value)) if row]
        if settings.max_sentences:
            last = settings.keep == "last"
            rows = rows[-settings.max_sentences :] if last else rows[: settings.max_sentences]
        return [row[: settings.max_length] for row in rows] if settings.max_length else rows

    def symbols(self, value: str) -> list[str]:
        return [symbol for sentence in self.sentences(value) for symbol in sentence]

    def places(self, value: str, part: str = "") -> list[str]:
        return self.symbols(value) if part == "words" else [self.join(row) for row in self.sentences(value)]

    def ids(self, value: str) -> list[int]:
        return flattened(map(self.vocabulary.encode, self.sentences(value)))

    def cuts(self, value: str, ids: Sequence[int]) -> bool:
        if not self.settings.max_length and not self.settings.max_sentences:
            return False
        return len(self.whole(value)) > len(self.symbols(value))

    @property
    def limit(self) -> str:
        limits = {"max_sentences": self.settings.max_sentences, "max_length": self.settings.max_length}
        return " or ".join(f"{name} {most:,}" for name, most in limits.items() if most)

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        """Words in all, and one for each sentence, which the second network reads."""
        return store.lengths

    def pad(self, store: Ragged, rows: Chosen) -> Nested:
        chosen = np.asarray(rows, dtype=np.int64)
        starts = np.asarray(store.offsets[chosen])
        return nest(store.flat, starts, np.asarray(store.offsets[chosen + 1]) - starts)

    def batch(self, values: Sequence[str]) -> Nested:
        symbols = [self.sentences(value) for value in values]
        rows = [flattened(map(self.vocabulary.encode, one)) for one in symbols]
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        flat = np.array([i for row in rows for i in row], dtype=np.int64)
        texts = [[self.join(sentence) for sentence in one] for one in symbols]
        return replace(nest(flat, np.cumsum(lengths) - lengths, lengths), symbols=symbols, texts=texts)
