"""Series: rows of numbers over time, of one channel or several, read as frames or given as a forecast."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seq2see.data.batches import Frames, Numbers, Ragged
from seq2see.data.series_files import (
    MAX_NUMBERS,
    Series,
    SeriesInput,
    SeriesOutput,
    Values,
    filled,
    parse_series,
    series_of_columns,
    series_of_lists,
    shorten,
    write_series,
)
from seq2see.errors import SettingError, UserError, counted, listing, nearest
from seq2see.files import MEBIBYTE, read_json, write_bytes
from seq2see.modalities.base import (
    FRAMES_PER_SYMBOL,
    Chosen,
    Elements,
    Example,
    Field,
    FrameOcclusion,
    Modality,
    NumericOutput,
    Occlusion,
    Row,
    file_of,
    inputs,
    outputs,
    random_frames,
)
from seq2see.modalities.files import FileField, decoded
from seq2see.modalities.image import pixels_preview
from seq2see.modalities.vector import FARTHEST, NUMBERS, TOO_FAR, numbers_of
from seq2see.settings.columns import ColumnSettings

MOST_HIDDEN = 4
"""A mask takes at most one part in so many of a series, however short it is."""

_NUMBER = {"type": ["number", "null"]}
SCHEMA = {"anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}]}
"""Of one step in JSON."""


class ChannelStatistics:
    """The mean and the deviation of each channel over all values that are not missing, brought up to date series by
    series (Chan, Golub and LeVeque 1979)."""

    def __init__(self, channels: int):
        self.count, self.mean, self.squares = (np.zeros(channels) for _ in range(3))

    def add(self, values: Values) -> None:
        known = np.isfinite(values)
        count = known.sum(0)
        mean = np.where(known, values, 0).sum(0) / np.maximum(count, 1)
        apart, total = mean - self.mean, self.count + count
        self.squares = self.squares + np.where(known, np.square(values - mean), 0).sum(0)
        self.squares += np.square(apart) * self.count * count / np.maximum(total, 1)
        self.mean = self.mean + apart * count / np.maximum(total, 1)
        self.count = total

    @property
    def deviation(self) -> NDArray[np.float64]:
        return steady(np.sqrt(self.squares / np.maximum(self.count, 1)), self.mean)


def steady(deviation: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Deviations to divide by: 1 for a channel that never changes."""
    return np.where(deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-12), 1.0, deviation)


