"""Vectors: rows of numbers, read or given, standardised by what was seen in training."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from pydantic import Field as Setting
from torch import Tensor

from seq2see.data.batches import Numbers, Ragged
from seq2see.data.series_files import LARGEST
from seq2see.errors import UserError, counted
from seq2see.evaluation import OutputType
from seq2see.files import MEBIBYTE, read_json, shortened, write_bytes
from seq2see.modalities.base import Chosen, Elements, Example, Modality, NumericOutput, file_of, inputs, outputs
from seq2see.registry import Problem
from seq2see.settings.base import Amount, Settings, no_effect
from seq2see.settings.columns import ColumnSettings, InputColumn, OutputColumn

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class NoiseSettings(Settings):
    """How a vector is spoilt at random while a model is trained; what it should give stays as it is (denoising)."""

    kind: Literal["none", "gaussian", "masking"] = Setting(
        "none", description="gaussian: added to every number; masking: some become 0 (standardised: their mean)"
    )
    amount: Amount = Setting(
        0.0, description="gaussian: its deviation (standardised: of theirs); masking: the share of the numbers, below 1"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.kind == "none":
            yield from no_effect(self, path, ["amount"], "noise.kind is none")
        elif not self.amount:
            yield Problem(f"{path}.amount", f"0 means no noise; allowed: above 0, or {path}.kind none", "noise")
        elif self.kind == "masking" and self.amount >= 1:
            message = f"masking {self.amount:g} leaves nothing to read; allowed: above 0, below 1"
            yield Problem(f"{path}.amount", message, "noise")


class VectorInput(InputColumn):
    """One input that is a row of numbers, always as many: how many is learned from the first row."""

    usual_encoder: ClassVar[str] = "dense"
    one_place: ClassVar[bool] = True
    kind: Literal["vector"] = Setting(
        "vector", description="what the column holds: numbers between spaces or commas, or a list of numbers"
    )
    standardise: bool = Setting(True, description="read (x - mean) / deviation, of the rows trained on")
    noise: NoiseSettings = NoiseSettings()

    @property
    def sized_by_data(self) -> bool:
        return True

    @property
    def noise_note(self) -> str:
        return "" if self.noise.kind == "none" else f"{self.noise.kind} {self.noise.amount:g}"


class VectorOutput(OutputColumn):
    """An output that is a row of numbers, always as many."""

    noun: ClassVar[str] = "a vector"
    numeric: ClassVar[bool] = True
    plain_by: ClassVar[str] = "standardise false"
    usual_decoder: ClassVar[str] = "reconstruction"
    measured_as: ClassVar[OutputType] = "numbers"
    kind: Literal["vector"] = Setting("vector", description="what the column holds")
    column: str | None = Setting(None, description="column of the table; not given: `output`")
    standardise: bool = Setting(
        True, description="learn (x - mean) / deviation, of the rows trained on; outputs are restored"
    )

    @property
    def normalised(self) -> bool:
        return self.standardise

    @property
    def sized_by_data(self) -> bool:
        return True


# --- Rows of numbers as text


def parsed(text: str) -> NDArray[np.float64]:
    """The numbers of a text, which stand between spaces or commas, in brackets or not.

    >>> parsed("[1, -2.5 3e2]").tolist()
    [1.0, -2.5, 300.0]
    """
    words = text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
    if not words:
        raise UserError("there is no number")
    return np.array([_number(word, place) for place, word in enumerate(words, start=1)])


def _number(word: str, place: int) -> float:
    try:
        number = float(word)
    except ValueError:
        raise UserError(f"number {place} is '{word}', which is not a number") from None
    if not math.isfinite(number) or abs(number) > LARGEST:
        raise UserError(f"number {place} is {word}; allowed: from {-LARGEST:.1e} to {LARGEST:.1e}")
    return number


def as_many(numbers: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """The same numbers, where there are as many as there have to be."""
    if len(numbers) != size:
        raise UserError(f"{counted(len(numbers), 'number')}, and every row has {size:,}")
    return numbers


def written(numbers: Iterable[float | Iterable[float]]) -> str:
    """Numbers as text, with spaces between them; rows of them with semicolons between rows.

    >>> written([1.0, 0.25]), written([[1.0, 0.25], [2.0, 3.0]])
    ('1 0.25', '1 0.25; 2 3')
    """
    rows = [f"{number:.7g}" if isinstance(number, int | float) else written(number) + ";" for number in numbers]
    text = " ".join(rows)
    return text.removesuffix(";") if len(rows) > 1 else text


FARTHEST = 1e15
"""Deviations from the mean beyond which a network's sums could overflow."""
TOO_FAR = f"more than {FARTHEST:g} deviations from what the model was trained on, and it has no answer for that"
NUMBERS = 256
"""So many take about as much room in a batch as a symbol of text."""


