"""The base classes of kinds of inputs and outputs, and their registries.

A kind is one registered class: `Modality` for an input, `Output` for an output. Its settings (`Settings`) state its
properties; an object of it is the column of one recipe, with what was learned from the training rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, Self
from urllib.parse import quote

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from pydantic import create_model
from torch import Tensor

from seq2see.data.batches import Frames, Ragged
from seq2see.data.columns import join_texts
from seq2see.data.tokens import Unit, text_content
from seq2see.data.vocabulary import Vocabulary
from seq2see.errors import UserError
from seq2see.files import whole_characters
from seq2see.looks import Drawable, Prediction
from seq2see.registry import Registry
from seq2see.settings.columns import INPUTS, OUTPUTS, ColumnSettings, InputColumn, OutputColumn
from seq2see.settings.plugins import check_subclass

Column = Any
"""A column of a batch: Sequences, Nested, Labels, Images, Numbers, .. Whatever it is, it has `to(device)`."""

Chosen = Sequence[int] | NDArray[np.integer]
Row = Mapping[str, str]
Schema = dict[str, Any]
"""A JSON schema."""


@dataclass(frozen=True)
class Elements:
    """What a list may hold that is given instead of a text: `name` of these values in messages, their `types`, whether
    the list `may_be_empty`, and their JSON `schema`."""

    name: str
    types: tuple[type, ...]
    schema: Schema
    may_be_empty: bool = True


@dataclass(eq=False)
class Example:
    """One value of a column, read once: warnings, batches, their sizes and what is shown all use it.

    field: that read it; value: as the table has it; ids: as it is stored; symbols: those that are read, in one row
    (`texts`: sentence by sentence); total: symbols of the whole value, those beyond the limits of the recipe counted.
    """

    field: Field
    value: str
    ids: list[int]
    symbols: list[Any] = dataclass_field(default_factory=list)
    total: int = 0

    @cached_property
    def length(self) -> int:
        """How much of a batch it takes, in symbols."""
        return self.field.length(self)


class Occlusion(Protocol):
    """A column of equal rows as places, each of which can be hidden."""

    @property
    def count(self) -> int:
        """Places of each row."""
        ...

    @property
    def room(self) -> int:
        """How much of a batch a row takes, in symbols."""
        ...

    def without(self, places: Int[Tensor, " rows"]) -> Column:
        """The column, each row without the place of that number."""
        ...

    def by_place(self, vectors: Float[Tensor, ...]) -> Float[Tensor, "rows places"]:
        """The norms of vectors, one for each e(x_j) as the encoder reads them, as one number for each place; called
        once for each part of which the e(x_j) are joined."""
        ...


FRAMES_PER_SYMBOL = 4
"""Frames that take about as much room in a batch as a symbol of text."""


@dataclass
class FrameOcclusion:
    """Places are stretches of neighbouring frames; their vectors are the frames as the encoder reads them, joined.

    A place is hidden by the mean of the row over `axes`: of all its numbers, or over time alone (1), each for itself.
    """

    column: Frames
    count: int
    axes: tuple[int, ...] = (1, 2)

    @property
    def room(self) -> int:
        return max(self.column.values.shape[1] // FRAMES_PER_SYMBOL, 1)

    def without(self, places: Int[Tensor, " rows"]) -> Frames:
        values = self.column.values
        hidden = self._place_of_frame() == places[:, None]
        means = values.mean(self.axes, keepdim=True)
        return replace(self.column, values=torch.where(hidden[..., None], means, values))

    def by_place(self, vectors: Float[Tensor, "rows frames size"]) -> Float[Tensor, "rows places"]:
        squares = vectors.square().sum(-1)
        found: Tensor = squares.new_zeros(len(squares), self.count).index_add_(1, self._place_of_frame(), squares)
        return found.sqrt()

    def _place_of_frame(self) -> Int[Tensor, " frames"]:
        mask = self.column.mask
        if not bool(mask.all()):
            raise ValueError("equal rows expected, with no padding")
        frames = torch.arange(mask.shape[1], device=mask.device)
        every = frames_for_each(mask.shape[1], self.count)
        return frames // every if every else frames * self.count // len(frames)


def random_mask(rows: int, length: int) -> Bool[Tensor, "rows length"]:
    """Which places of rows of different lengths are real; the first row is full.

    >>> random_mask(2, 3).tolist()
    [[True, True, True], [True, True, False]]
    """
    return torch.arange(length) < (length - torch.arange(rows) % max(length - 1, 1))[:, None]


def random_frames(rows: int, length: int, size: int, random: np.random.Generator) -> Frames:
    """Frames of random numbers: see `Modality.random_column`."""
    mask = random_mask(rows, length)
    values = torch.from_numpy(random.standard_normal((rows, length, size)).astype(np.float32))
    return Frames(values * mask[..., None], mask)


def frames_for_each(frames: int, places: int) -> int:
    """How many frames each of so many places stands for, where neighbours were joined in pairs, or in stacks of any
    size; the last place may have fewer. 0 where that cannot have been: an encoder of one's own then shares them out
    evenly.

    >>> [frames_for_each(99, places) for places in (99, 50, 25, 33, 30)]
    [1, 2, 4, 3, 0]
    """
    every = 1
    while -(-frames // every) > places:
        every *= 2
    found = (number for number in (every, -(-frames // places)) if -(-frames // number) == places)
    return next(found, 0)


class Watcher(Protocol):
    """Gathers what a model cannot read of one column, row by row."""

    def read(self, example: Example, row: Row) -> None: ...

    def lines(self) -> list[str]:
        """One line for each matter, however many rows there were."""
        ...


class Field(ABC):
    """How values of one column become ids and tensors. `output`: a model writes this column, and does not read it.

    A field is built in passes over its values: `learn` where `learning` says it wants one (BPE), then `observe` for
    each value, then `settle`. Several fields are built together, in the same passes, by `Fields.build`.

    Settings: the class of its settings; elements: what a list may hold that is given instead of a text, None where
    only text is allowed; unusable: what reports call values for which `problem` gives a reason; example: a value as a
    user writes it, for documentation, empty where any text will do.
    """

    Settings: ClassVar[type[ColumnSettings]]
    elements: ClassVar[Elements | None] = None
    unusable: ClassVar[str] = ""
    example: ClassVar[str] = ""
    vocabulary: Vocabulary
    """Of fields that have symbols or names; `size` is 0 for those that have none."""

    def __init__(self, settings: Any, *, output: bool):
        self.settings = settings
        self.output = output

    @classmethod
    def for_settings(cls, settings: Any) -> type[Field]:
        """The class for these settings: a kind may have another for some of them."""
        return cls

    @property
    def size(self) -> int:
        """Symbols of its vocabulary; 0 where a column has none."""
        return len(self.vocabulary) if hasattr(self, "vocabulary") else 0

    @property
    def required_numbers(self) -> int:
        """Numbers that each value must have, or each step of it, as the training rows have them; 0 where any number
        will do, as for all that has a vocabulary. The models of an ensemble agree in it."""
        return 0 if hasattr(self, "vocabulary") or not self.settings.sized_by_data else self.size

    # --- Description

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        """One line about the column for the five answers; size: symbols, labels or numbers, where known; exact: they
        are as many, not just at most."""
        return f"{self.role(name)}: {self.settings.kind}, column '{self.settings.column or name}'"

    def role(self, name: str) -> str:
        return "output y" if self.output else f"input x ({name})"

    @property
    def stated_size(self) -> int | None:
        """`size`, as far as the settings alone state it or its limit."""
        return None

    @property
    def counted(self) -> str:
        """What `size` counts."""
        return "symbols of the vocabulary"

    # --- Values from tables, Python and JSON

    def from_list(self, items: Sequence[str]) -> str:
        """The text of a table that stands for a list of `elements`; a UserError where there is none."""
        raise NotImplementedError(f"{type(self).__name__} takes no lists")

    def from_items(self, items: Sequence[Any]) -> str:
        """The same for a list as Python, JSON or Parquet have it, whose items need not be texts."""
        return join_texts(items, self.from_list)

    def from_columns(self, cells: Sequence[Any]) -> str:
        """The same for the cells of several columns of a row, where the recipe's `column` names several."""
        return self.from_items(cells)

    def clean(self, value: str) -> str:
        """A value that a user gave, without halves of surrogate pairs; a UserError where it cannot be one at all."""
        return whole_characters(value)

    def problem(self, value: str) -> str | None:
        """Why a value cannot be used; None where it can."""
        return None

    def content(self, value: str) -> bytes:
        """What equal values have in common: text in Unicode form NFC, with single spaces between words."""
        return text_content(value).encode("utf-8", "surrogatepass")

    def json_schemas(self, text: Schema) -> list[Schema]:
        """The forms in which a server takes a value; text: the schema of a text."""
        if self.elements is None:
            return [text]
        more = {} if self.elements.may_be_empty else {"minItems": 1}
        listed = {"type": "array", "items": self.elements.schema} | more
        return [text, listed] if self.elements.may_be_empty else [listed, text]

    # --- Building

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

    def observe(self, value: str) -> None:  # noqa: B027 - most kinds need not write it
        """Count what a value is made of. By default nothing is learned from the training rows."""

    @property
    def unit(self) -> Unit | None:
        """The parts of a value that are counted and stored each for itself, so that a large table is read in blocks;
        None where a value has to be read as a whole."""
        return None

    def observe_part(self, part: str, times: int) -> None:
        """Count a part that occurs so many times."""
        raise NotImplementedError(f"{type(self).__name__} reads values as a whole")

    def part_ids(self, part: str) -> list[int]:
        """A part as it is stored."""
        raise NotImplementedError(f"{type(self).__name__} reads values as a whole")

    def settle(self) -> None:  # noqa: B027
        """Make the vocabulary of what was observed."""

    def build(self, values: Iterable[str]) -> None:
        """Build from the values of this column alone; they are held in memory only if there is something to learn."""
        if self.learning:
            values = list(values)
            self.learn(map(self.normalise, values))
        for value in values:
            self.observe(value)
        self.settle()

    # --- Rows and batches

    @abstractmethod
    def ids(self, value: str) -> list[int]:
        """A value as it is stored: a row of ids."""

    def fits(self, ids: Sequence[int]) -> bool:
        """Whether a model may be trained to write this."""
        return True

    def read(self, value: str) -> Example:
        """A value, read once for all who need it."""
        return Example(self, value, self.ids(value))

    def length(self, example: Example) -> int:
        """How much of a batch a value takes, in symbols."""
        return len(example.ids)

    def is_cut(self, example: Example) -> bool:
        """Whether more of a value is there than is read."""
        return False

    @abstractmethod
    def widths(self, store: Ragged) -> NDArray[np.int64]:
        """How much of a batch each stored row takes: (rows,)"""

    @abstractmethod
    def pad(self, store: Ragged, rows: Chosen) -> Column:
        """Stored rows as tensors."""

    @abstractmethod
    def batch(self, values: Sequence[str]) -> Column:
        """Values as tensors."""

    def collate(self, examples: Sequence[Example]) -> Column:
        """Values that were read as tensors."""
        return self.batch([example.value for example in examples])

    def watcher(self, name: str, *, named: bool, copied: Callable[[Row], list[str]] | None = None) -> Watcher | None:
        """Gathers what cannot be read of this column; named: lines begin with its name; copied: words of a row that
        its vocabulary lacks and that can be written all the same. None where all can be read."""
        return None

    # --- On disk

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write the vocabulary, and what else was learned, into a model's folder; the paths of these files."""
        return []

    @classmethod
    def load(cls, folder: Path, name: str, settings: Any, *, output: bool) -> Self:
        """Read what `save` wrote; a UserError names a missing or damaged file."""
        return cls(settings, output=output)


