"""Videos: files in a table, frames in a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Num, UInt8
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from seq2see.data.batches import Ragged
from seq2see.data.image_files import Pixels, data_url
from seq2see.data.media_files import MediaError
from seq2see.data.video_files import CLIP_CACHE, Clip, VideoAugmentSettings, VideoInput, times_in
from seq2see.errors import UserError
from seq2see.looks import Drawable
from seq2see.modalities.base import Chosen, Example, Occlusion, inputs, random_mask
from seq2see.modalities.files import MediaField
from seq2see.settings.columns import ColumnSettings
from seq2see.threads import cores

# --- Clips read from their end to their beginning

BACKWARDS = "\0backwards"
"""Behind a path: the clip from its end to its beginning. No path of a file has such a character in it."""


def forwards(value: str) -> str:
    """The path of a clip, whichever way it is read.

    >>> forwards("a.mp4" + BACKWARDS), forwards("a.mp4")
    ('a.mp4', 'a.mp4')
    """
    return value.removesuffix(BACKWARDS)


def turned(value: str) -> str:
    """The same clip read the other way.

    >>> turned(turned("a.mp4"))
    'a.mp4'
    """
    return value.removesuffix(BACKWARDS) if value.endswith(BACKWARDS) else value + BACKWARDS


# --- Clips changed at random while a model learns


MOST_HIDDEN = 4
"""A mask of time takes at most one frame in so many."""


def changed(
    clip: Clip, settings: VideoAugmentSettings, random: np.random.Generator, *, most: int | None = None
) -> Clip:
    """A clip of the same size, of about as many frames; most: frames of a clip that is slowed down."""
    pixels, times = clip.pixels, clip.times
    if settings.speed:
        played = sped_up(len(times), random.uniform(1 - settings.speed, 1 + settings.speed), most=most)
        pixels, times = pixels[played], times[played]
    if settings.jitter:
        kept = jittered(len(times), settings.jitter, random)
        pixels, times = pixels[kept], times[kept]
    if settings.flip and random.random() < 0.5:
        pixels = pixels[..., ::-1]
    if settings.shift:
        pixels = _shifted(pixels, settings.shift, random)
    if settings.light:
        pixels = _lit(pixels, settings.light, random)
    if settings.occlude or settings.time_masks:
        pixels = _hidden(pixels, settings, random)
    return Clip(np.ascontiguousarray(pixels), times)


def sped_up(frames: int, factor: float, *, most: int | None = None) -> NDArray[np.int64]:
    """Frame numbers in order, those of a clip that is played faster by that factor; at most so many.

    >>> sped_up(6, 2.0).tolist(), sped_up(3, 0.5).tolist(), sped_up(3, 0.5, most=4).tolist()
    ([1, 3, 5], [0, 0, 1, 1, 2, 2], [0, 1, 1, 2])
    """
    number = max(round(frames / factor), 1)
    number = number if most is None else min(number, max(most, frames))
    return ((np.arange(number) + 0.5) * frames / number).astype(np.int64)


def _hidden(pixels: Pixels, settings: VideoAugmentSettings, random: np.random.Generator) -> Pixels:
    """With a rectangle at the clip's mean in all frames, and stretches of frames that are the mean of all frames."""
    hidden = pixels.copy()
    frames, _, high, wide = pixels.shape
    if settings.occlude:
        sides = [int(random.uniform(0, settings.occlude) * side) for side in (high, wide)]
        top, left = (int(random.integers(0, side - part + 1)) for side, part in zip((high, wide), sides, strict=True))
        hidden[:, :, top : top + sides[0], left : left + sides[1]] = round(float(pixels.mean()))
    if settings.time_masks:
        mean = np.rint(pixels.mean(0, dtype=np.float32)).astype(np.uint8)
        for _ in range(settings.time_masks):
            width = int(random.integers(0, min(settings.time_width, frames // MOST_HIDDEN) + 1))
            start = int(random.integers(0, frames - width + 1))
            hidden[start : start + width] = mean
    return hidden


def jittered(frames: int, share: float, random: np.random.Generator) -> list[int]:
    """Frame numbers in order, about share / 2 of them dropped and as many repeated; never empty."""
    drawn = random.random(frames)
    times = np.where(drawn < share / 2, 0, np.where(drawn < share, 2, 1))
    found = np.repeat(np.arange(frames), times)
    return [int(number) for number in found] or [0]


def _shifted(pixels: Pixels, share: float, random: np.random.Generator) -> Pixels:
    """Moved up or down and to a side; what comes in is what stood at the edge."""
    found = pixels
    for axis in (2, 3):
        most = int(share * pixels.shape[axis])
        by = int(random.integers(-most, most + 1))
        where = (np.arange(pixels.shape[axis]) - by).clip(0, pixels.shape[axis] - 1)
        found = found.take(where, axis=axis)
    return found


def _lit(pixels: Pixels, share: float, random: np.random.Generator) -> Pixels:
    """Brighter or darker, and with more or less contrast around the clip's own mean."""
    bright, contrast = random.uniform(1 - share, 1 + share, 2)
    mean = float(pixels.mean())
    table = ((np.arange(256) - mean) * contrast + mean) * bright
    return np.asarray(table.clip(0, 255).round().astype(np.uint8)[pixels])


CELL = 32 * 32
"""Pixels that take about as much room in a batch as a symbol of text."""


@dataclass
class Clips:
    """Clips of one column: their pixels, or the maps that a frozen backbone once made of their frames, or both.

    pixels: (batch, frames, channels, height, width) from 0 to 255, 0 where there is no frame; bytes as they are read,
    numbers between them where a mean was put in a pixel's place; mask: (batch, frames), True where a frame is real;
    maps: (batch, frames, size, rows, columns); names: what to call each real frame.
    """

    pixels: (
        UInt8[Tensor, "batch frames channels height width"] | Float[Tensor, "batch frames channels height width"] | None
    )
    mask: Bool[Tensor, "batch frames"]
    maps: Float[Tensor, "batch frames size rows columns"] | None = None
    names: list[list[str]] | None = None

    def to(self, device: torch.device | str) -> Clips:
        pixels = None if self.pixels is None else self.pixels.to(device)
        maps = None if self.maps is None else self.maps.to(device)
        return replace(self, pixels=pixels, mask=self.mask.to(device), maps=maps)


# --- Videos as they are drawn


@dataclass(frozen=True)
class Video(Drawable):
    """A video as the model read it: frames (frames, height, width, channels) from 0 to 255, and their times in
    seconds."""

    view: ClassVar[str] = "seq2see.seeing.video:VideoOverlay"
    frames: Pixels
    times: list[float]

    def sample(self, number: int) -> Video:
        """The video in `number` frames, evenly selected, for places that cover several frames."""
        if number == len(self.times):
            return self
        selected = ((np.arange(number) + 0.5) * len(self.times) / number).astype(int)
        return Video(self.frames[selected], [self.times[frame] for frame in selected])


@inputs.register("video")
class VideoField(MediaField):
    """Files that FFmpeg reads, as the frames that the settings choose."""

    Settings: ClassVar[type[ColumnSettings]] = VideoInput
    example: ClassVar[str] = "clip.mp4"
    hidden_parts: ClassVar[tuple[str, ...]] = ("", "regions")
    settings: VideoInput

    def describe(self, name: str, size: int | None, *, exact: bool) -> str:
        settings = self.settings
        pixels = f"{settings.height} x {settings.width} pixels, {settings.colour}"
        return f"{self.role(name)}: videos, paths in column '{settings.column or name}', {self._frames()}, {pixels}"

    def _frames(self) -> str:
        """Which frames of a video are read."""
        settings = self.settings
        if settings.frames:
            return f"{settings.frames} frames spread evenly"
        each = f"every {settings.every}th frame" if settings.every > 1 else "every frame"
        return f"{f'{settings.rate:g} frames a second' if settings.rate else each}, at most {settings.most}"

    def display(self, value: str) -> str:
        return f"{forwards(value)} (backwards)" if value.endswith(BACKWARDS) else value

    def content(self, value: str) -> bytes:
        return super().content(value)[:-1] + value.endswith(BACKWARDS).to_bytes()

    def problem(self, value: str) -> str | None:
        try:
            self._clip(value)
        except MediaError as error:
            return str(error)
        return None

    def width(self, value: str) -> int:
        try:
            frames = len(self._seconds(forwards(value)))
        except MediaError as error:
            raise UserError(f"{forwards(value)}: {error}") from None
        return max(frames * self.settings.height * self.settings.width // CELL, 1)

    def to_drawable(self, value: str) -> Video:
        """The frames that the model is shown, with the second of each."""
        clip = self._load(value, None)
        return Video(np.ascontiguousarray(clip.pixels.transpose(0, 2, 3, 1)), clip.times.tolist())

    def preview(self, example: Example) -> dict[str, Any]:
        """The frames that the model is shown, with the second of each."""
        video = self.to_drawable(example.value)
        height, width = video.frames.shape[1:3]
        frames = [data_url(frame) for frame in video.frames]
        return {"frames": frames, "times": video.times, "height": height, "width": width}

    def occlusion(self, column: Any, part: str = "", shape: Sequence[int] = (), *, changes: bool = False) -> Occlusion:
        return RegionOcclusion(column, *shape, changes=changes)

    def pad(self, store: Ragged, rows: Chosen) -> Clips:
        """Stored rows, changed at random where the settings say so, by torch's own generator."""
        values = [self.value(store[int(row)]) for row in rows]
        if self.settings.augment == VideoAugmentSettings():
            return self._read(values, [None] * len(values))
        seeds = np.random.SeedSequence(int(torch.randint(1 << 62, ()))).spawn(len(values))
        return self._read(values, [np.random.default_rng(seed) for seed in seeds])

    def batch(self, values: Sequence[str]) -> Clips:
        """Values as they are; frames are named by the second at which they are shown."""
        column = self._read(values, [None] * len(values))
        return (
            column
            if column.names is not None
            else replace(column, names=[_named(self._times(value)) for value in values])
        )

    def random_column(self, rows: int, length: int, random: np.random.Generator) -> Clips:
        settings, mask = self.settings, random_mask(rows, length)
        shape = (rows, length, settings.channels, settings.height, settings.width)
        pixels = torch.from_numpy(random.integers(0, 256, shape, dtype=np.uint8))
        return Clips(pixels * mask[..., None, None, None], mask)

    def file(self, value: str) -> str:
        return forwards(value)

    def _maps(self, values: Sequence[str]) -> Tensor | None:
        """What is kept of these clips, the frames of each in the order in which it is read."""
        kept = self.kept([forwards(value) for value in values])
        if kept is None:
            return None
        for number, value in enumerate(values):
            if value.endswith(BACKWARDS):
                kept[number] = kept[number, ::-1].copy()
        return torch.from_numpy(kept).float()

    def _read(self, values: Sequence[str], randoms: Sequence[np.random.Generator | None]) -> Clips:
        maps = self._maps(values)
        if maps is not None and not self.files_too:
            return Clips(None, torch.ones(maps.shape[:2], dtype=torch.bool), maps)
        with ThreadPoolExecutor(min(len(values), cores()) or 1) as pool:
            clips = list(pool.map(self._load, values, randoms))
        lengths = torch.tensor([len(clip.times) for clip in clips])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        pixels = np.zeros((*mask.shape, *clips[0].pixels.shape[1:]), dtype=np.uint8)
        for row, clip in zip(pixels, clips, strict=True):
            row[: len(clip.times)] = clip.pixels
        return Clips(torch.from_numpy(pixels), mask, maps, [_named(clip.times) for clip in clips])

    def _times(self, value: str) -> NDArray[np.floating]:
        """The second at which each frame is shown, without decoding the clip."""
        try:
            times = self._seconds(forwards(value))
        except MediaError as error:
            raise UserError(f"{forwards(value)}: {error}") from None
        return times[::-1] if value.endswith(BACKWARDS) else times

    def extent(self, value: str) -> tuple[float, float]:
        """The last frame is shown as long as the others on average."""
        times = self._times(forwards(value))
        lasts = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 1.0
        return float(times[0]), float(times[-1] + lasts)

    def _load(self, value: str, random: np.random.Generator | None) -> Clip:
        try:
            clip = self._clip(value)
        except MediaError as error:
            raise UserError(f"{forwards(value)}: {error}") from None
        return clip if random is None else changed(clip, self.settings.augment, random, most=self.settings.most)

    def _seconds(self, path: str) -> NDArray[np.floating]:
        """The second at which each frame is shown that a model reads; the head of the file is enough."""
        return times_in(path, self.settings) if self.decoder.in_process else self._decoded(path).times

    def _decoded(self, path: str) -> Clip:
        """Kept in memory where there is room: training reads it many times."""
        if not self.decoder.in_process:
            return Clip(*self.decoder.arrays(path, self.settings))
        how = self.settings.model_dump_json(exclude={"column", "encoder", "augment", "longest", "largest"})
        return CLIP_CACHE.get(path, how, lambda: Clip(*self.decoder.arrays(path, self.settings)))

    def _clip(self, value: str) -> Clip:
        path = forwards(value)
        clip = self._decoded(path)
        if value == path:
            return clip
        return Clip(np.ascontiguousarray(clip.pixels[::-1]), np.ascontiguousarray(clip.times[::-1]))


def _named(times: Iterable[float]) -> list[str]:
    return [f"{second:.2f} s" for second in times]


# --- Places that can be hidden


@dataclass
class RegionOcclusion:
    """Places are the cells of each frame's map of so many rows and columns, each with its share of the frame's pixels;
    whole frames are maps of one cell. changes: whether the encoder reads changes."""

    column: Clips
    frames: int
    rows: int = 1
    columns: int = 1
    changes: bool = field(default=False, kw_only=True)

    @property
    def count(self) -> int:
        return self.frames * self.rows * self.columns

    @property
    def room(self) -> int:
        frames, _, height, width = self._pixels.shape[1:]
        return max(frames * height * width // CELL, 1)

    @property
    def _pixels(self) -> Tensor:
        if self.column.pixels is None:
            raise ValueError("clips expected, not the maps that were made of them")
        return self.column.pixels

    def without(self, places: Int[Tensor, " rows"]) -> Clips:
        pixels = self._pixels.float() if self.changes else self._pixels.clone()
        height, width = pixels.shape[-2:]
        for clip, real, place in zip(pixels, self.column.mask, places.tolist(), strict=True):
            number, cell = divmod(place, self.rows * self.columns)
            down, across = divmod(cell, self.columns)
            upper, lower = down * height // self.rows, (down + 1) * height // self.rows
            left, right = across * width // self.columns, (across + 1) * width // self.columns
            clip[number, :, upper:lower, left:right] = self._nothing(clip, real, number)[:, upper:lower, left:right]
        return replace(self.column, pixels=pixels)

    def _nothing(
        self, clip: Num[Tensor, "frames channels height width"], real: Bool[Tensor, " frames"], number: int
    ) -> Num[Tensor, "channels height width"]:
        """The pixels that replace a hidden region."""
        others = real.clone()
        others[number] = False
        if self.changes and bool(others.any()):
            return clip[others].mean(0)
        return clip.float().mean().round().to(clip.dtype).expand(clip.shape[1:])

    def by_place(self, vectors: Float[Tensor, "batch frames size rows columns"]) -> Float[Tensor, "batch places"]:
        """A map of other rows and columns than the places have is shared out among them by area."""
        squares = vectors.square().sum(2)
        cells = squares[0, 0].numel() / (self.rows * self.columns)
        found: Tensor = adaptive_avg_pool2d(squares, (self.rows, self.columns)).flatten(1) * cells
        return found.sqrt()