class SeriesColumn(Field):
    """What inputs and outputs share: a number of channels, learned from the first row, and their statistics.

    A stored row holds the bits of its numbers, step by step, normalised before they are rounded to float32: a large
    offset costs no digits.
    """

    elements: ClassVar[Elements | None] = Elements(
        "numbers, or of lists of them", (int, float, list, type(None)), SCHEMA, may_be_empty=False
    )
    unusable: ClassVar[str] = "numbers"
    example: ClassVar[str] = "1.2 5.1; 1.4 4.8"
    settings: Any

    def __init__(self, settings: Any, *, output: bool = False):
        super().__init__(settings, output=output)
        self.channels = len(settings.names)
        self._accepted = False
        self._statistics: ChannelStatistics | None = None
        self.mean = self.deviation = np.zeros(0)

    def series(self, value: str) -> Series:
        """A value as it is, checked; the first good one tells how many channels there are."""
        return self._checked(Series(parse_series(value), list(self.settings.names)))

    def _shortened(self, value: str) -> Series:
        """What is read of a value."""
        return self.series(value)

    def _checked(self, series: Series) -> Series:
        self._check_channels(series)
        if np.isnan(series.values).all():
            raise UserError(f"all {counted(series.values.size, 'value')} are missing")
        return series

    def _check_channels(self, series: Series) -> None:
        if self.channels and series.channels != self.channels:
            if not self._accepted and not self.settled:  # the number of channels is that of `names`
                names = counted(len(self.settings.names), "name")
                raise SettingError("names", f"{names}, and the series has {counted(series.channels, 'channel')}")
            whose = "the model reads" if self.settled else "every row has"
            raise UserError(f"{counted(series.channels, 'channel')}, and {whose} {self.channels:,}")

    @property
    def settled(self) -> bool:
        """Whether it is that of a model, whose sizes no row can change."""
        return len(self.mean) > 0

    def values(self, value: str) -> Values:
        """The numbers that are read of a value."""
        return self._shortened(value).values

    def from_items(self, items: Sequence[Any]) -> str:
        return write_series(series_of_lists(items))

    def from_columns(self, cells: Sequence[Any]) -> str:
        return write_series(series_of_columns(cells))

    @property
    def required_numbers(self) -> int:
        return self.channels

    # --- Building

    def problem(self, value: str) -> str | None:
        """Why a value cannot be used; a SettingError where `names` do not fit the first value."""
        try:
            series = self._shortened(value)
            self._accept(series)
            self._check_range(series)
        except SettingError:
            raise
        except UserError as error:
            return str(error)
        return None

    def _check_range(self, series: Series) -> None:
        """Numbers that a model has an answer for, once it is known what it was trained on."""
        if not self.settled or self.output or self.settings.normalise == "series":
            return
        far = np.argwhere(np.abs(self._normalised(series.values)) > FARTHEST)
        if len(far):
            step, channel = (int(number) for number in far[0])
            number = f"step {step + 1}, channel {channel + 1} is {series.values[step, channel]:.7g}"
            raise UserError(f"{number}, {TOO_FAR}")

    def _accept(self, series: Series) -> None:
        """Every further value has to be of the same size."""
        self.channels, self._accepted = series.channels, True

    def observe(self, value: str) -> None:
        series = self._shortened(value)
        self._accept(series)
        if self._statistics is None:
            self._statistics = ChannelStatistics(self.channels)
        self._statistics.add(series.values)

    def settle(self) -> None:
        self.mean, self.deviation = np.zeros(self.channels), np.ones(self.channels)
        if self._statistics is not None and self.settings.normalise == "channel":
            self.mean, self.deviation = self._statistics.mean, self._statistics.deviation

    def ids(self, value: str) -> list[int]:
        return self._bits(self.values(value))

    def _bits(self, values: Values) -> list[int]:
        with np.errstate(over="ignore"):
            bits: list[int] = self._normalised(values).astype(np.float32).view(np.int32).ravel().tolist()
        return bits

    def _normalised(self, values: Values) -> Values:
        return (values - self.mean) / self.deviation

    # --- On disk

    def save(self, folder: Path, name: str) -> list[Path]:
        path = file_of(folder, "series", name, suffix=".json")
        write_bytes(path, json.dumps(self._learned()).encode())
        return [path]

    def _learned(self) -> dict[str, Any]:
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    @classmethod
    def load(cls, folder: Path, name: str, settings: Any, *, output: bool) -> Self:
        path = file_of(folder, "series", name, suffix=".json")
        field = cls(settings, output=output)
        stored = read_json(path, most=64 * MEBIBYTE, what="a file of means and deviations of channels")
        try:
            field._restore(stored)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise UserError(f"{path}: damaged, it does not hold means and deviations of channels ({error})") from None
        return field

    def _restore(self, stored: Any) -> None:
        self.mean, self.deviation = (numbers_of(stored[key]) for key in ("mean", "deviation"))
        self.channels = len(self.mean)
        if self.mean.shape != self.deviation.shape or not self.channels or not (self.deviation > 0).all():
            raise ValueError("as many means as deviations above 0 expected")