class Modality(Field):
    """A kind of input. hidden_parts: the places that can be hidden one by one, its own ("") or further ones; drawable:
    `to_drawable` draws its values."""

    hidden_parts: ClassVar[tuple[str, ...]] = ()
    drawable: ClassVar[bool] = False

    @property
    def limit(self) -> str:
        """The setting that cuts a value, for messages."""
        return ""

    def after_output(self, output: Field) -> None:
        """Called with the output's field once that is settled or loaded: for what an input can only know from there."""

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        """A batch of equal rows as places that can be hidden. part: which of its further places (`words`); shape: how
        they lie, where the column alone does not tell; changes: whether the encoder reads changes over time
        (`Encoder.sees_changes`), so that what hides a place must be none."""
        raise UserError(f"the places of such an input ({type(column).__name__}) cannot be left out one by one")

    def places(self, value: str, part: str = "") -> list[str] | None:
        """The names of the places of a value, or of its further ones; None where only the encoder knows them."""
        return None

    def extent(self, value: str) -> tuple[float, float]:
        """From which second to which a model reads a value that lasts (`timed` in its settings)."""
        raise UserError(f"inputs of kind {self.settings.kind} have no times")

    def display(self, value: str) -> str:
        """A value as messages and predictions name it."""
        return value

    def to_drawable(self, value: str) -> Drawable | None:
        """A value as a record to be drawn, cut as the model reads it: a subclass of `Drawable`, which names the class
        that draws attention over it. None where there is nothing to draw; `drawable` says whether there ever is."""
        return None

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Column:
        """Random values in the shapes of a batch, rows of different lengths and the longest of `length`: for a trace of
        the model, which needs no data."""
        raise UserError(f"inputs of kind {self.settings.kind} cannot be exported")

    def preview(self, example: Example) -> dict[str, Any]:
        """A value as the page of the studio shows it. The keys say how; no kind needs JavaScript of its own:

        - `picture`: the data URL of an image (`data_url`), with its `height` and `width` in pixels. Attention lies over
          it as a grid of rows and columns. With `axis`, labels that are evenly spaced from the left edge to the right,
          it is drawn as a wide strip (720 x 180) whose places are columns in time, as for sounds and series. `alt`: its
          alternative text ("spectrogram, 1.20 seconds").
        - `frames`: the data URLs of the frames of a film, with `times` in seconds, `height` and `width`.
        - `symbols`: of a text; `sentences`: lists of them.
        - `text`: a value that nothing looks at.
        """
        return {"text": example.value}


