"""Text: rows of symbols, read or written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from pydantic import Field as Setting
from torch import Tensor

from seq2see.data import tokens
from seq2see.data.batches import Nested, Ragged, Sequences, pad_lists
from seq2see.data.tokens import LearnedSplitter, Unit
from seq2see.data.vocabulary import EOS, PAD, SOS, SPECIALS, Vocabulary
from seq2see.errors import UserError, counted
from seq2see.evaluation import OutputType
from seq2see.modalities.base import (
    Chosen,
    Example,
    Modality,
    Occlusion,
    Output,
    Row,
    file_of,
    inputs,
    outputs,
    random_mask,
)
from seq2see.settings.columns import ColumnSettings, InputColumn, OutputColumn, TextSettings


class TextInputColumn(TextSettings, InputColumn):
    """What inputs that are texts have beyond what all columns of text have."""

    may_be_empty: bool = Setting(
        False,
        description="rows without it are kept and read as an empty text (the start of a dialogue); false: such "
        "rows are left out",
    )


class TextInput(TextInputColumn):
    """One input; its name is chosen freely and used in `attention.over`, `decoder.start` and `decoder.every_step`."""

    in_a_row: ClassVar[bool] = True
    kind: Literal["text"] = Setting("text", description="what the column holds")


class TextOutput(TextSettings, OutputColumn):
    """An output written symbol by symbol."""

    noun: ClassVar[str] = "a text"
    one_step: ClassVar[bool] = False
    usual_decoder: ClassVar[str] = "recurrent"
    measured_as: ClassVar[OutputType] = "text"
    kind: Literal["text"] = Setting("text", description="what the column holds")


TOKENS = {
    "word": "words",
    "character": "characters",
    "symbol": "symbols separated by spaces",
    "bpe": "pieces of words (bpe)",
}
BPE = 8_000
"""Symbols of a vocabulary of pieces, where the recipe states no limit."""


@inputs.register("text")
class TextField(Modality):
    """Text as symbols: split as the settings say, known by a vocabulary.

    >>> field = TextField(TextSettings(tokens="symbol"))
    >>> field.build(["K AE T", "D AO G"])
    >>> field.decode(field.encode("D AE G"))
    'D AE G'
    """

    Settings: ClassVar[type[ColumnSettings]] = TextInput
    hidden_parts: ClassVar[tuple[str, ...]] = ("",)
    settings: TextSettings

    def __init__(self, settings: TextSettings, *, output: bool = False):
        super().__init__(settings, output=output)
        self.splitter = tokens.make_splitter(settings.tokens)
        self.vocabulary = Vocabulary([])
        self._counts: Counter[str] = Counter()
        self._owner = self

    # --- Description

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        many = "" if size is None else f", {'' if exact else 'at most '}{size:,} symbols"
        cut = f", at most {self.settings.max_length} long" if self.settings.max_length else ""
        shared = f", the vocabulary of {self.settings.share}" if self.settings.share else ""
        return f"{self.role(name)}: {self._made_of(self.settings.column or name)}{many}{cut}{shared}"

    def _made_of(self, column: str) -> str:
        return f"text, column '{column}', as {TOKENS[self.settings.tokens]}"

    @property
    def stated_size(self) -> int | None:
        limit = self.settings.vocabulary or (BPE if self.settings.tokens == "bpe" else 0)
        return limit + len(SPECIALS) if limit else None

    # --- Building

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

    @property
    def unit(self) -> Unit | None:
        """Kinds that split a value in a way of their own read it as a whole."""
        own = type(self).whole is not TextField.whole or type(self).read is not TextField.read
        return None if own or type(self).observe is not TextField.observe else self.splitter.unit

    def _part_symbols(self, part: str) -> list[str]:
        return [part] if self.splitter.unit == "character" else self.whole(part)

    def observe_part(self, part: str, times: int) -> None:
        for symbol in self._part_symbols(part):
            self._counts[symbol] += times

    def part_ids(self, part: str) -> list[int]:
        return self.vocabulary.encode(self._part_symbols(part))

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
        self._owner = owner
        self.splitter, self.vocabulary, self._counts = owner.splitter, owner.vocabulary, Counter()

    # --- Values, symbols, ids

    def symbols(self, value: str) -> list[str]:
        """The symbols of a value; inputs are cut after the most the settings allow."""
        return self._cut(self.whole(value))

    def _cut(self, symbols: list[str]) -> list[str]:
        most = self.settings.max_length
        return symbols if self.output or not most else symbols[:most]

    def whole(self, value: str) -> list[str]:
        """All symbols of a value, those beyond the limits too."""
        return self.splitter.split(self.normalise(value))

    def places(self, value: str, part: str = "") -> list[str]:
        """What of a value can be looked at; `part`: which of its further places."""
        return self.symbols(value)

    def row_of(self, example: Example) -> list[str]:
        """The symbols of a value that was read, in one row."""
        return example.symbols

    @property
    def open_ended(self) -> bool:
        """Whether training itself left out rare words, so that unknown ones are expected."""
        owner = self._owner.settings
        return owner.tokens == "word" and (owner.vocabulary > 0 or owner.min_count > 1)

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

    # --- Rows and batches

    def fits(self, ids: Sequence[int]) -> bool:
        return not self.settings.max_length or len(ids) <= self.settings.max_length

    def is_cut(self, example: Example) -> bool:
        return example.total > len(self.row_of(example))

    @property
    def limit(self) -> str:
        """What cuts a value, for messages."""
        return f"max_length {self.settings.max_length:,}"

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return store.lengths + int(self.output)

    def pad(self, store: Ragged, rows: Chosen) -> Sequences | Nested:
        return store.pad(rows, eos=self.output)

    def read(self, value: str) -> Example:
        whole = self.whole(value)
        symbols = self._cut(whole)
        ids = self.vocabulary.encode(symbols)
        return Example(self, value, ids, symbols, len(whole))

    def batch(self, values: Sequence[str]) -> Sequences | Nested:
        return self.collate([self.read(value) for value in values])

    def collate(self, examples: Sequence[Example]) -> Sequences | Nested:
        """Values as tensors, with their symbols as they were written."""
        padded = pad_lists([example.ids for example in examples], eos=self.output)
        return replace(padded, symbols=[example.symbols for example in examples])

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Sequences | Nested:
        mask = random_mask(rows, length)
        ids = torch.from_numpy(random.integers(0, self.size, mask.shape)) * mask
        return Sequences(ids, mask)

    def watcher(self, name: str, *, named: bool, copied: Callable[[Row], list[str]] | None = None) -> SymbolWatcher:
        return SymbolWatcher(name, self, named=named, copied=copied)

    def cut_message(self, name: str) -> tuple[str, str]:
        """(what happened to long values, their limit), for warnings."""
        most = self.settings.max_length
        return f"cut to the first {most:,} (inputs.{name}.max_length)", f"longer than {most:,} symbols"

    # --- What is shown and hidden

    def preview(self, example: Example) -> dict[str, Any]:
        symbols = example.symbols
        return {"text": example.value, "symbols": symbols, "spans": find_spans(example.value, symbols)}

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        return SymbolOcclusion(column)

    # --- On disk

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


@outputs.register("text")
class TextOutputField(TextField, Output):
    """Text that a model writes, symbol by symbol."""

    Settings: ClassVar[type[ColumnSettings]] = TextOutput

    def __init__(self, settings: TextSettings, *, output: bool = True):
        super().__init__(settings, output=output)

    def text_of(self, symbols: Sequence[str], ids: Sequence[int]) -> str:
        return self.join([symbol for symbol, i in zip(symbols, ids, strict=True) if i != EOS])


# --- What is shown and hidden


def find_spans(text: str, symbols: Sequence[str]) -> list[list[int] | None]:
    """Where each symbol stands in the text, as [from, to); None for those that were changed beyond recognition.

    Symbols are those of the text as the model reads it, whose case, spaces and accents may differ.

    >>> find_spans("A dog, a Dog", ["a", "dog", "<unk>", "a", "dog"])
    [[0, 1], [2, 5], None, [7, 8], [9, 12]]
    """
    lowered = text.lower() if len(text.lower()) == len(text) else text
    found: list[list[int] | None] = []
    start = 0
    for symbol in symbols:
        wanted = symbol.lower()
        at = lowered.find(wanted, start) if wanted else -1
        found.append(None if at < 0 else [at, at + len(wanted)])
        start = start if at < 0 else at + len(wanted)
    return found


@dataclass
class SymbolOcclusion:
    """Places are the symbols of a row."""

    column: Sequences

    @property
    def count(self) -> int:
        return self.column.ids.shape[1]

    def without(self, places: Int[Tensor, " rows"]) -> Sequences:
        column = self.column
        rows, length = column.ids.shape
        if length < 2 or not bool(column.mask.all()):
            raise ValueError("equal rows of two symbols or more expected, with no padding")
        kept = torch.arange(length, device=column.ids.device) != places[:, None]
        symbols = None
        if column.symbols is not None:
            chosen = zip(column.symbols, places.tolist(), strict=True)
            symbols = [[*row[:place], *row[place + 1 :]] for row, place in chosen]
        copyable = column.copyable
        if copyable is not None:
            copyable = replace(copyable, ids=copyable.ids[kept].view(rows, -1))
        return Sequences(column.ids[kept].view(rows, -1), column.mask[kept].view(rows, -1), symbols, copyable)

    @property
    def room(self) -> int:
        return self.count

    def by_place(self, vectors: Float[Tensor, "rows places size"]) -> Float[Tensor, "rows places"]:
        norms: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
        return norms


# --- Warnings

SHOWN = 8
"""Unknown symbols that are named; the others are counted."""
UNKNOWN = SPECIALS[1]


class SymbolWatcher:
    """Gathers unknown symbols of a column, and values that are cut. copied: words of a row that can be written though
    the vocabulary lacks them."""

    def __init__(self, name: str, field: TextField, *, named: bool, copied: Callable[[Row], list[str]] | None = None):
        self.name, self.field, self.copied = name, field, copied
        self.noun = "output" if field.output else "input"
        self.start = f"'{name}': " if named else ""
        self.rows, self.longest = 0, 0
        self.cut, self.partly, self.wholly = 0, 0, 0
        self.unknown: dict[str, None] = {}

    @property
    def open_ended(self) -> bool:
        """Whether unknown symbols are nothing to speak of: words of which training itself left out the rare ones."""
        return self.field.open_ended

    def read(self, example: Example, row: Row) -> None:
        symbols = self.field.row_of(example)
        missing = [symbol for symbol in symbols if symbol not in self.field.vocabulary]
        if missing and self.copied is not None:
            copied = self.copied(row)
            missing = [symbol for symbol in missing if symbol not in copied]
        self.rows += 1
        self.longest = max(self.longest, example.total)
        self.cut += self.field.is_cut(example)
        self.partly += bool(missing)
        self.wholly += bool(symbols) and len(missing) == len(symbols)
        if not self.open_ended:
            self.unknown.update(dict.fromkeys(missing))

    def lines(self) -> list[str]:
        found = []
        if self.unknown:
            where = f" (in {self._share(self.partly)})" if self.rows > 1 else ""
            found.append(f"{self.start}{name_unknown(list(self.unknown))}{where}")
        elif self.open_ended and self.wholly:
            which = f"the {self.noun}" if self.rows == 1 else self._share(self.wholly)
            found.append(f"{self.start}no word of {which} is known to the model: all are read as {UNKNOWN}")
        if self.cut:
            found.append(f"{self.start}{self._cut_short()}")
        return found

    def _cut_short(self) -> str:
        cut, longer = self.field.cut_message(self.name)
        if self.rows == 1:
            return f"the {self.noun} has {counted(self.longest, 'symbol')}: {cut}"
        return f"{self._share(self.cut)} {'is' if self.cut == 1 else 'are'} {longer}: {cut}"

    def _share(self, number: int) -> str:
        return f"{number:,} of {counted(self.rows, self.noun)}"


def name_unknown(symbols: Sequence[str]) -> str:
    """'x' and 'y' are not known to the model: read as <unk>."""
    shown = [f"'{symbol}'" for symbol in symbols[:SHOWN]]
    if len(symbols) > SHOWN:
        shown.append(f"{len(symbols) - SHOWN:,} more")
    *others, last = shown
    joined = f"{', '.join(others)} and {last}" if others else last
    return f"{joined} {'is' if len(symbols) == 1 else 'are'} not known to the model: read as {UNKNOWN}"