@inputs.register("series")
class SeriesField(SeriesColumn, Modality):
    """Numbers in the cells of a table; a place is a step, or several where the encoder joins them.

    >>> field = SeriesField(SeriesInput())
    >>> field.build(["1 5; 3 5", "1 5; ? 5; 3 5"])
    >>> frames = field.batch(["1 5; ? 5; 3 5"])
    >>> frames.values[0].tolist(), frames.names
    ([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [['t=0', 't=1', 't=2']])
    """

    Settings: ClassVar[type[ColumnSettings]] = SeriesInput
    hidden_parts: ClassVar[tuple[str, ...]] = ("",)
    drawable: ClassVar[bool] = True
    settings: SeriesInput

    @classmethod
    def for_settings(cls, settings: SeriesInput) -> type[Field]:
        return SeriesFileField if settings.file else cls

    @property
    def size(self) -> int:
        """Numbers of a frame."""
        return self.channels * (2 if self.settings.indicator else 1)

    @property
    def counted(self) -> str:
        return "numbers of each step"

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        settings = self.settings
        names = f" ({', '.join(settings.names)})" if settings.names else ""
        many = "" if size is None else f" of {counted(size // (2 if settings.indicator else 1), 'channel')}{names}"
        where = f"{'paths in ' if settings.file else ''}column '{settings.column or name}'"
        notes = [f"{settings.pooling} of {settings.stride} steps"] if settings.stride > 1 else []
        notes += {"none": []}.get(settings.normalise, [f"each {settings.normalise} normalised"])
        notes += ["missing values marked"] if settings.indicator else []
        return f"{self.role(name)}: a series{many}, {', '.join([where, *notes])}"

    # --- Reading

    def _shortened(self, value: str) -> Series:
        return shorten(self.series(value), self.settings)

    def read(self, value: str) -> Example:
        series = self._shortened(value)
        return Example(self, value, self._bits(series.values), series.step_names, series.total)

    def length(self, example: Example) -> int:
        return self._room(len(example.ids))

    def _room(self, numbers: int) -> int:
        return max(numbers // max(self.channels, 1) // FRAMES_PER_SYMBOL, 1)

    def is_cut(self, example: Example) -> bool:
        return example.total > len(example.ids) // self.channels

    @property
    def limit(self) -> str:
        return f"longest {self.settings.longest:,}"

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return np.maximum(store.lengths // self.channels // FRAMES_PER_SYMBOL, 1)

    def pad(self, store: Ragged, rows: Chosen) -> Frames:
        """Stored rows, changed at random where the settings say so, by torch's own generator."""
        values = [self._stored(store[int(row)]) for row in rows]
        randoms: list[np.random.Generator | None] = [None] * len(values)
        if self.settings.augment != type(self.settings.augment)():
            seeds = np.random.SeedSequence(int(torch.randint(1 << 62, ()))).spawn(len(values))
            randoms = [np.random.default_rng(seed) for seed in seeds]
        return self._padded([self._frames(each, random) for each, random in zip(values, randoms, strict=True)])

    def batch(self, values: Sequence[str]) -> Frames:
        return self.collate([self.read(value) for value in values])

    def collate(self, examples: Sequence[Example]) -> Frames:
        """Values as they are; steps are named by their time stamps, or by their number from 0."""
        read = [self._frames(self._stored(np.array(example.ids, dtype=np.int32))) for example in examples]
        if any(not bool((frames.abs() <= FARTHEST).all()) for frames in read):
            raise UserError(f"a number is {TOO_FAR}")
        return replace(self._padded(read), names=[example.symbols for example in examples])

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Frames:
        return random_frames(rows, length, self.size, random)

    def _stored(self, bits: NDArray[np.int32]) -> Values:
        """The numbers of a stored row: normalised, NaN where they are missing."""
        return np.asarray(bits).view(np.float32).reshape(-1, self.channels).astype(np.float64)

    def _padded(self, rows: Sequence[Float[Tensor, "steps size"]]) -> Frames:
        mask = pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)
        return Frames(pad_sequence(list(rows), batch_first=True), mask)

    def _frames(self, values: Values, random: np.random.Generator | None = None) -> Float[Tensor, "steps size"]:
        """Normalised numbers as a network reads them: without gaps, changed at random where that is asked for."""
        missing = np.isnan(values)
        values = filled(values, self.settings.missing)
        if random is not None:
            values = self._changed(values, random)
        read = np.concatenate([values, missing], axis=1) if self.settings.indicator else values
        return torch.from_numpy(read.astype(np.float32))

    def _normalised(self, values: Values) -> Values:
        if self.settings.normalise != "series":
            return super()._normalised(values)
        own = ChannelStatistics(self.channels)
        own.add(values)
        return (values - own.mean) / own.deviation

    def _changed(self, values: Values, random: np.random.Generator) -> Values:
        augment, steps = self.settings.augment, len(values)
        values = values * random.uniform(1 - augment.scale, 1 + augment.scale)
        values = values + augment.noise * random.standard_normal(values.shape)
        for _ in range(augment.time_masks):
            width = int(random.integers(0, min(augment.time_width, steps // MOST_HIDDEN) + 1))
            start = int(random.integers(0, steps - width + 1))
            values[start : start + width] = values.mean(0)
        return values

    # --- Shown and hidden

    def to_drawable(self, value: str) -> Series:
        """In its own units, with its gaps."""
        return self._shortened(value)

    def preview(self, example: Example) -> dict[str, Any]:
        """Its channels as lines, one above the other, over time from left to right."""
        values = self._stored(np.array(example.ids, dtype=np.int32))
        names = example.symbols
        axis = [names[round(share * (len(names) - 1))] for share in (0, 0.25, 0.5, 0.75, 1)]
        alt = f"{counted(self.channels, 'channel')} over {counted(len(values), 'step')}"
        return pixels_preview(drawn_lines(values)) | {"axis": axis, "alt": alt}

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        """A stretch of time is hidden by the mean of each channel."""
        return FrameOcclusion(column, shape[0], axes=(1,))


class SeriesFileField(SeriesField, FileField):
    """Numbers in files, decoded once and stored like those of cells: a file of text is slow to read again.

    columns: the names of the channels in the first file that has names, empty where none has; other files may have them
    in another order.
    """

    elements: ClassVar[Elements | None] = None
    unusable: ClassVar[str] = "a file"

    def __init__(self, settings: SeriesInput, *, output: bool = False):
        super().__init__(settings, output=output)
        self.columns: list[str] = []

    def series(self, value: str) -> Series:
        return self._checked(self._ordered(Series.from_arrays(self.decoder.arrays(value, self.settings))))

    def _ordered(self, series: Series) -> Series:
        """A series with its channels in the order of `columns`; one without names is taken as it is."""
        if not self.columns or len(series.names) != series.channels or series.names == self.columns:
            return series
        missing = [name for name in self.columns if name not in series.names]
        if missing:
            raise UserError(
                f"no column '{missing[0]}'{nearest(missing[0], series.names)}; it has: {listing(series.names)}"
            )
        self._check_channels(series)
        places = [series.names.index(name) for name in self.columns]
        return replace(series, values=series.values[:, places], names=list(self.columns))

    def _accept(self, series: Series) -> None:
        super()._accept(series)
        if not self.settings.names:  # which choose columns by themselves
            self.columns = self.columns or series.names

    def _shortened(self, value: str) -> Series:
        """What is read of a file is kept for further passes over the training rows, not the whole of a long one."""

        def decode() -> list[NDArray[Any]]:
            series = super(SeriesFileField, self)._shortened(value)
            return [*series.to_arrays(), np.array([series.first, series.stride, series.total])]

        *arrays, (first, stride, total) = decoded(self.job(value).key, decode)
        series = replace(Series.from_arrays(arrays), first=int(first), stride=int(stride), uncut=int(total))
        self._check_channels(series)
        return self._ordered(series)

    def problem(self, value: str) -> str | None:
        reason = super().problem(value)
        if reason is not None and reason.startswith("no such file") and _holds_numbers(Path(value).name):
            return "no such file; it holds numbers: `source: cells`"
        return reason

    def read(self, value: str) -> Example:
        with _named(value):
            return super().read(value)

    def observe(self, value: str) -> None:
        with _named(value):
            super().observe(value)

    def to_drawable(self, value: str) -> Series:
        with _named(value):
            return super().to_drawable(value)

    def _learned(self) -> dict[str, Any]:
        return super()._learned() | ({"columns": self.columns} if self.columns else {})

    def _restore(self, stored: Any) -> None:
        super()._restore(stored)
        columns = stored.get("columns", [])
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ValueError("a list of names of columns expected")
        if len(set(columns)) != len(columns) or len(columns) not in (0, self.channels):
            raise ValueError("as many different names of columns as means expected")
        self.columns = columns


def _holds_numbers(text: str) -> bool:
    try:
        return parse_series(text).size > 1
    except UserError:
        return False


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Errors begin with the name of the file."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{Path(path)}: {error}") from None


@outputs.register("series")
class SeriesOutputField(SeriesColumn, NumericOutput):
    """Steps that a model gives at once, normalised while it learns, restored when it answers.

    >>> field = SeriesOutputField(SeriesOutput())
    >>> field.build(["1 10; 3 30", "1 10; 3 30"])
    >>> field.batch(["3 10; 1 30"]).values, field.answer(field.restored(np.array([1.0, -1.0, -1.0, 1.0])))
    (tensor([[ 1., -1., -1.,  1.]]), {'vector': [[3.0, 10.0], [1.0, 30.0]]})
    """

    Settings: ClassVar[type[ColumnSettings]] = SeriesOutput
    settings: SeriesOutput

    def __init__(self, settings: SeriesOutput, *, output: bool = True):
        super().__init__(settings, output=output)
        self.steps = settings.horizon

    @property
    def size(self) -> int:
        """Numbers of all steps."""
        return self.steps * self.channels

    @property
    def counted(self) -> str:
        return "numbers of the series"

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        names = f" ({', '.join(self.settings.names)})" if self.settings.names else ""
        many = "" if size is None else f", {size:,} numbers"
        steps = f" of {counted(self.steps, 'step')}" if self.steps else ""
        normal = ", each channel normalised" if self.settings.normalise == "channel" else ""
        return f"output y: a series{steps}{names}, column '{self.settings.column or name}'{many}{normal}"

    def _checked(self, series: Series) -> Series:
        series = super()._checked(series)
        if self.steps and len(series) != self.steps:
            others = "the model gives" if self.settled else "every row has"
            whose = "`horizon` says" if self.settings.horizon else others
            raise UserError(f"{counted(len(series), 'step')}, and {whose} {self.steps:,}")
        if np.isnan(series.values).any():
            step = int(np.flatnonzero(np.isnan(series.values).any(1))[0])
            raise UserError(f"step {step + 1:,} has a missing value; a forecast needs all its values")
        return series

    def _accept(self, series: Series) -> None:
        super()._accept(series)
        self.steps = len(series)

    def length(self, example: Example) -> int:
        return self._width

    @property
    def _width(self) -> int:
        return max(self.size // NUMBERS, 1)

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        return np.full(len(store), self._width, dtype=np.int64)

    def pad(self, store: Ragged, rows: Chosen) -> Numbers:
        starts = np.asarray(store.offsets[np.asarray(rows, dtype=np.int64)])
        bits = np.asarray(store.flat[starts[:, None] + np.arange(self.size)])
        return Numbers(torch.from_numpy(bits.view(np.float32)))

    def batch(self, values: Sequence[str]) -> Numbers:
        normal = np.stack([self._normalised(self.values(value)).ravel() for value in values])
        return Numbers(torch.from_numpy(normal.astype(np.float32)))

    # --- Plain numbers

    def numbers(self, value: str) -> NDArray[np.float64]:
        return self.values(value).ravel()

    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        plain = values * np.tile(self.deviation, self.steps) + np.tile(self.mean, self.steps)
        return np.asarray(plain, dtype=np.float64)

    def answer(self, numbers: NDArray[np.floating]) -> dict[str, Any]:
        """A list of numbers, or of rows of them where there are several channels."""
        return {"vector": numbers.tolist() if self.channels == 1 else self._rows(numbers).tolist()}

    def drawn(self, numbers: NDArray[np.floating]) -> Series:
        return Series(self._rows(numbers).astype(np.float64), list(self.settings.names))

    def _rows(self, numbers: NDArray[np.floating]) -> NDArray[np.floating]:
        return numbers.reshape(-1, self.channels)

    def continued(self, row: Row, inputs: Mapping[str, Modality]) -> NDArray[np.float64] | None:
        """The last known values of the first input that has these channels, once for each step."""
        for name, field in inputs.items():
            if not isinstance(field, SeriesField):
                continue
            series = field.series(row[name])
            places = series.continued_by(self.settings.names, self.channels)
            if places is not None:
                last = [_last(series.values[:, place]) for place in places]
                known = np.where(np.isnan(last), self.mean, last)
                return np.tile(known, self.steps)
        return None

    # --- On disk

    def _learned(self) -> dict[str, Any]:
        return super()._learned() | {"steps": self.steps}

    def _restore(self, stored: Any) -> None:
        super()._restore(stored)
        steps = stored["steps"]
        if type(steps) is not int or not 0 < steps * self.channels <= MAX_NUMBERS:
            raise ValueError(f"a number of steps expected, got {steps!r:.40}")
        self.steps = steps


def _last(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else math.nan


# --- A small picture, for a page

WIDE, HIGH = 720, 180
SHARPER = 2
"""The picture is drawn so many times as large, and then made smaller: lines without steps."""
INK, PAPER = 40, 255


def drawn_lines(values: Values) -> NDArray[np.uint8]:
    """Each channel as a line in a strip of its own, gaps left open: (height, width), dark on white."""
    picture = Image.new("L", (WIDE * SHARPER, HIGH * SHARPER), PAPER)
    brush, (steps, channels) = ImageDraw.Draw(picture), values.shape
    strip = HIGH * SHARPER / channels
    across = (np.arange(steps) + 0.5) / steps * WIDE * SHARPER
    for channel in range(channels):
        column = values[:, channel]
        low, high = (np.nanmin(column), np.nanmax(column)) if np.isfinite(column).any() else (0.0, 0.0)
        share = (column - low) / (high - low) if high > low else np.where(np.isfinite(column), 0.5, math.nan)
        down = strip * (channel + 0.92 - 0.84 * share)
        for first, last in _runs(np.isfinite(column)):
            points = list(zip(across[first:last].tolist(), down[first:last].tolist(), strict=True))
            if len(points) == 1:
                points = [points[0], (points[0][0] + SHARPER, points[0][1])]
            brush.line(points, fill=INK, width=2 * SHARPER)
    return np.asarray(picture.reduce(SHARPER))


def _runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of each stretch that is known."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    yield from ((int(first), int(last)) for first, last in edges.reshape(-1, 2))
