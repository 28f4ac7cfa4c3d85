"""Video files: opened safely, frames selected and resized. Nothing here needs torch."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from seq2see.data.image_files import Pixels, fit_image
from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.errors import imported
from seq2see.registry import Problem
from seq2see.settings.base import Amount, Count, Positive, Settings, Share, Side, Weight, no_effect

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

Part = Annotated[float, Field(ge=0, le=1)]


class VideoAugmentSettings(Settings):
    """Random augmentation of clips during training: the same for all frames of a clip, except `jitter` and masks of
    time."""

    flip: bool = Field(
        False, description="mirror half of the clips (not if they contain text or if left and right matter)"
    )
    shift: Share = Field(0.0, description="maximum random shift relative to the sides")
    light: Share = Field(0.0, description="maximum relative change of brightness and contrast")
    jitter: Share = Field(0.0, description="share of frames that are dropped or repeated at random")
    speed: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.0, description="maximum relative change of speed, by leaving out or repeating frames evenly"
    )
    occlude: Share = Field(
        0.0, description="maximum sides of a rectangle that is hidden in all frames, relative to those of a frame"
    )
    time_masks: Count = Field(0, description="number of stretches of frames to hide")
    time_width: Positive = Field(8, description="maximum frames of such a stretch, at most a quarter of the clip")


class VideoInput(MediaSettings):
    """A video input: MP4, MOV, Matroska, WebM, AVI, MPEG, MPEG-TS, Ogg, FLV, WMV or GIF files (extra `video`),
    without sound."""

    usual_encoder: ClassVar[str] = "video"
    noun: ClassVar[str] = "a video"
    media: ClassVar[str] = "video/*"
    decoded_arrays: ClassVar[int] = 2
    timed: ClassVar[bool] = True
    reversible: ClassVar[bool] = True
    kind: Literal["video"] = Field("video", description="kind of the input")
    every: Positive = Field(1, description="read every n-th frame")
    rate: Amount = Field(0.0, description="frames to read per second; 0: use `every`")
    frames: Count = Field(0, description="number of frames to read, spread evenly over the clip; 0: use `rate`")
    most: Positive = Field(256, description="maximum number of frames; longer clips are sampled evenly")
    start: Amount = Field(0.0, description="start in seconds")
    end: Amount = Field(0.0, description="end in seconds; 0: the end of the clip")
    height: Side = Field(112, description="height in pixels that frames are resized to")
    width: Side = Field(112, description="width in pixels that frames are resized to")
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="how to fit another aspect ratio: crop to the middle, stretch, or pad"
    )
    region: tuple[Part, Part, Part, Part] = Field(
        (0.0, 0.0, 1.0, 1.0), description="region of each frame to read: left, top, right, bottom, from 0 to 1"
    )
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels or one")
    longest: Weight = Field(60.0, description="maximum length of a file in seconds")
    largest: Positive = Field(4096, description="maximum side of a frame in pixels")
    augment: VideoAugmentSettings = VideoAugmentSettings()

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1

    @property
    def size_text(self) -> str:
        """Height and width for messages."""
        return f"{self.height} x {self.width}"

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.end and self.end <= self.start:
            message = f"{self.end:g} s is not after the start at {self.start:g} s; allowed: more, or 0"
            yield Problem(f"{path}.end", message, "video-part")
        left, top, right, bottom = self.region
        if left >= right or top >= bottom:
            allowed = "left, top, right, bottom, each pair rising"
            yield Problem(f"{path}.region", f"{list(self.region)} has nothing in it; allowed: {allowed}", "video-part")
        if not self.augment.time_masks:
            yield from no_effect(self.augment, f"{path}.augment", ["time_width"], "augment.time_masks is 0")
        if self.frames:
            keys, reason = ["rate", "every", "most"], f"frames: {self.frames} are read of every clip"
            yield from no_effect(self, path, keys, reason)
            yield from no_effect(self.augment, f"{path}.augment", ["speed"], f"{reason}, whatever its speed")
        elif self.rate:
            yield from no_effect(self, path, ["every"], f"rate: {self.rate:g} frames a second are read")
        if recipe.generated_labels is not None:
            yield from self._check_direction(path)

    def _check_direction(self, path: str) -> Iterator[Problem]:
        """What would give away the direction in which a clip is read, or hide it."""
        if self.frames == 1 or (not self.frames and self.most == 1):
            message = "1, and a single frame is the same both ways; allowed: 2 and more"
            yield Problem(f"{path}.{'frames' if self.frames else 'most'}", message, "direction")
        if self.rate and not self.frames:
            message = f"{self.rate:g} a second are seldom evenly spaced, and the spaces would tell the direction"
            yield Problem(f"{path}.rate", f"{message}; allowed: 0, with `frames` or `every`", "direction")

    def decode(self, path: str) -> list[NDArray[Any]]:
        """The pixels of the frames that are read, and the second of each."""
        clip = read_video(path, self)
        return [clip.pixels, clip.times]


FORMATS = {
    "mov": "MP4 and MOV",
    "matroska": "Matroska and WebM",
    "avi": "AVI",
    "mpeg": "MPEG",
    "mpegts": "MPEG-TS",
    "ogg": "Ogg",
    "flv": "FLV",
    "asf": "WMV",
    "gif": "GIF",
}
"""Supported formats, by FFmpeg's names and their common names, whatever the file name. FFmpeg reads many more; some
(playlists: HLS, DASH, concat) open other files and addresses."""

PICTURES, SOUNDS = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"II*\0", b"MM\0*"), (b"fLaC", b"ID3")
"""How image and sound files begin."""

MAX_FRAMES = 200_000
"""Frames of a file, however few are selected: an hour at 50 per second."""

MAX_DECODED = 20_000_000_000
"""Pixels that may be decoded up to the last selected frame: five minutes of 1920 x 1080 at 30 per second. A file of
megabytes may contain a thousand times as many."""


@dataclass(frozen=True)
class Clip:
    """pixels: (frames, channels, height, width), from 0 to 255; times: (frames,), in seconds."""

    pixels: Pixels
    times: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.pixels.nbytes + self.times.nbytes


def read_video(path: str | Path, settings: VideoInput) -> Clip:
    """The frames of a file that the settings select, rotated as the file says.

    A file is decoded from its start: most frames are differences from the one before, so skipping some saves only their
    conversion.
    """
    with _open(path, settings) as (container, stream):
        wanted = select_frames(_frame_times(container, stream, settings), settings)
        if not len(wanted):
            raise MediaError(f"no frame from {settings.start:g} s on{_until(settings)}")
        _check_pixels(stream.codec_context, int(wanted[-1]) + 1)
        container.seek(0)
        pixels = list[Pixels]()
        times = list[float]()
        for number, frame in enumerate(container.decode(stream)):
            if number > wanted[-1]:
                break
            _check_side(frame, settings)  # the size may change between frames
            if number in wanted:
                pixels.append(_convert_frame(frame, settings))
                times.append(float(frame.time or 0.0))
    if not pixels:
        raise MediaError("damaged: no frame can be decoded")
    where = np.minimum(np.searchsorted(np.unique(wanted), wanted), len(pixels) - 1)
    return Clip(np.stack(pixels)[where], np.asarray(times, dtype=np.float32)[where])


def times_in(path: str | Path, settings: VideoInput) -> NDArray[np.float64]:
    """(frames,), the times in seconds of the frames that a model reads; nothing is decoded."""
    with _open(path, settings) as (container, stream):
        times = _frame_times(container, stream, settings)
        return times[select_frames(times, settings)]


def frames_in(path: str | Path, settings: VideoInput) -> int:
    """The number of frames that a model reads; nothing is decoded."""
    return len(times_in(path, settings))


def problem_of(path: str | Path, settings: VideoInput) -> str | None:
    """Why a video cannot be used, or None. It is decoded up to the last selected frame."""
    try:
        read_video(path, settings)
    except MediaError as error:
        return str(error)
    return None


def select_frames(times: Sequence[float] | NDArray[np.float64], settings: VideoInput) -> NDArray[np.int64]:
    """The indices of the selected frames, given the times of all frames in seconds.

    >>> times = np.arange(10) / 5
    >>> select_frames(times, VideoInput(every=3)).tolist(), select_frames(times, VideoInput(frames=2)).tolist()
    ([0, 3, 6, 9], [2, 7])
    """
    seconds = np.asarray(times, dtype=np.float64)
    inside = (seconds >= settings.start - 1e-6) & ((seconds < settings.end) if settings.end else True)
    selected = np.flatnonzero(inside)
    if not len(selected):
        return selected
    if settings.frames:
        return selected[_evenly(len(selected), settings.frames)]
    if settings.rate:
        first = seconds[selected[0]]
        ticks = first + np.arange(int((seconds[selected[-1]] - first) * settings.rate + 1e-6) + 1) / settings.rate
        selected = np.unique(selected[np.searchsorted(seconds[selected], ticks - 1e-6).clip(max=len(selected) - 1)])
    else:
        selected = selected[:: settings.every]
    return selected if len(selected) <= settings.most else selected[_evenly(len(selected), settings.most)]


def _evenly(number: int, wanted: int) -> NDArray[np.int64]:
    """`wanted` indices below `number`, each from the middle of its share; some repeat if there are fewer."""
    return np.asarray((np.arange(wanted) + 0.5) * number / wanted, dtype=np.int64)


def _until(settings: VideoInput) -> str:
    return f" and before {settings.end:g} s" if settings.end else ""


def _convert_frame(frame: Any, settings: VideoInput) -> Pixels:
    """One frame as (channels, height, width): rotated, cropped to the region and resized."""
    array = frame.to_ndarray(format="gray" if settings.colour == "grey" else "rgb24")
    turned = np.rot90(array, round(frame.rotation / 90)) if frame.rotation else array
    high, wide = turned.shape[:2]
    left, top, right, bottom = settings.region
    rows = slice(int(top * high), max(int(np.ceil(bottom * high)), int(top * high) + 1))
    columns = slice(int(left * wide), max(int(np.ceil(right * wide)), int(left * wide) + 1))
    part = turned[rows, columns]
    if part.shape[:2] != (settings.height, settings.width):
        picture = Image.fromarray(np.ascontiguousarray(part))
        part = np.asarray(fit_image(picture, settings.height, settings.width, settings.fit))
    return np.ascontiguousarray(part[None] if part.ndim == 2 else part.transpose(2, 0, 1))


def _check_side(size: Any, settings: VideoInput) -> None:
    """Refuse a frame or stream that is too large; size: anything with a width and a height."""
    if max(size.width, size.height) > settings.largest:
        pixels = f"{size.width:,} x {size.height:,} pixels"
        raise MediaError(f"{pixels}; allowed: at most {settings.largest:,} on a side (`largest`)")


def _check_pixels(size: Any, frames: int) -> None:
    if frames * size.width * size.height > MAX_DECODED:
        pixels = f"{frames:,} frames of {size.width:,} x {size.height:,} pixels to decode"
        raise MediaError(f"{pixels}; allowed: at most {MAX_DECODED:,} pixels in total")


def _frame_times(container: Any, stream: Any, settings: VideoInput) -> NDArray[np.float64]:
    """The time of each frame in seconds, from 0 on, by the packets of the file."""
    promised, number, times_shown = _promised_frames(container, stream), 0, list[int | None]()
    for packet in container.demux(stream):
        if not packet.size:
            continue
        number += 1
        if number > MAX_FRAMES:
            raise MediaError(f"more than {MAX_FRAMES:,} frames; allowed: at most that")
        if not packet.is_discard:
            times_shown.append(packet.pts)
    if not times_shown:
        raise MediaError("a video without frames")
    if number < promised:
        raise MediaError(f"damaged or cut short: {number:,} of {promised:,} frames are there")
    rate = float(stream.guessed_rate or stream.average_rate or 25)
    known = [time for time in times_shown if time is not None]
    if len(known) < len(times_shown):
        times = np.arange(len(times_shown)) / rate
    else:
        times = (np.sort(np.asarray(known, dtype=np.float64)) - min(known)) * float(stream.time_base)
    seconds = times[-1] + 1 / rate
    if seconds > settings.longest:
        raise MediaError(f"{seconds:,.1f} s long; allowed: at most {settings.longest:g} s (`longest`)")
    return times


def _check_kind(file: Path) -> None:
    """Refuse images and sounds with a better message than FFmpeg's."""
    with decoding(), file.open("rb") as opened:
        head = opened.read(12)
    if head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:] == b"WEBP"):
        raise MediaError("a picture, not a video (an input of kind image reads pictures)")
    if head.startswith(SOUNDS) or (head[:4] == b"RIFF" and head[8:] == b"WAVE"):
        raise MediaError("no pictures in it: it has no video stream")


