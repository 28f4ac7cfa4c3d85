"""Images: files in a table, pixels or ready-made maps in a batch; read or given."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from numpy.typing import NDArray
from pydantic import Field as Setting
from torch import Tensor

from seq2see.data.batches import Numbers, Ragged
from seq2see.data.image_files import (
    MAX_SIZED,
    AugmentSettings,
    ImageInput,
    data_url,
    problem_of,
    read_image,
    size_of,
)
from seq2see.data.media_files import Job, MediaError
from seq2see.errors import UserError
from seq2see.evaluation import OutputType
from seq2see.looks import Picture, Prediction
from seq2see.modalities.base import Chosen, Example, Field, NumericOutput, Occlusion, inputs, outputs
from seq2see.modalities.files import FileDecoder, MediaField
from seq2see.registry import Problem
from seq2see.settings.base import Side
from seq2see.settings.columns import ColumnSettings, OutputColumn
from seq2see.threads import cores

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class ImageOutput(OutputColumn):
    """An output that is a picture, from 0 (black) to 1; what is not given is as in the first picture that goes in."""

    noun: ClassVar[str] = "a picture"
    numeric: ClassVar[bool] = True
    usual_decoder: ClassVar[str] = "reconstruction"
    measured_as: ClassVar[OutputType] = "numbers"
    kind: Literal["image"] = Setting("image", description="what the column holds")
    column: str | None = Setting(
        None, description="column of the table, which holds paths relative to the table; not given: `output`"
    )
    height: Side = Setting(32, description="pixels")
    width: Side = Setting(32, description="... and across")
    fit: Literal["crop", "stretch", "pad"] = Setting(
        "crop", description="what to do with pictures of other proportions"
    )
    colour: Literal["rgb", "grey"] = Setting("rgb", description="three channels, or one")

    @property
    def file(self) -> bool:
        return True

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return (3 if self.colour == "rgb" else 1), self.height, self.width

    @property
    def answer_field(self) -> str:
        return "image"

    @property
    def activation(self) -> str:
        return "logistic"

    def complete(self, recipe: Recipe) -> dict[str, Any]:
        """The size and colour of the first picture that goes in, as far as the recipe does not state them."""
        first = next((column for column in recipe.inputs.values() if isinstance(column, ImageInput)), None)
        if first is None:
            return {}
        keys = ("height", "width", "fit", "colour") if first.width else ("height", "colour")
        return {key: getattr(first, key) for key in keys if key not in self.model_fields_set}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        """The picture to give is not changed along with the one that goes in."""
        for name, image in recipe.inputs.items():
            for key in MOVED:
                if isinstance(image, ImageInput) and getattr(image.augment, key):
                    allowed = "false" if key == "flip" else 0
                    message = f"the picture to give is not changed along with it; allowed: {allowed}"
                    yield Problem(f"inputs.{name}.augment.{key}", message, "augmented-output")


MOVED = ("flip", "crop", "rotate", "shear", "stretch", "elastic")
"""Changes of a picture that put its parts elsewhere."""


# --- Which way a script runs

LEFTWARD = ("R", "AL")
"""Unicode's classes of letters that are written from right to left: Hebrew and others, Arabic."""


def leftward(symbols: Iterable[tuple[str, int]]) -> bool:
    """Whether most letters of symbols, each with how often it occurs, are written from right to left.

    Digits and punctuation are ignored: they occur in both directions.

    >>> leftward([("\u05d0", 3), ("a", 2), ("7", 9)]), leftward([("ab", 1), ("\u0627", 1)])
    (True, False)
    """
    total = 0
    for symbol, times in symbols:
        kinds = [unicodedata.bidirectional(character) for character in symbol]
        total += times * (sum(kind in LEFTWARD for kind in kinds) - kinds.count("L"))
    return total > 0


CELL = 32 * 32
"""Pixels that take about as much room in a batch as a symbol of text."""

SHOWN = 480
"""Pixels on the longer side of a picture that a person is shown."""

SHOWN_LINE = 96
"""Pixels of the height of a line, which is as wide as it is."""


@dataclass
class Pictures:
    """Pictures of one column: their pixels, or the maps that a frozen backbone once made of them.

    pixels: (batch, channels, height, width), padded on the right with the last column of each;
    widths: (batch,), real pixels across; maps: (batch, size, rows, columns);
    leftward: they are read from the right; pixels and maps lie as in the picture all the same.
    """

    pixels: UInt8[Tensor, "batch channels height width"] | None
    widths: Int[Tensor, " batch"]
    maps: Float[Tensor, "batch size rows columns"] | None = None
    leftward: bool = False

    def to(self, device: torch.device | str) -> Pictures:
        pixels = None if self.pixels is None else self.pixels.to(device)
        maps = None if self.maps is None else self.maps.to(device)
        return replace(self, pixels=pixels, widths=self.widths.to(device), maps=maps)


