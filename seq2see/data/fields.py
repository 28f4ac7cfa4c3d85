"""One field per column: how its values become ids, how ids become values again, and how many rows become a tensor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch
from numpy.typing import NDArray

from seq2see.data import symbols
from seq2see.data.batches import EOS, PAD, SOS, Batch, Labels, Sequences, pad_lists
from seq2see.data.store import Ragged
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError, nearest
from seq2see.recipe.schema import LabelOutput, Recipe, TextSettings
from seq2see.registry import Registry

OUTPUT = "output"


class Field(ABC):
    """How one column is read. `output` fields are written by a model, others are read by it.

    A field is built in passes over the values of its column: `learn`, where `learning` says it wants one (BPE), then `observe`
    for each value, then `settle`.
    """

    learning: bool = False
    vocabulary: Vocabulary

    @abstractmethod
    def observe(self, value: str) -> None:
        """Count what a value is made of."""

    @abstractmethod
    def settle(self) -> None:
        """Make the vocabulary of what was observed."""

    def normalise(self, value: str) -> str:
        """A value in the form in which it is counted and learned from."""
        return value

    def learn(self, values: Iterable[str]) -> None:
        """A pass before counting over normalised values, for fields that ask for it."""

    def build(self, values: Iterable[str]) -> None:
        """Build from the values of this column alone."""
        values = list(values) if self.learning else values
        if self.learning:
            self.learn(map(self.normalise, values))
        for value in values:
            self.observe(value)
        self.settle()

    @abstractmethod
    def ids(self, value: str) -> list[int]:
        """A value as it is stored: a row of ids."""

    @abstractmethod
    def fits(self, ids: Sequence[int]) -> bool:
        """Whether a model may be trained to write this."""

    @abstractmethod
    def pad(self, store: Ragged, rows: Sequence[int] | NDArray[np.integer]) -> Sequences | Labels:
        """Stored rows as a tensor."""

    @abstractmethod
    def batch(self, values: Sequence[str]) -> Sequences | Labels:
        """Values as a tensor."""

    @abstractmethod
    def widths(self, store: Ragged) -> NDArray[np.int64]:
        """How long each stored row is in a batch: (rows,)"""

    @abstractmethod
    def save(self, folder: Path, name: str) -> None:
        """Write the vocabulary, and what else was learned, into a model's folder."""


fields: Registry[type[Field]] = Registry("kind of column")


@fields.register("text")
class TextField(Field):
    """Text as a row of symbols."""

    def __init__(self, settings: TextSettings, *, output: bool = False):
        self.settings = settings
        self.output = output
        self.splitter = symbols.make(settings.tokens)
        self.vocabulary = Vocabulary([])
        self.learning = self.splitter.learned
        self._counts: Counter[str] = Counter()

    # building

    def normalise(self, value: str) -> str:
        return symbols.normalise(value, case=self.settings.case, unicode=self.settings.unicode)

    def learn(self, values: Iterable[str]) -> None:
        self.splitter.learn(values, size=self.settings.vocabulary, min_count=self.settings.min_count)

    def observe(self, value: str) -> None:
        self._counts.update(self.splitter.split(self.normalise(value)))

    def settle(self, others: Sequence[TextField] = ()) -> None:
        """Make the vocabulary; the `others` observed text too and share it."""
        counts = sum((other._counts for other in others), self._counts)
        known = self.splitter.known()
        if known is not None:
            self.vocabulary = Vocabulary(known, counts=counts)
        else:
            self.vocabulary = Vocabulary.build(counts, size=self.settings.vocabulary, min_count=self.settings.min_count)
        self._counts = Counter()
        for other in others:
            other.use(self)

    def use(self, owner: TextField) -> None:
        """Share the symbols of another field."""
        self.splitter, self.vocabulary, self._counts = owner.splitter, owner.vocabulary, Counter()

    # use

    def symbols(self, value: str) -> list[str]:
        """The symbols of a value; inputs are cut to the longest the settings allow."""
        row = self.splitter.split(self.normalise(value))
        longest = self.settings.max_length
        return row if self.output or not longest else row[:longest]

    def encode(self, value: str) -> list[int]:
        """Ids without special symbols."""
        return self.vocabulary.encode(self.symbols(value))

    ids = encode

    def decode(self, ids: Iterable[int]) -> str:
        """Text up to the first `<eos>`; `<pad>` and `<sos>` do not show."""
        row: list[int] = []
        for i in ids:
            if i == EOS:
                break
            if i not in (PAD, SOS):
                row.append(int(i))
        return self.join(self.vocabulary.decode(row))

    def join(self, symbols: Sequence[str]) -> str:
        return self.splitter.join(symbols)

    def fits(self, ids: Sequence[int]) -> bool:
        return not self.settings.max_length or len(ids) <= self.settings.max_length

    def collate(self, rows: Sequence[Sequence[int]], *, eos: bool) -> Sequences:
        return pad_lists(rows, eos=eos)

    def pad(self, store: Ragged, rows: Sequence[int] | NDArray[np.integer]) -> Sequences:
        return store.pad(rows, eos=self.output)

    def batch(self, values: Sequence[str]) -> Sequences:
        rows = [self.symbols(value) for value in values]
        padded = pad_lists([self.vocabulary.encode(row) for row in rows], eos=self.output)
        return Sequences(padded.ids, padded.mask, symbols=rows)

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return store.lengths + self.output

    # on disk

    def save(self, folder: Path, name: str) -> None:
        self.vocabulary.save(_file(folder, "vocabulary", name, ".txt"))
        if self.splitter.learned:
            self.splitter.save(_file(folder, "bpe", name, ".json"))

    @classmethod
    def load(cls, folder: Path, name: str, settings: TextSettings, *, output: bool = False) -> TextField:
        field = cls(settings, output=output)
        path = _file(folder, "vocabulary", name, ".txt")
        field.vocabulary = Vocabulary.load(path)
        if field.splitter.learned:
            pieces = _file(folder, "bpe", name, ".json")
            field.splitter.load(pieces)
            lost = set(field.splitter.known() or ()) - set(field.vocabulary.ids)
            if lost:
                raise UserError(f"{pieces} does not fit {path}: {len(lost):,} of its pieces are not in the vocabulary")
        return field