def _promised_frames(container: Any, stream: Any) -> int:
    """The number of packets that the header promises; 0 if it does not say. For MP4 that was cut without
    re-encoding, the packets that its edit list leaves."""
    return len(stream.index_entries) if container.format.name.startswith("mov") else int(stream.frames)


@contextmanager
def _open(path: str | Path, settings: VideoInput) -> Iterator[tuple[Any, Any]]:
    """The open file and its first video stream, decoded in the calling thread, because many files are read at once.

    FFmpeg may open only this file: no other protocol, no format that names other files.
    """
    av = imported("av", extra="video")
    file = check_file(path, "video")
    options = {"protocol_whitelist": "file", "format_whitelist": ",".join(FORMATS)}
    _check_kind(file)
    with decoding(f"not a video that FFmpeg can read (allowed: {', '.join(FORMATS.values())})"):
        container = av.open(f"file:{file.absolute()}", options=options, metadata_errors="ignore")
    with container, decoding():
        if not container.streams.video:
            raise MediaError("no pictures in it: it has no video stream")
        stream = container.streams.video[0]
        if stream.codec_context is None:
            raise MediaError("its video codec is unknown to FFmpeg")
        _check_side(stream.codec_context, settings)
        stream.codec_context.options = {"max_pixels": str(settings.largest**2)}
        stream.thread_type = "NONE"
        yield container, stream