class Output(Field):
    """A kind of output."""

    def text_of(self, symbols: Sequence[str], ids: Sequence[int]) -> str:
        """What a model wrote, `<eos>` included, as text."""
        return symbols[0]

    def knows(self, value: str) -> bool:
        """Whether a model can write it at all."""
        return True

    def check(self, value: str) -> None:
        """Refuse an output that has no probability, before anything is computed."""


class NumericOutput(Output):
    """Rows of `size` numbers: what a model may give that has no symbols."""

    @abstractmethod
    def numbers(self, value: str) -> NDArray[np.float64]:
        """A value as plain numbers, (size,), by which a model is measured."""

    @abstractmethod
    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """What a model gives, (.., size), as plain numbers."""

    @abstractmethod
    def answer(self, numbers: NDArray[np.floating]) -> dict[str, Any]:
        """Plain numbers as a field of `Prediction`."""

    def answered(self, prediction: Prediction) -> NDArray[np.float64]:
        """The plain numbers of a prediction, (size,): what `answer` was given."""
        return np.array(prediction.vector, dtype=np.float64).ravel()

    def continued(self, row: Row, inputs: Mapping[str, Modality]) -> NDArray[np.float64] | None:
        """Plain numbers that repeat the end of a row's inputs; None where outputs do not go on from there."""
        return None

    def drawn(self, numbers: NDArray[np.floating]) -> Drawable | None:
        """Plain numbers as something to be drawn; None where there is nothing to draw."""
        return None


