"""Series: rows of numbers over time, from the text of a cell or from a file. Nothing here needs torch."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from pydantic import Field

from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.errors import CellError, UserError, counted, imported, nearest
from seq2see.files import MEBIBYTE, shortened
from seq2see.looks import Drawable
from seq2see.registry import Problem
from seq2see.settings.base import Amount, Count, Positive, Settings, Share, no_effect
from seq2see.settings.columns import OutputColumn

Values = Float[NDArray[np.float64], "steps channels"]
"""Numbers of a series; NaN where one is missing."""


@dataclass(frozen=True)
class Series(Drawable):
    """A series in its own units. names: of its channels, times: of its steps, both empty where it has none.

    Where it is part of a longer one, as a model reads it: each step stands for `stride` of the whole, the first one
    is number `first` of the whole, and there were `uncut` steps before it was cut (None: it was not).
    """

    view: ClassVar[str] = "seq2see.seeing.series:SeriesOverlay"
    values: Values
    names: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    first: int = 0
    stride: int = 1
    uncut: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    def to_arrays(self) -> list[NDArray[Any]]:
        """The numbers, and the names of channels and steps as JSON in UTF-8."""
        return [self.values, np.frombuffer(json.dumps([self.names, self.times]).encode(), dtype=np.uint8)]

    @classmethod
    def from_arrays(cls, arrays: Sequence[NDArray[Any]]) -> Series:
        """What `to_arrays` gave, perhaps in a process that a file controls: anything else is a MediaError."""
        values, named = arrays
        try:
            names, times = json.loads(named.tobytes())
            if values.ndim != 2 or values.dtype != np.float64 or len(times) not in (0, len(values)):
                raise ValueError("arrays of other shapes")
            if not all(isinstance(name, str) for name in [*names, *times]):
                raise ValueError("names that are no texts")
        except (ValueError, TypeError, RecursionError):
            raise MediaError("its decoder did not return a series") from None
        return cls(values, names, times)

    @property
    def channels(self) -> int:
        return int(self.values.shape[1])

    @property
    def total(self) -> int:
        """Steps, those counted that were cut off."""
        return len(self) if self.uncut is None else self.uncut

    @property
    def step_names(self) -> list[str]:
        """Time stamps, or numbers of steps as `t=12` where there are none.

        >>> Series(np.zeros((2, 1)), first=12, stride=4).step_names
        ['t=12', 't=16']
        """
        return self.times or [f"t={self.first + step * self.stride}" for step in range(len(self))]

    def continued_by(self, names: Sequence[str], channels: int) -> list[int] | None:
        """The channels that a series of these names, or of so many channels, goes on with: those of the same names, or
        the first ones where one of them has no names; None where there are not all of them.

        >>> series = Series(np.zeros((5, 2)), ["level", "wind"])
        >>> series.continued_by(["wind"], 1), series.continued_by([], 2), series.continued_by(["rain"], 1)
        ([1], [0, 1], None)
        """
        if names and self.names:
            return [self.names.index(name) for name in names] if set(names) <= set(self.names) else None
        return list(range(channels)) if channels <= self.channels else None


# ---------------- Settings


class SeriesAugmentSettings(Settings):
    """Random changes of series during training."""

    noise: Amount = Field(0.0, description="deviation of the Gaussian noise added to every number, once normalised")
    scale: Share = Field(0.0, description="maximum relative change of all numbers together, once normalised")
    time_masks: Count = Field(0, description="number of stretches of time to set to the mean")
    time_width: Positive = Field(10, description="maximum width of such a stretch in steps, at most a quarter of all")

    def check(self, recipe: Any, path: str) -> Iterator[Problem]:
        if not self.time_masks:
            yield from no_effect(self, path, ["time_width"], "time_masks is 0")


class SeriesInput(MediaSettings):
    """A series input: numbers over time, of one channel or several, in cells of the table or in files of their own."""

    usual_encoder: ClassVar[str] = "pyramidal"
    content: ClassVar[str] = "frames"
    noun: ClassVar[str] = "a series"
    media: ClassVar[str] = ".csv,.tsv,.npy,.parquet"
    decoded_arrays: ClassVar[int] = 2
    kind: Literal["series"] = Field("series", description="kind of the input")
    column: str | None = Field(
        None,
        description="column of the table (default: the name of the input); several, as in t* or x, y, z: one for each "
        "step where cells hold one number, one for each channel where they hold more",
    )
    source: Literal["cells", "files"] = Field(
        "cells",
        description="cells: the numbers, channels between spaces or commas, steps between semicolons; files: paths, "
        "relative to the table, of .csv, .tsv, .npy or .parquet files with a row for each step",
    )
    names: list[str] = Field(
        [], description="names of the channels; for files with named columns, those to read (default: all)"
    )
    time: str | None = Field(None, description="files: column of the time stamps, by which steps are named")
    header: bool | None = Field(
        None, description="files: the first line of a .csv names columns (default: if it contains no number)"
    )
    stride: Positive = Field(1, description="number of neighbouring steps that are read as one")
    pooling: Literal["mean", "first"] = Field("mean", description="how stride combines steps")
    longest: Count = Field(
        4096, description="maximum length in steps, after stride; longer series are cut; 0: no limit"
    )
    keep: Literal["last", "first"] = Field("last", description="which steps of a longer series are kept")
    missing: Literal["interpolate", "zero"] = Field(
        "interpolate",
        description="what replaces missing values (empty, nan, NA, null, ?): a straight line between neighbours, or "
        "0, the mean once normalised",
    )
    indicator: bool = Field(False, description="a second number for each channel says whether its value is missing")
    normalise: Literal["channel", "series", "none"] = Field(
        "channel",
        description="normalised to mean 0 and deviation 1: each channel over the training rows, each series by "
        "itself, or not at all",
    )
    augment: SeriesAugmentSettings = SeriesAugmentSettings()

    @property
    def file(self) -> bool:
        return self.source == "files"

    @property
    def sized_by_data(self) -> bool:
        return True

    @property
    def most_frames(self) -> int:
        return self.longest

    @property
    def limit_text(self) -> str:
        return f"{self.longest:,} steps"

    def decode(self, path: str) -> list[NDArray[Any]]:
        return read_series(path, self).to_arrays()

    def check(self, recipe: Any, path: str) -> Iterator[Problem]:
        yield from _check_names(self.names, path)
        if not self.file:
            yield from no_effect(self, path, ["time", "header"], "source is cells")
        if self.time is not None and self.time in self.names:
            message = f"'{self.time}' is one of the channels; allowed: another column"
            yield Problem(f"{path}.time", message, "channel-names")
        if self.stride == 1:
            yield from no_effect(self, path, ["pooling"], "stride is 1")
        if not self.longest:
            yield from no_effect(self, path, ["keep"], "longest is 0")


class SeriesOutput(OutputColumn):
    """A series output, always as long: the next steps of an input (a forecast), or any other."""

    noun: ClassVar[str] = "a series"
    numeric: ClassVar[bool] = True
    continues: ClassVar[bool] = True
    plain_by: ClassVar[str] = "normalise none"
    measured_as: ClassVar[Literal["numbers"]] = "numbers"
    kind: Literal["series"] = Field("series", description="kind of the output")
    column: str | None = Field(
        None, description="column of the table (default: `output`), or several, as those of an input"
    )
    horizon: Count = Field(0, description="number of steps; 0: that of the first row")
    names: list[str] = Field(
        [],
        description="names of the channels, such as those of an input that are continued (default: its first ones)",
    )
    normalise: Literal["channel", "none"] = Field(
        "channel", description="learn mean 0 and deviation 1 of each channel in the training rows; outputs are restored"
    )

    @property
    def sized_by_data(self) -> bool:
        return True

    @property
    def normalised(self) -> bool:
        return self.normalise != "none"

    def check(self, recipe: Any, path: str) -> Iterator[Problem]:
        yield from _check_names(self.names, path)


def _check_names(names: Sequence[str], path: str) -> Iterator[Problem]:
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        yield Problem(f"{path}.names", f"'{twice[0]}' is there twice", "channel-names")


# ---------------- Series as text

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "?"})
"""Words for a value that is missing, in small letters."""

LARGEST = float(np.finfo(np.float32).max)
"""Networks read no number beyond it."""
_BETWEEN_STEPS = re.compile(r"[;\n]")
_BETWEEN_NUMBERS = re.compile(r"\s*,\s*|\s+")
_DECIMAL_COMMA = re.compile(r"[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+([eE][-+]?\d+)?")


def decimal_points(text: str) -> str:
    """Numbers with decimal commas as with points; other words stay as they are.

    >>> decimal_points("0,5 -1.234,5; 3"), decimal_points("1,2,3")
    ('0.5 -1234.5; 3', '1,2,3')
    """

    def point(word: re.Match[str]) -> str:
        number = word[0]
        return number.replace(".", "").replace(",", ".") if _DECIMAL_COMMA.fullmatch(number) else number

    return re.sub(r"[^\s;]+", point, text)


def parse_series(text: str) -> Values:
    """The numbers of a text: steps between semicolons or ends of lines, channels between spaces or commas; without
    either of the former every number is a step. A JSON list of numbers, or of lists, is the same.

    >>> parse_series("1 2; 3 ?").tolist(), parse_series("[1, null, 3]").tolist()
    ([[1.0, 2.0], [3.0, nan]], [[1.0], [nan], [3.0]])
    """
    return _array(_steps_of_text(text))


def _steps_of_text(text: str) -> list[Sequence[Any]]:
    """The words of each step."""
    text = text.strip()
    if text.startswith("["):
        try:
            return _steps_of_list(json.loads(text))
        except (ValueError, RecursionError):
            text = text.removeprefix("[").removesuffix("]")
    if not _BETWEEN_STEPS.search(text):
        return [[word] for word in _words(text)]
    return [_words(step) for step in _BETWEEN_STEPS.split(text.removesuffix(";"))]


def series_of_lists(items: Any) -> Values:
    """The numbers of a list: of numbers, one for each step, or of lists, which hold the channels of a step.

    >>> series_of_lists([[1, 2], [3, None]]).tolist()
    [[1.0, 2.0], [3.0, nan]]
    """
    return _array(_steps_of_list(items))


def _steps_of_list(items: Any) -> list[Sequence[Any]]:
    """The numbers of each step, unchecked."""
    if not isinstance(items, list | tuple):
        raise UserError(f"a list of numbers, or of lists of them, is expected, got {shortened(items)}")
    nested = [isinstance(item, list | tuple) for item in items]
    if any(nested) and not all(nested):
        raise UserError("some steps are lists and others are not")
    return [item if isinstance(item, list | tuple) else [item] for item in items]


def series_of_columns(cells: Sequence[Any]) -> Values:
    """The numbers of several cells: each is a step where all of them hold one number or none; otherwise each holds a
    channel over time. Errors of one cell are a `CellError`.

    >>> series_of_columns(["1", "", "3"]).T.tolist(), series_of_columns(["1 2 3", "4 5 6"]).tolist()
    ([[1.0, nan, 3.0]], [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
    """
    channels = [_channel(cell, place) for place, cell in enumerate(cells)]
    steps = max(map(len, channels))
    if steps <= 1:
        return np.array([channel[0] if len(channel) else math.nan for channel in channels])[:, None]
    for number, channel in enumerate(channels, start=1):
        if len(channel) not in (0, steps):
            longest = 1 + next(place for place, other in enumerate(channels) if len(other) == steps)
            raise UserError(
                f"columns of one length expected, got {counted(len(channel), 'number')} in column {number} of "
                f"{len(channels)} and {steps:,} in column {longest}"
            )
    return np.stack([channel if len(channel) else np.full(steps, math.nan) for channel in channels], axis=1)


def _channel(cell: Any, place: int) -> NDArray[np.float64]:
    """The numbers of one cell over time; none where it is empty. place: of its column, from 0."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return np.empty(0)
    try:
        if isinstance(cell, str):
            _check_comma(cell)
            steps = _steps_of_text(cell)
        else:
            steps = _steps_of_list(cell if isinstance(cell, list | tuple) else [cell])
        if any(len(step) > 1 for step in steps):
            raise UserError("each column holds one channel, and this one has several numbers in a step")
        if not any(map(len, steps)):
            raise UserError("there is no number")
        alone = len(steps) == 1
        values = [
            _number(step[0] if step else "", "" if alone else f"step {number:,}")
            for number, step in enumerate(steps, start=1)
        ]
    except UserError as error:
        raise CellError(str(error), place) from None
    return np.array(values)


def _check_comma(cell: str) -> None:
    """Refuse a cell whose commas may all be decimal ones: `0,33` would be read as 0 and 33."""
    words = re.split(r"[\s;]+", cell.strip())
    decimal = [word for word in words if _DECIMAL_COMMA.fullmatch(word)]
    if decimal and all("," not in word or _DECIMAL_COMMA.fullmatch(word) for word in words):
        point = decimal_points(decimal[0])
        two = decimal[0].replace(",", " ")
        raise UserError(
            f"{shortened(decimal[0])} has a comma between digits; allowed: {shortened(point, quotes=False)}, "
            f"{shortened(two, quotes=False)} for two numbers, or data.decimal=comma for decimal commas"
        )


def _words(step: str) -> list[str]:
    step = step.strip()
    return _BETWEEN_NUMBERS.split(step) if step else []


def _array(steps: Sequence[Sequence[Any]]) -> Values:
    """Words or numbers as an array, each checked."""
    if not any(map(len, steps)):
        raise UserError("there is no number")
    channels = len(steps[0]) or max(map(len, steps))
    for number, step in enumerate(steps, start=1):
        if len(step) != channels and not (channels == 1 and not len(step)):  # an empty step of one channel is missing
            raise UserError(
                f"step {number:,} has {counted(len(step), 'number')}, and step 1 has {channels:,}; what is missing is "
                "written as nan"
            )
    return np.array(
        [
            [_number(value, (number, channel)) for channel, value in enumerate(step or [""], start=1)]
            for number, step in enumerate(steps, start=1)
        ],
        dtype=np.float64,
    )


def _number(value: Any, place: tuple[int, int] | str) -> float:
    """One number, checked. place: (step, channel) from 1, or words for it, for messages."""
    if value is None:
        return math.nan
    try:
        number = math.nan if isinstance(value, bool | list | tuple) else float(value)
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if math.isnan(number) and not (isinstance(value, float) or str(value).strip().lower() in MISSING):
        allowed = "allowed: numbers, and for missing ones nothing, nan, NA, null or ?"
        raise UserError(f"{_subject(value, place, ', which')} is not a number; {allowed}")
    if abs(number) > LARGEST:
        raise UserError(f"{_subject(value, place)}; allowed: from {-LARGEST:.1e} to {LARGEST:.1e}")
    return number


def _subject(value: Any, place: tuple[int, int] | str, after: str = "") -> str:
    """A value with its place, as messages begin; after: follows the value where it has a place."""
    if not isinstance(place, str):
        place = f"step {place[0]:,}, channel {place[1]:,}"
    return f"{place} is {shortened(value)}{after}" if place else shortened(value)


def write_series(values: Values) -> str:
    """Numbers as text that `parse_series` reads, each in as few digits as tell it from all others.

    >>> write_series(np.array([[1.0, 2.0], [3.0, np.nan]])), write_series(np.array([[1.0], [2.5]]))
    ('1 2; 3 nan', '1 2.5')
    """
    steps = [" ".join(repr(number).removesuffix(".0") for number in step) for step in values.tolist()]
    if values.shape[1] == 1:
        return " ".join(steps)
    return "; ".join(steps) + (";" if len(steps) == 1 else "")


# ---------------- Series in files

MAX_NUMBERS = 5_000_000
"""Numbers of a file, all columns counted."""
MAX_TEXT = 64 * MEBIBYTE
"""Bytes of a .csv or .tsv file."""
MAX_COLUMNS = 10_000
MAX_TIME = 40
"""Characters of a time stamp that are kept."""
MAX_HEADER, MAX_METADATA = 10_000, 1 << 24
"""Bytes of the header of a .npy file, and of the metadata of a .parquet file."""
MAX_EXPANSION = 1 << 28
"""Bytes that the columns of a .parquet file may take once they are unpacked."""
BATCH_STEPS = 1 << 16
"""Steps of a .parquet file that are read at a time."""

_NUMPY, _PARQUET = b"\x93NUMPY", b"PAR1"
_DELIMITERS = ",;\t|"


def read_series(path: str | Path, settings: SeriesInput) -> Series:
    """The series of a file, whatever its name: .npy and .parquet are known by their first bytes, others are text."""
    with check_file(path, "series").open("rb") as file:
        start = file.read(len(_NUMPY))
        file.seek(0)
        if start == _NUMPY:
            series = _read_numpy(file, settings)
        elif start[: len(_PARQUET)] == _PARQUET:
            series = _read_parquet(file, settings)
        else:
            series = _read_text(file, settings)
    if not series.values.size:
        raise MediaError("a series of length zero")
    beyond = np.abs(series.values) > LARGEST
    if beyond.any():
        step, channel = (int(place[0]) + 1 for place in np.nonzero(beyond))
        allowed = f"from {-LARGEST:.1e} to {LARGEST:.1e}"
        number = series.values[step - 1, channel - 1]
        raise MediaError(f"step {step:,}, channel {channel:,} is {number:g}; allowed: {allowed}")
    return series


def _read_numpy(file: BinaryIO, settings: SeriesInput) -> Series:
    """An array of (steps,) or (steps, channels). The header is checked before memory is taken; no pickle is read."""
    with decoding("not a .npy file that can be read"):
        version = np.lib.format.read_magic(file)
        shape, by_columns, dtype = _read_numpy_header(file, version)
        if dtype.hasobject or dtype.kind not in "biuf":
            raise MediaError(f"an array of {dtype}; allowed: numbers")
        if len(shape) not in (1, 2) or min(shape) < 1:
            raise MediaError(f"an array of shape {shape}; allowed: (steps, channels) or (steps,)")
        _check_size(shape[0], math.prod(shape[1:]))
        present = os.fstat(file.fileno()).st_size - file.tell()
        if present < math.prod(shape) * dtype.itemsize:
            raise MediaError(f"cut short: {present:,} of {math.prod(shape) * dtype.itemsize:,} bytes are there")
        flat = np.frombuffer(file.read(math.prod(shape) * dtype.itemsize), dtype=dtype)
        values = flat.reshape(shape, order="F" if by_columns else "C").astype(np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if settings.time is not None:
        raise MediaError(f"a .npy file has no column '{settings.time}' (inputs' `time`); allowed: .csv or .parquet")
    return Series(values, list(settings.names))


def _read_numpy_header(file: BinaryIO, version: tuple[int, int]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """(shape, whether the columns lie one after another, type). NumPy reads as many bytes as the header claims to have,
    so they are counted first."""
    readers = {(1, 0): (np.lib.format.read_array_header_1_0, 2), (2, 0): (np.lib.format.read_array_header_2_0, 4)}
    if version not in readers:
        raise MediaError(f"version {version[0]}.{version[1]} of .npy; allowed: 1.0, 2.0")
    read_header, size = readers[version]
    start = file.tell()
    claimed = int.from_bytes(file.read(size), "little")
    if claimed > MAX_HEADER:
        raise MediaError(f"a .npy header of {claimed:,} bytes; allowed: at most {MAX_HEADER:,}")
    present = os.fstat(file.fileno()).st_size - file.tell()
    if present < claimed:
        raise MediaError(f"cut short: {max(present, 0):,} of the {claimed:,} bytes of its .npy header are there")
    file.seek(start)
    try:
        shape, by_columns, dtype = read_header(file, max_header_size=MAX_HEADER)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):  # NumPy shows parts of the parser
        raise MediaError("not a .npy file that can be read: its header does not describe an array") from None
    return shape, by_columns, dtype


def _read_parquet(file: BinaryIO, settings: SeriesInput) -> Series:
    """Columns of numbers, read batch by batch; sizes are checked by the metadata before anything is unpacked.

    Sizes are those of row groups: to ask for those of their columns (`RowGroupMetaData.column`) ends the process where
    the metadata are damaged, without an exception. Time stamps that are text are read dictionary-encoded, each distinct
    one once, so that a small page cannot stand for a long text repeated a million times.
    """
    parquet = imported("pyarrow.parquet", extra="parquet")
    with decoding("not a .parquet file that can be read"):
        limits = {"thrift_string_size_limit": MAX_METADATA, "thrift_container_size_limit": MAX_COLUMNS}
        opened = parquet.ParquetFile(file, **limits)
        columns = [str(name) for name in opened.schema_arrow.names]
        chosen, time = _chosen(columns, settings)
        groups = [opened.metadata.row_group(number) for number in range(opened.metadata.num_row_groups)]
        _check_size(max(opened.metadata.num_rows, sum(group.num_rows for group in groups)), len(columns))
        size = sum(group.total_byte_size for group in groups)
        if size > MAX_EXPANSION:
            raise MediaError(f"{size:,} bytes once it is unpacked; allowed: at most {MAX_EXPANSION:,}")
        _check_types({str(one.name): one.type for one in opened.schema_arrow}, chosen, time, settings)
        file.seek(0)
        opened = parquet.ParquetFile(file, read_dictionary=[time] if time else None, **limits)
        rows, values, times = 0, list[Values](), list[str]()
        most = min(BATCH_STEPS, MAX_NUMBERS // max(len(columns), 1))
        for batch in opened.iter_batches(batch_size=most, columns=[*chosen, *([time] if time else [])]):
            rows += batch.num_rows
            _check_size(rows, len(columns))
            read = [batch.column(name).cast("float64", safe=False).to_numpy(zero_copy_only=False) for name in chosen]
            values.append(np.stack(read, axis=1))
            times += _time_stamps(batch.column(time)) if time else []
    return Series(np.concatenate([np.empty((0, len(chosen))), *values]), chosen, times)


def _check_types(kinds: Mapping[str, Any], chosen: Sequence[str], time: str | None, settings: SeriesInput) -> None:
    """Channels hold numbers, and time stamps are text, numbers, dates or times. kinds: types of pyarrow by column."""
    arrow = imported("pyarrow", extra="parquet").types
    for name in chosen:
        if not (arrow.is_integer(kinds[name]) or arrow.is_floating(kinds[name]) or arrow.is_boolean(kinds[name])):
            raise MediaError(f"column '{name}' holds {kinds[name]}, not numbers{_instead(settings)}")
    if time is not None:
        kind = kinds[time].value_type if arrow.is_dictionary(kinds[time]) else kinds[time]
        text, short = (arrow.is_string, arrow.is_large_string), (arrow.is_primitive, arrow.is_decimal, arrow.is_null)
        if not any(check(kind) for check in (*text, *short)):
            raise MediaError(f"column '{time}' holds {kind}, no time stamps; allowed: text, numbers, dates, times")


def _time_stamps(column: Any) -> list[str]:
    """The time stamps of an array of pyarrow, each cut to `MAX_TIME` characters before it is a text of its own."""
    arrow, compute = imported("pyarrow", extra="parquet"), imported("pyarrow.compute", extra="parquet")
    if not arrow.types.is_dictionary(column.type):
        return [str(stamp)[:MAX_TIME] for stamp in column.to_pylist()]
    names = column.dictionary
    if arrow.types.is_string(names.type) or arrow.types.is_large_string(names.type):
        most = 4 * MAX_TIME  # bytes in UTF-8
        names = compute.binary_slice(names.cast("large_binary"), 0, most)
        known = [None if name is None else name.decode("utf-8", "replace") for name in names.to_pylist()]
    else:
        known = names.to_pylist()
    texts = [str(name)[:MAX_TIME] for name in known]
    return [str(None) if place is None else texts[place] for place in column.indices.to_pylist()]


def _read_text(file: BinaryIO, settings: SeriesInput) -> Series:
    """Numbers between commas, semicolons, tabs, bars or spaces, a line for each step."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_TEXT:
        raise MediaError(f"{size:,} bytes; allowed: at most {MAX_TEXT:,}")
    content = file.read(MAX_TEXT)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MediaError(f"not a series: neither .npy nor .parquet, and line {line:,} is not UTF-8 text") from None
    lines = _lines(text)
    first = next(lines, None)
    if first is None:
        raise MediaError("a series of length zero")
    headed = settings.header if settings.header is not None else _is_header(first[1])
    columns = [cell.strip() for cell in first[1]] if headed else []
    if not headed and settings.time is not None:
        raise MediaError(f"its columns have no names, so there is no '{settings.time}' (inputs' `time`)")
    width = len(first[1])
    chosen, time = _chosen(columns, settings) if headed else (list(settings.names), None)
    _check_size(1, width)
    places = [columns.index(name) for name in chosen] if headed else list(range(width))
    stamps = columns.index(time) if time else None
    values, times = list[list[float]](), list[str]()
    for number, cells in lines if headed else _with(first, lines):
        if len(cells) != width:
            raise MediaError(f"line {number:,}: {counted(len(cells), 'field')}, and line {first[0]:,} has {width:,}")
        _check_size(len(values) + 1, width)
        values.append([_cell(cells[place], number, place, columns, settings) for place in places])
        if stamps is not None:
            times.append(cells[stamps].strip()[:MAX_TIME])
    return Series(np.array(values, dtype=np.float64).reshape(len(values), len(places)), chosen, times)


def _with(first: tuple[int, list[str]], rest: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rest


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """(number of the line, fields) of lines that are not empty. The delimiter is the one that occurs in the first: a
    comma beside another one is part of a number or a name, and decimal."""
    beginning = next((line for line in islice(io.StringIO(text), 1000) if line.strip()), "")
    others = [delimiter for delimiter in _DELIMITERS if delimiter != "," and delimiter in beginning]
    delimiter = max(others or ",", key=beginning.count)
    if delimiter not in beginning:
        for number, line in enumerate(io.StringIO(text), start=1):
            if line.strip():
                yield number, line.split()
        return
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise MediaError(f"line {reader.line_num:,}: {error}") from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield (
                reader.line_num,
                [decimal_points(cell) if "," in cell else cell for cell in cells] if others else cells,
            )


def _cell(cell: str, line: int, place: int, columns: Sequence[str], settings: SeriesInput) -> float:
    word = cell.strip()
    try:
        return float(word)
    except ValueError:
        if word.lower() in MISSING:
            return math.nan
    column = f"column '{columns[place]}'" if columns else f"column {place + 1}"
    raise MediaError(f"line {line:,}, {column} is {shortened(word)}, which is not a number{_instead(settings)}")


def _instead(settings: SeriesInput) -> str:
    """What to do about a column that is no channel."""
    return "" if settings.names else "; `names` chooses the columns that are read, `time` one with time stamps"


def _is_header(cells: Sequence[str]) -> bool:
    """Whether there is some name in a line, and no number."""

    def number(word: str) -> bool:
        try:
            return not math.isnan(float(word))
        except ValueError:
            return False

    return not any(map(number, cells)) and any(cell.strip().lower() not in MISSING for cell in cells)


def _chosen(columns: Sequence[str], settings: SeriesInput) -> tuple[list[str], str | None]:
    """(the columns that are channels, the one that holds time stamps)"""
    if len(columns) > MAX_COLUMNS:
        raise MediaError(f"{len(columns):,} columns; allowed: at most {MAX_COLUMNS:,}")
    twice = [name for position, name in enumerate(columns) if name in columns[:position]]
    if twice:
        raise MediaError(f"column '{twice[0]}' occurs twice")
    for name in [*settings.names, *([settings.time] if settings.time is not None else [])]:
        if name not in columns:
            known = ", ".join(columns[:20])
            raise MediaError(f"no column '{name}'{nearest(name, columns)}; it has: {known}")
    return [name for name in settings.names or columns if name != settings.time], settings.time


def _check_size(steps: int, channels: int) -> None:
    if steps * channels > MAX_NUMBERS or channels > MAX_COLUMNS:
        allowed = f"at most {MAX_NUMBERS:,} numbers and {MAX_COLUMNS:,} channels"
        raise MediaError(f"{steps:,} steps of {channels:,} channels; allowed: {allowed}")


# ---------------- As a model reads them


def shorten(series: Series, settings: SeriesInput) -> Series:
    """A whole series as `stride` and `longest` leave it."""
    values, times = series.values, series.times
    if settings.stride > 1:
        values = pooled(values, settings.stride) if settings.pooling == "mean" else values[:: settings.stride]
        times = times[:: settings.stride]
    steps, most = len(values), settings.longest
    first = steps - most if most and steps > most and settings.keep == "last" else 0
    kept = slice(first, first + most if most else steps)
    return Series(
        values[kept], series.names, times[kept], first=first * settings.stride, stride=settings.stride, uncut=steps
    )


def pooled(values: Values, stride: int) -> Values:
    """The mean of each `stride` steps, of what is not missing; the last may be of fewer.

    >>> pooled(np.array([[1.0], [3.0], [np.nan], [5.0], [7.0]]), 2).ravel().tolist()
    [2.0, 5.0, 7.0]
    """
    lacking = -len(values) % stride
    stacked = np.pad(values, ((0, lacking), (0, 0)), constant_values=math.nan).reshape(-1, stride, values.shape[1])
    known = np.isfinite(stacked)
    count = known.sum(1)
    total = np.where(known, stacked, 0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def filled(values: Values, how: str) -> Values:
    """Values without gaps: lines between neighbours, the first and the last known value beyond the ends, or zeros; a
    channel of which nothing is known is 0.

    >>> filled(np.array([[np.nan, 0.0], [1.0, np.nan], [np.nan, 4.0], [3.0, 0.0]]), "interpolate").tolist()
    [[1.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 0.0]]
    """
    missing = np.isnan(values)
    if not missing.any():
        return values
    made = np.where(missing, 0.0, values)
    steps = np.arange(len(values))
    for channel in np.flatnonzero(missing.any(0)) if how == "interpolate" else ():
        known = ~missing[:, channel]
        if known.any():
            made[:, channel] = np.interp(steps, steps[known], values[known, channel])
    return made