MAX_CACHE = 2 << 30
"""Bytes of cached clips, however much memory there is."""


class ClipCache:
    """A cache of the latest clips, up to a number of bytes; a changed file is read again."""

    def __init__(self, most: int):
        self.most, self.bytes = most, 0
        self._clips: OrderedDict[str, Clip] = OrderedDict()
        self._lock = Lock()

    def get(self, path: str, settings: str, read: Callable[[], Clip]) -> Clip:
        """The clip of a file read with these settings; calls `read` if it is not cached."""
        stamp = _stamp(path)
        key = f"{stamp}|{settings}"
        with self._lock:
            if key in self._clips:
                self._clips.move_to_end(key)
                return self._clips[key]
        clip = read()
        clip.pixels.flags.writeable = False
        if _stamp(path) != stamp:  # deleted or changed while it was read
            return clip
        with self._lock:
            if key not in self._clips:
                self._clips[key] = clip
                self.bytes += clip.nbytes
            while self.bytes > self.most:
                self.bytes -= self._clips.popitem(last=False)[1].nbytes
        return clip


def _stamp(path: str) -> str:
    try:
        status = Path(path).stat()
    except OSError:
        return path
    return f"{Path(path).absolute()}|{status.st_size}|{status.st_mtime_ns}"


def _cache_size() -> int:
    """A quarter of the machine's memory, at most MOST."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = 4 * MAX_CACHE
    return min(MAX_CACHE, whole // 4)


CLIP_CACHE = ClipCache(_cache_size())
"""The cache of this process: training need not decode again what the check of a table decoded."""