@fields.register("label")
class LabelField(Field):
    """One of a few names."""

    def __init__(self, settings: LabelOutput, *, output: bool = True):
        self.settings = settings
        self.output = output
        self.vocabulary = Vocabulary([], specials=False)
        self._counts: Counter[str] = Counter()

    def observe(self, value: str) -> None:
        self._counts[_label(value)] += 1

    def settle(self) -> None:
        """Labels in the order of the alphabet: their ids do not depend on how often each occurs."""
        if len(self._counts) < 2:
            only = f": only '{next(iter(self._counts))}'" if self._counts else ""
            raise UserError(f"a label column needs two different labels at least, found {len(self._counts)}{only}")
        self.vocabulary = Vocabulary(sorted(self._counts), counts=self._counts, specials=False)
        self._counts = Counter()

    @property
    def counts(self) -> list[int]:
        """Rows of each label, by id (for class weights)."""
        return self.vocabulary.counts

    @property
    def labels(self) -> list[str]:
        return self.vocabulary.symbols

    def encode(self, value: str) -> int:
        name = _label(value)
        if name not in self.vocabulary:
            known = self.labels
            shown = ", ".join(known[:20]) + (f", ... ({len(known)} in all)" if len(known) > 20 else "")
            raise UserError(f"unknown label '{name}'{nearest(name, known)}; known: {shown}")
        return self.vocabulary.ids[name]

    def decode(self, id: int) -> str:
        return self.vocabulary.symbols[int(id)]

    def ids(self, value: str) -> list[int]:
        return [self.encode(value)]

    def fits(self, ids: Sequence[int]) -> bool:
        return True

    def collate(self, ids: Sequence[int]) -> Labels:
        return Labels(torch.tensor(list(ids), dtype=torch.int64))

    def pad(self, store: Ragged, rows: Sequence[int] | NDArray[np.integer]) -> Labels:
        chosen = np.asarray(rows, dtype=np.int64)
        return Labels(torch.from_numpy(np.asarray(store.flat[store.offsets[chosen]], dtype=np.int64)))

    def batch(self, values: Sequence[str]) -> Labels:
        return self.collate([self.encode(value) for value in values])

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return np.ones(len(store), dtype=np.int64)

    def save(self, folder: Path, name: str) -> None:
        self.vocabulary.save(_file(folder, "labels", name, ".txt"))

    @classmethod
    def load(cls, folder: Path, name: str, settings: LabelOutput, *, output: bool = True) -> LabelField:
        field = cls(settings, output=output)
        field.vocabulary = Vocabulary.load(_file(folder, "labels", name, ".txt"), specials=False)
        return field