@inputs.register("vector")
class VectorField(Modality):
    """Numbers as (x - mean) / deviation, where the settings say so; those that never differ are read as zeros.

    A stored row holds the bits of its numbers. What is spoilt at random (denoising) is spoilt when a batch is drawn for
    training, by torch's own generator.

    >>> field = VectorField(VectorInput())
    >>> field.build(["1 5", "3 5"])
    >>> field.batch(["3 5"]).values, field.problem("3")
    (tensor([[1., 0.]]), '1 number, and every row has 2')
    """

    Settings: ClassVar[type[ColumnSettings]] = VectorInput
    elements: ClassVar[Elements] = Elements("numbers", (int, float), {"type": "number"}, may_be_empty=False)
    unusable: ClassVar[str] = "numbers"
    example: ClassVar[str] = "0.5 1.25 -3"
    settings: VectorInput | VectorOutput

    def __init__(self, settings: VectorInput | VectorOutput, *, output: bool = False):
        super().__init__(settings, output=output)
        self._seen, self._length, self._settled = 0, 0, False
        self.mean = self.deviation = np.zeros(0)

    @property
    def size(self) -> int:
        """Numbers in each row."""
        return self._length

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        many = "" if size is None else f" of {size:,} numbers"
        noise = getattr(self.settings, "noise", None)
        spoilt = f", {noise.kind} noise {noise.amount:g} while training" if noise and noise.kind != "none" else ""
        standard = ", standardised" if self.settings.standardise else ""
        return f"{self.role(name)}: a vector{many}, column '{self.settings.column or name}'{standard}{spoilt}"

    @property
    def counted(self) -> str:
        return "numbers of the vector"

    def from_list(self, items: Sequence[str]) -> str:
        return " ".join(items)

    # --- Building

    def problem(self, value: str) -> str | None:
        """Why a value cannot be used; None where it can. The first good one tells how many numbers there are."""
        try:
            numbers = self._parsed(value)
            self._length = len(numbers)
            self._check_range(numbers)
        except UserError as error:
            return str(error)
        return None

    def _check_range(self, numbers: NDArray[np.float64]) -> None:
        """Refuse numbers that are too large for a network to read, as soon as their mean and deviation are known."""
        if self.output or (self.settings.standardise and not self._settled):
            return
        standard = self._standard(numbers) if self._settled else torch.from_numpy(numbers)
        far = (~(standard.abs() <= FARTHEST)).nonzero().flatten().tolist()
        if far:
            raise UserError(f"number {far[0] + 1} is {numbers[far[0]]:.7g}, {TOO_FAR}")

    def _parsed(self, value: str) -> NDArray[np.float64]:
        found = parsed(value)
        return as_many(found, self._length) if self._length else found

    def observe(self, value: str) -> None:
        """Mean and sum of squared differences, brought up to date row by row (Welford)."""
        numbers = self._parsed(value)
        if not self._seen:
            self._length = len(numbers)
            self.mean, self.deviation = np.zeros(self._length), np.zeros(self._length)
        self._seen += 1
        apart = numbers - self.mean
        self.mean = self.mean + apart / self._seen
        self.deviation = self.deviation + apart * (numbers - self.mean)

    def settle(self) -> None:
        self.deviation = np.sqrt(self.deviation / max(self._seen, 1))
        if not self.settings.standardise:
            self.mean, self.deviation = np.zeros(self._length), np.ones(self._length)
        self.deviation[self.deviation <= 1e-12 * np.maximum(np.abs(self.mean), 1e-12)] = 1.0
        self._settled = True

    # --- Rows and batches

    def ids(self, value: str) -> list[int]:
        found: list[int] = self._parsed(value).astype(np.float32).view(np.int32).tolist()
        return found

    def length(self, example: Example) -> int:
        return self._width

    @property
    def _width(self) -> int:
        return max(self._length // NUMBERS, 1)

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return np.full(len(store), self._width, dtype=np.int64)

    def pad(self, store: Ragged, rows: Chosen) -> Numbers:
        starts = np.asarray(store.offsets[np.asarray(rows, dtype=np.int64)])
        bits = np.asarray(store.flat[starts[:, None] + np.arange(self._length)])
        return Numbers(self._spoilt(self._standard(bits.view(np.float32))))

    def batch(self, values: Sequence[str]) -> Numbers:
        rows = [self._parsed(value) for value in values]
        for numbers in rows:
            self._check_range(numbers)
        return Numbers(self._standard(np.stack(rows)))

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Numbers:
        return Numbers(torch.from_numpy(random.standard_normal((rows, self.size)).astype(np.float32)))

    def _standard(self, numbers: NDArray[np.floating]) -> Float[Tensor, "*batch numbers"]:
        with np.errstate(over="ignore"):
            return torch.from_numpy(((numbers - self.mean) / self.deviation).astype(np.float32))

    def _spoilt(self, values: Float[Tensor, "batch numbers"]) -> Float[Tensor, "batch numbers"]:
        noise = self.settings.noise if isinstance(self.settings, VectorInput) else None
        if noise is None or noise.kind == "none":
            return values
        if noise.kind == "gaussian":
            return values + noise.amount * torch.randn_like(values)
        return values * (torch.rand_like(values) >= noise.amount)

    # --- On disk

    def save(self, folder: Path, name: str) -> list[Path]:
        stored = {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}
        path = file_of(folder, "numbers", name, suffix=".json")
        write_bytes(path, json.dumps(stored).encode())
        return [path]

    @classmethod
    def load(cls, folder: Path, name: str, settings: VectorInput | VectorOutput, *, output: bool) -> Self:
        path = file_of(folder, "numbers", name, suffix=".json")
        field = cls(settings, output=output)
        stored = read_json(path, most=256 * MEBIBYTE, what="a file of means and deviations")
        try:
            field.mean, field.deviation = (numbers_of(stored[key]) for key in ("mean", "deviation"))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise UserError(f"{path}: damaged, it does not hold means and deviations ({error})") from None
        if field.mean.shape != field.deviation.shape or not len(field.mean):
            raise UserError(f"{path}: damaged: as many means as deviations expected")
        if not (field.deviation > 0).all():
            raise UserError(f"{path}: damaged: deviations above 0 expected, got {field.deviation.min()}")
        field._length, field._settled = len(field.mean), True
        return field


@outputs.register("vector")
class VectorOutputField(VectorField, NumericOutput):
    """Numbers that a model gives, standardised while it learns."""

    Settings: ClassVar[type[ColumnSettings]] = VectorOutput

    def __init__(self, settings: VectorInput | VectorOutput, *, output: bool = True):
        super().__init__(settings, output=output)

    def numbers(self, value: str) -> NDArray[np.float64]:
        return self._parsed(value)

    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        return np.asarray(values * self.deviation + self.mean, dtype=np.float64)

    def answer(self, numbers: NDArray[np.floating]) -> dict[str, Any]:
        return {"vector": numbers.tolist()}


def numbers_of(stored: object) -> NDArray[np.float64]:
    """Numbers of a model's file; ValueError where there is anything else."""
    if not isinstance(stored, list) or not all(type(number) in (int, float) for number in stored):
        raise ValueError(f"a list of numbers expected, got {shortened(stored)}")
    numbers = np.array(stored, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError("a number that is not finite")
    return numbers