@inputs.register("image")
class ImageField(MediaField):
    """Files that Pillow reads."""

    Settings: ClassVar[type[ColumnSettings]] = ImageInput
    example: ClassVar[str] = "picture.png"
    hidden_parts: ClassVar[tuple[str, ...]] = ("",)
    settings: ImageInput

    def __init__(self, settings: ImageInput, *, output: bool = False):
        super().__init__(settings, output=output)
        self.leftward = settings.direction == "right-to-left"

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        return _described(self, name)

    def after_output(self, output: Field) -> None:
        """A picture of text is read the way its text is written, of which its vocabulary keeps count."""
        known = getattr(output, "vocabulary", None)
        if self.settings.direction == "auto" and known is not None:
            self.leftward = leftward(zip(known.symbols, known.counts, strict=True))

    def problem(self, value: str) -> str | None:
        try:
            check_picture(self.decoder, value, self.settings)
        except MediaError as error:
            return str(error)
        return None

    def width(self, value: str) -> int:
        try:
            if self.decoder.in_process:  # the head of the file is enough
                height, width = size_of(value, self.settings)
            else:
                height, width = self.decoder.arrays(value, self.settings)[0].shape[1:]
        except MediaError as error:
            raise UserError(f"{value}: {error}") from None
        return max(height * width // CELL, 1)

    def to_drawable(self, value: str) -> Picture:
        """The picture as the model is shown it, only larger: a person sees more than a network is given."""
        return Picture(self._load(value, None, self._larger).transpose(1, 2, 0))

    def preview(self, example: Example) -> dict[str, Any]:
        return pixels_preview(self.to_drawable(example.value).pixels)

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        rows, columns = shape if len(shape) == 2 else (1, shape[0])
        return CellOcclusion(column, rows, columns)

    def job(self, value: str, *, preview: bool = False) -> Job:
        return Job(value, self.settings, self._larger if preview and self._larger != self.settings else None)

    @cached_property
    def _larger(self) -> ImageInput:
        """How a person is shown a picture."""
        settings = self.settings
        times = SHOWN // max(settings.height, settings.width) if settings.width else SHOWN_LINE // settings.height
        times = max(times, 1)
        height = settings.height * times
        widest = min(settings.widest * times or MAX_SIZED, MAX_SIZED // height)
        return settings.model_copy(update={"height": height, "width": settings.width * times, "widest": widest})

    def pad(self, store: Ragged, rows: Chosen) -> Pictures:
        """Stored rows, changed at random where the settings say so, by torch's own generator."""
        values = [self.value(store[int(row)]) for row in rows]
        if self.settings.augment == AugmentSettings():
            return self.batch(values)
        seeds = np.random.SeedSequence(int(torch.randint(1 << 62, ()))).spawn(len(values))
        return self._read(values, [np.random.default_rng(seed) for seed in seeds])

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Pictures:
        """Pictures of the size that the settings state; where their widths differ, the widest has 8 pixels for each of
        `length`."""
        settings = self.settings
        width = settings.width or 8 * length
        pixels = random.integers(0, 256, (rows, settings.channels, settings.height, width), dtype=np.uint8)
        widths = np.full(rows, width) if settings.width else width - 8 * (np.arange(rows) % max(length - 1, 1))
        return Pictures(torch.from_numpy(pixels), torch.from_numpy(widths), leftward=self.leftward)

    def batch(self, values: Sequence[str]) -> Pictures:
        maps = self.kept(values)
        if maps is not None:
            widths = torch.full((len(values),), self.settings.width)
            return Pictures(None, widths, torch.from_numpy(maps).float(), leftward=self.leftward)
        once = list(dict.fromkeys(values))  # several questions may be asked about one picture
        read = self._read(once, [None] * len(once))
        if len(once) == len(values):
            return read
        numbers = {value: number for number, value in enumerate(once)}
        which = torch.tensor([numbers[value] for value in values])
        assert read.pixels is not None
        return replace(read, pixels=read.pixels[which], widths=read.widths[which])

    def _read(self, values: Sequence[str], randoms: Sequence[np.random.Generator | None]) -> Pictures:
        with ThreadPoolExecutor(min(len(values), cores()) or 1) as pool:
            pictures = list(pool.map(self._load, values, randoms))
        widths = [picture.shape[-1] for picture in pictures]
        most = max(widths, default=1)
        padded = [np.pad(one, ((0, 0), (0, 0), (0, most - one.shape[-1])), mode="edge") for one in pictures]
        return Pictures(torch.from_numpy(np.stack(padded)), torch.tensor(widths), leftward=self.leftward)

    def _load(
        self, value: str, random: np.random.Generator | None, settings: ImageInput | None = None
    ) -> NDArray[np.uint8]:
        try:
            if random is not None:
                return read_image(value, self.settings, random)
            return self.decoder.arrays(value, settings or self.settings)[0]
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None


# --- Images that a model gives


@outputs.register("image")
class ImageOutputField(MediaField, NumericOutput):
    """Pixels one behind the other: channel by channel, row by row."""

    Settings: ClassVar[type[ColumnSettings]] = ImageOutput
    settings: ImageOutput

    def __init__(self, settings: ImageOutput, *, output: bool = True):
        super().__init__(settings, output=output)
        kept = settings.model_dump(include={"height", "width", "fit", "colour"})
        self.reading = ImageInput(**kept)

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        return _described(self, name)

    @property
    def size(self) -> int:
        """Pixels, each channel counted."""
        return int(np.prod(self.settings.shape))

    def problem(self, value: str) -> str | None:
        try:
            check_picture(self.decoder, value, self.reading)
        except MediaError as error:
            return str(error)
        return None

    def job(self, value: str, *, preview: bool = False) -> Job:
        return Job(value, self.reading)

    def width(self, value: str) -> int:
        return max(self.settings.height * self.settings.width // CELL, 1)

    def pad(self, store: Ragged, rows: Chosen) -> Numbers:
        return self.batch([self.value(store[int(row)]) for row in rows])

    def batch(self, values: Sequence[str]) -> Numbers:
        with ThreadPoolExecutor(min(len(values), cores()) or 1) as pool:
            pictures = list(pool.map(self.numbers, values))
        return Numbers(torch.from_numpy(np.stack(pictures).astype(np.float32)))

    def numbers(self, value: str) -> NDArray[np.float64]:
        try:
            pixels = self.decoder.arrays(value, self.reading)[0]
        except MediaError as error:
            raise UserError(f"{Path(value)}: {error}") from None
        return pixels.astype(np.float64).ravel() / 255

    def restored(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        return np.asarray(values, dtype=np.float64).clip(0, 1)

    def answer(self, numbers: NDArray[np.floating]) -> dict[str, Any]:
        return {"image": self.picture(numbers)}

    def answered(self, prediction: Prediction) -> NDArray[np.float64]:
        assert isinstance(prediction.image, np.ndarray)
        pixels = prediction.image if prediction.image.ndim == 3 else prediction.image[..., None]
        return np.asarray(pixels.transpose(2, 0, 1).ravel() / 255, dtype=np.float64)

    def picture(self, numbers: NDArray[np.floating]) -> NDArray[np.uint8]:
        """(height, width), or (height, width, 3), from 0 to 255: as files hold it."""
        shaped = np.rint(255 * numbers).astype(np.uint8).reshape(self.settings.shape).transpose(1, 2, 0)
        return np.asarray(shaped[..., 0] if shaped.shape[-1] == 1 else shaped)


def check_picture(decoder: FileDecoder, path: str, settings: ImageInput) -> None:
    """A MediaError where a picture cannot be used."""
    if not decoder.in_process:
        decoder.arrays(path, settings)
    elif (problem := problem_of(path, settings)) is not None:
        raise MediaError(problem)


def _described(field: MediaField, name: str) -> str:
    settings = field.settings
    size = f"{settings.height} x {settings.width or 'as wide as they are'} pixels, {settings.colour}"
    return f"{field.role(name)}: pictures, paths in column '{settings.column or name}', {size}"


def pixels_preview(pixels: NDArray[np.uint8]) -> dict[str, Any]:
    """A picture (height, width), or (height, width, channels), for a page."""
    return {"picture": data_url(pixels), "height": pixels.shape[0], "width": pixels.shape[1]}


# --- Places that can be hidden


@dataclass
class CellOcclusion:
    """Places are the cells of a map of so many rows and columns, each with its share of the picture's pixels; columns
    are counted from the right where the picture is read from there."""

    column: Pictures
    rows: int
    columns: int

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def room(self) -> int:
        return max(self._pixels.shape[-1] * self._pixels.shape[-2] // CELL, 1)

    @property
    def _pixels(self) -> Tensor:
        if self.column.pixels is None:
            raise ValueError("pictures expected, not the maps that were made of them")
        return self.column.pixels

    def without(self, places: Int[Tensor, " rows"]) -> Pictures:
        pixels = self._pixels.clone()
        height, width = pixels.shape[-2:]
        for picture, place in zip(pixels, places.tolist(), strict=True):
            down, across = divmod(place, self.columns)
            if self.column.leftward:
                across = self.columns - 1 - across
            upper, lower = down * height // self.rows, (down + 1) * height // self.rows
            left, right = across * width // self.columns, (across + 1) * width // self.columns
            picture[:, upper:lower, left:right] = picture.float().mean().round().to(picture.dtype)
        return replace(self.column, pixels=pixels)

    def by_place(self, vectors: Float[Tensor, "batch size rows columns"]) -> Float[Tensor, "batch places"]:
        joined = (1,) if vectors.shape[2] == self.rows else (1, 2)  # a column of the map is one place
        norms = torch.linalg.vector_norm(vectors, dim=joined).view(len(vectors), self.rows, self.columns)
        found: Tensor = (norms.flip(-1) if self.column.leftward else norms).flatten(1)
        return found
