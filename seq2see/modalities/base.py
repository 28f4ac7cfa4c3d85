"""What every kind of input and output can do: the base classes and their registries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from seq2see.data.store import Ragged
from seq2see.data.vocabulary import Vocabulary
from seq2see.registry import Registry

Column = Any
"""A column of a batch: Sequences, Nested, Labels, Pictures, Numbers, .. Whatever it is, it has `to(device)`."""

Chosen = Sequence[int] | NDArray[np.integer]


class Field(ABC):
    """How values of one column become ids and tensors. `output`: a model writes this column, and does not read it.

    A field is built in passes over its values: `learn` where `learning` says it wants one (BPE), then `observe` for
    each value, then `settle`. Several fields are built together, in the same passes, by `Fields.build`.
    """

    vocabulary: Vocabulary
    """Of fields that have symbols or names; `size` is 0 for those that have none."""

    def __init__(self, settings: Any, *, output: bool):
        self.settings = settings
        self.output = output

    @property
    def size(self) -> int:
        """Symbols of its vocabulary; 0 where a column has none."""
        return len(self.vocabulary) if hasattr(self, "vocabulary") else 0

    # ---------------------------------------------------------------- building

    @property
    def learning(self) -> bool:
        """Whether `learn` is wanted before values are observed."""
        return False

    def normalise(self, value: str) -> str:
        """A value in the form in which it is counted and learned from."""
        return value

    def learn(self, values: Iterable[str]) -> None:
        """A pass over normalised values before they are counted."""
        raise NotImplementedError(f"{type(self).__name__} has nothing to learn before it counts")

    @abstractmethod
    def observe(self, value: str) -> None:
        """Count what a value is made of."""

    @abstractmethod
    def settle(self) -> None:
        """Make the vocabulary of what was observed."""

    def beside(self, output: Field) -> None:  # noqa: B027 - most inputs have nothing to learn from it
        """Told of the output's field, once that is settled or loaded: for what an input can only know from there."""

    def build(self, values: Iterable[str]) -> None:
        """Build from the values of this column alone; they are held in memory only if there is something to learn."""
        if self.learning:
            values = list(values)
            self.learn(map(self.normalise, values))
        for value in values:
            self.observe(value)
        self.settle()

    # ---------------------------------------------------------------- rows and batches

    @abstractmethod
    def ids(self, value: str) -> list[int]:
        """A value as it is stored: a row of ids."""

    def fits(self, ids: Sequence[int]) -> bool:
        """Whether a model may be trained to write this."""
        return True

    def cuts(self, value: str, ids: Sequence[int]) -> bool:
        """Whether the ids of a value are those of its beginning only."""
        return False

    def room(self, value: str) -> int:
        """How much room a value takes in a batch, in symbols."""
        return len(self.ids(value))

    @abstractmethod
    def widths(self, store: Ragged) -> NDArray[np.int64]:
        """How much room each stored row takes in a batch: (rows,)"""

    @abstractmethod
    def pad(self, store: Ragged, rows: Chosen) -> Column:
        """Stored rows as tensors."""

    @abstractmethod
    def batch(self, values: Sequence[str]) -> Column:
        """Values as tensors."""

    # ---------------------------------------------------------------- on disk

    @abstractmethod
    def save(self, folder: Path, name: str) -> list[Path]:
        """Write the vocabulary, and what else was learned, into a model's folder; the paths of these files."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, name: str, settings: Any, *, output: bool) -> Self:
        """Read what `save` wrote; a UserError names a missing or damaged file."""


class NumericField(Field):
    """A column of rows of numbers, each of `size` of them: what a model may give that has no symbols."""

    @abstractmethod
    def numbers(self, value: str) -> NDArray[np.float64]:
        """A value as plain numbers, (size,), by which a model is measured."""

    @abstractmethod
    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """What a model gives, (.., size), as plain numbers."""


kinds: Registry[type[Field]] = Registry("kind of column")
written: Registry[type[Field]] = Registry("kind of output")
"""Columns that are written otherwise than they are read."""


def field_of(settings: Any, *, output: bool) -> type[Field]:
    """The class that reads, or writes, a column of that kind."""
    return written[settings.kind] if output and settings.kind in written else kinds[settings.kind]


def file_of(folder: Path, what: str, name: str, *, suffix: str) -> Path:
    """`vocabulary-word.txt`: names of inputs are free, so what a file system might mind is escaped."""
    return Path(folder) / f"{what}-{quote(name, safe='')}{suffix}"