def _derive(base: Any, name: str, kind: type) -> Any:
    """Settings of a kind that has none of its own: those that all inputs, or all outputs, have."""
    fields: dict[str, Any] = {"kind": (Literal[name], name)}
    return create_model(f"{kind.__name__}Settings", __base__=base, __module__=kind.__module__, **fields)


def _check(base: type, name: str, kind: Any) -> None:
    check_subclass(f"kind '{name}'", kind, base)


inputs: Registry[type[Modality]] = Registry(
    "kind of input", settings=INPUTS, check=partial(_check, Modality), derive=partial(_derive, InputColumn)
)
outputs: Registry[type[Output]] = Registry(
    "kind of output", settings=OUTPUTS, check=partial(_check, Output), derive=partial(_derive, OutputColumn)
)


def field_of(settings: Any, *, output: bool) -> type[Field]:
    """The class that reads, or writes, a column of that kind."""
    kind: type[Field] = outputs[settings.kind] if output else inputs[settings.kind]
    return kind.for_settings(settings)


def file_of(folder: Path, what: str, name: str, *, suffix: str) -> Path:
    """`vocabulary-word.txt`: names of inputs are arbitrary, so unsafe characters are escaped."""
    return Path(folder) / f"{what}-{quote(name, safe='')}{suffix}"
