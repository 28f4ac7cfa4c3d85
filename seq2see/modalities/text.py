"""Text: rows of symbols, read or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Setting

from seq2see.data import tokens
from seq2see.data.batches import EOS, PAD, SOS, Nested, Sequences, pad_lists
from seq2see.data.store import Ragged
from seq2see.data.tokens import LearnedSplitter
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError
from seq2see.evaluation import OutputType
from seq2see.modalities.base import Chosen, Field, file_of, kinds
from seq2see.settings.base import TextSettings
from seq2see.settings.encoders import EncoderSettings


class GivenText(TextSettings):
    """What inputs that are texts have beyond what all columns of text have."""

    may_be_empty: bool = Setting(
        False,
        description="rows without it are kept and read as a text of no words (a dialogue that begins); false: such "
        "rows are left out",
    )


class TextInput(GivenText):
    """One input; its name is chosen freely and used in `attention.over`, `decoder.start` and `decoder.every_step`."""

    kind: Literal["text"] = Setting("text", description="what the column holds")
    encoder: EncoderSettings | None = Setting(None, description="how its encoder differs from the recipe's `encoder`")


class TextOutput(TextSettings):
    """An output written symbol by symbol."""

    said: ClassVar[str] = "a text"
    one_step: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    measured_as: ClassVar[OutputType] = "text"
    kind: Literal["text"] = Setting("text", description="what the column holds")


@kinds.register("text")
class TextField(Field):
    """Text as symbols: split as the settings say, known by a vocabulary.

    >>> field = TextField(TextSettings(tokens="symbol"))
    >>> field.build(["K AE T", "D AO G"])
    >>> field.decode(field.encode("D AE G"))
    'D AE G'
    """

    settings: TextSettings

    def __init__(self, settings: TextSettings, *, output: bool = False):
        super().__init__(settings, output=output)
        self.splitter = tokens.make(settings.tokens)
        self.vocabulary = Vocabulary([])
        self._counts: Counter[str] = Counter()

    # ---------------------------------------------------------------- building

    @property
    def learning(self) -> bool:
        return isinstance(self.splitter, LearnedSplitter)

    def normalise(self, value: str) -> str:
        return tokens.normalise(
            value,
            case=self.settings.case,
            unicode=self.settings.unicode,
            punctuation=self.settings.punctuation == "keep",
        )

    def learn(self, values: Iterable[str]) -> None:
        if isinstance(self.splitter, LearnedSplitter):
            self.splitter.learn(values, size=self.settings.vocabulary, min_count=self.settings.min_count)

    def observe(self, value: str) -> None:
        self._counts.update(self.splitter.split(self.normalise(value)))

    def observe_stream(self, line: str) -> None:
        """Count one line of a contiguous text, its newline included."""
        self._counts.update(self.stream_symbols(line))

    def settle(self, others: Sequence[TextField] = ()) -> None:
        """Make the vocabulary of all that was observed, by `others` that are to share it too."""
        for other in others:
            self._counts.update(other._counts)
        if isinstance(self.splitter, LearnedSplitter):
            pieces = self.splitter.known()
            extra = sorted(symbol for symbol in self._counts if symbol == "\n")
            self.vocabulary = Vocabulary([*pieces, *extra], counts=self._counts)
        else:
            limits = self.settings
            self.vocabulary = Vocabulary.build(self._counts, size=limits.vocabulary, min_count=limits.min_count)
        self._counts = Counter()
        for other in others:
            other.use(self)

    def use(self, owner: TextField) -> None:
        """Share the symbols of another field."""
        self.splitter, self.vocabulary, self._counts = owner.splitter, owner.vocabulary, Counter()

    # ---------------------------------------------------------------- values, symbols, ids

    def symbols(self, value: str) -> list[str]:
        """The symbols of a value; inputs are cut after the most the settings allow."""
        row = self.whole(value)
        most = self.settings.max_length
        return row if self.output or not most else row[:most]

    def whole(self, value: str) -> list[str]:
        """All symbols of a value, those beyond the limits too."""
        return self.splitter.split(self.normalise(value))

    def places(self, value: str, part: str = "") -> list[str]:
        """What of a value can be looked at; `part`: which of its further places."""
        return self.symbols(value)

    def stream_symbols(self, line: str) -> list[str]:
        """The symbols of one line of a contiguous text; its newline is a symbol."""
        return [*self.splitter.split_stream(self.normalise(line)), "\n"]

    def encode(self, value: str) -> list[int]:
        """Ids without special symbols."""
        return self.vocabulary.encode(self.symbols(value))

    def ids(self, value: str) -> list[int]:
        return self.encode(value)

    def decode(self, ids: Iterable[int]) -> str:
        """Text up to the first `<eos>`; `<pad>` and `<sos>` do not show."""
        return self.join(self.spell(ids))

    def spell(self, ids: Iterable[int]) -> list[str]:
        """The symbols that `decode` joins."""
        row: list[int] = []
        for i in map(int, ids):
            if i == EOS:
                break
            if i not in (PAD, SOS):
                row.append(i)
        return self.vocabulary.decode(row)

    def join(self, symbols: Sequence[str]) -> str:
        """Text from symbols."""
        return self.splitter.join(symbols)

    # ---------------------------------------------------------------- rows and batches

    def fits(self, ids: Sequence[int]) -> bool:
        return not self.settings.max_length or len(ids) <= self.settings.max_length

    def cuts(self, value: str, ids: Sequence[int]) -> bool:
        most = self.settings.max_length
        if self.output or not most or len(ids) < most:
            return False
        return len(self.whole(value)) > most

    @property
    def limit(self) -> str:
        """What cuts a value, for messages."""
        return f"max_length {self.settings.max_length:,}"

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return store.lengths + int(self.output)

    def collate(self, rows: Sequence[Sequence[int]], *, eos: bool) -> Sequences:
        return pad_lists(rows, eos=eos)

    def pad(self, store: Ragged, rows: Chosen) -> Sequences | Nested:
        return store.pad(rows, eos=self.output)

    def batch(self, values: Sequence[str]) -> Sequences | Nested:
        """Values as tensors, with their symbols as they were written."""
        rows = [self.symbols(value) for value in values]
        ids = [self.vocabulary.encode(row) for row in rows]
        return replace(self.collate(ids, eos=self.output), symbols=rows)

    # ---------------------------------------------------------------- on disk

    def save(self, folder: Path, name: str) -> list[Path]:
        paths = [file_of(folder, "vocabulary", name, suffix=".txt")]
        self.vocabulary.save(paths[0])
        if isinstance(self.splitter, LearnedSplitter):
            paths.append(file_of(folder, self.settings.tokens, name, suffix=".json"))
            self.splitter.save(paths[-1])
        return paths

    @classmethod
    def load(cls, folder: Path, name: str, settings: TextSettings, *, output: bool = False) -> Self:
        field = cls(settings, output=output)
        path = file_of(folder, "vocabulary", name, suffix=".txt")
        field.vocabulary = Vocabulary.load(path)
        if isinstance(field.splitter, LearnedSplitter):
            learned = file_of(folder, settings.tokens, name, suffix=".json")
            field.splitter.load(learned)
            lost = [symbol for symbol in field.splitter.known() if symbol not in field.vocabulary]
            if lost:
                raise UserError(
                    f"{learned} does not fit {path}: {len(lost):,} of its symbols are not there ('{lost[0]}')"
                )
        return field