class Fields:
    """The fields of a recipe: inputs by name, and the output."""

    def __init__(self, inputs: dict[str, Any], output: Any):
        self.inputs = inputs
        self.output = output

    @property
    def all(self) -> dict[str, Any]:
        """Every field by name, inputs first; the output is called `output`."""
        return {**self.inputs, OUTPUT: self.output}

    @classmethod
    def build(cls, recipe: Recipe, rows_factory: Callable[[], Iterator[Mapping[str, str]]]) -> Fields:
        """Build every field together: one streaming pass over the rows that counts, and one before it if anything learns first.

        rows_factory gives a new iterator over the rows at each call, each row {input name or "output": value}.
        """
        built = cls._empty(recipe)
        owners = _owners(recipe)
        every = built.all
        for name, field in every.items():
            if field.learning and owners[name] == name:
                sharing = [other for other in every if owners[other] == name]
                field.learn(every[other].normalise(row[other]) for row in rows_factory() for other in sharing)
                for other in sharing:
                    every[other].splitter = field.splitter
        observe = [(name, field.observe) for name, field in every.items()]
        for row in rows_factory():
            for name, see in observe:
                see(row[name])
        for name, field in every.items():
            if owners[name] == name:
                others = [every[other] for other in every if owners[other] == name and other != name]
                field.settle(others) if others else field.settle()
        return built

    @classmethod
    def _empty(cls, recipe: Recipe) -> Fields:
        return cls(
            {name: fields[settings.kind](settings, output=False) for name, settings in recipe.inputs.items()},
            fields[recipe.output.kind](recipe.output, output=True),
        )

    def batch(self, rows: Sequence[Mapping[str, str]], *, target: bool = False) -> Batch:
        """A batch of values as they come, with the inputs' own symbols (prediction, evaluation)."""
        return Batch(
            inputs={name: field.batch([row[name] for row in rows]) for name, field in self.inputs.items()},
            target=self.output.batch([row[OUTPUT] for row in rows]) if target else None,
            rows=list(range(len(rows))),
        )

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, field in self.all.items():
            field.save(folder, name)

    @classmethod
    def load(cls, folder: Path, recipe: Recipe) -> Fields:
        """Read what `save` wrote; fields that share a vocabulary share it again."""
        owners = _owners(recipe)
        settings: dict[str, Any] = {**recipe.inputs, OUTPUT: recipe.output}
        every: dict[str, Any] = {
            name: fields[one.kind].load(folder, name, one, output=name == OUTPUT) for name, one in settings.items()
        }
        for name, owner in owners.items():
            if owner != name:
                every[name].use(every[owner])
        output = every.pop(OUTPUT)
        return cls(every, output)


def _owners(recipe: Recipe) -> dict[str, str]:
    """For each field the field whose vocabulary it uses: itself where it shares none."""
    settings: dict[str, Any] = {**recipe.inputs, OUTPUT: recipe.output}
    owners: dict[str, str] = {}
    for name in settings:
        seen = [name]
        while (shared := getattr(settings[seen[-1]], "share", None)) is not None:
            key = f"{_key(seen[-1])}.share"
            if shared not in recipe.inputs:
                raise UserError(
                    f"{key}: no input is called '{shared}'{nearest(shared, recipe.inputs)}; inputs: {', '.join(recipe.inputs)}"
                )
            if shared in seen:
                raise UserError(f"{key}: '{shared}' shares with '{name}' in a circle; one of them must not share")
            if settings[shared].tokens != settings[name].tokens:
                raise UserError(
                    f"{key}: {_key(name)}.tokens is '{settings[name].tokens}' but {_key(shared)}.tokens is "
                    f"'{settings[shared].tokens}'; a shared vocabulary needs the same"
                )
            seen.append(shared)
        owners[name] = seen[-1]
    return owners


def _key(name: str) -> str:
    return name if name == OUTPUT else f"inputs.{name}"


def _file(folder: Path, what: str, name: str, suffix: str) -> Path:
    return Path(folder) / f"{what}-{quote(name, safe='')}{suffix}"


def _label(value: str) -> str:
    name = value.strip()
    if not name:
        raise UserError("the label is empty")
    return name
