"""Videos as files: opened with care, frames chosen by a rule and brought to one size."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from seq2see.data.image_files import Pixels, fitted
from seq2see.data.media_files import MediaError, MediaSettings, check_file, decoding
from seq2see.errors import imported
from seq2see.settings.base import Amount, Count, Positive, Settings, Share, Side, Weight

Part = Annotated[float, Field(ge=0, le=1)]


class VideoAugmentSettings(Settings):
    """How clips are changed at random while a model is trained: all frames of a clip alike, but for `jitter`."""

    flip: bool = Field(False, description="mirror every other clip (no left and right in captions, no text in it)")
    shift: Share = Field(0.0, description="move the picture by up to this share of its sides, at random")
    light: Share = Field(0.0, description="change brightness and contrast by up to this share")
    jitter: Share = Field(0.0, description="so large a share of the frames is left out or stands there twice")


class VideoInput(MediaSettings):
    """One input that is a video: an MP4, MOV, Matroska, WebM, AVI, MPEG, MPEG-TS, Ogg, FLV, WMV or GIF file (extra
    `video`), without its sound."""

    usual_encoder: ClassVar[str] = "video"
    reversible: ClassVar[bool] = True
    kind: Literal["video"] = Field("video", description="what the column holds")
    every: Positive = Field(1, description="every so many-th frame is read")
    rate: Amount = Field(0.0, description="so many frames a second are read; 0: as `every` says")
    frames: Count = Field(0, description="so many frames are read, spread evenly over the clip; 0: as `rate` says")
    most: Positive = Field(256, description="at most so many: of longer clips this many, spread evenly")
    start: Amount = Field(0.0, description="seconds at which reading begins")
    end: Amount = Field(0.0, description="seconds at which it ends; 0: with the clip")
    height: Side = Field(112, description="pixels every frame is brought to")
    width: Side = Field(112, description="... and across")
    fit: Literal["crop", "stretch", "pad"] = Field(
        "crop", description="how a frame of other proportions fits: its middle, all of it out of shape, or with edges"
    )
    region: tuple[Part, Part, Part, Part] = Field(
        (0.0, 0.0, 1.0, 1.0), description="the part of each frame that is read: left, top, right, bottom, from 0 to 1"
    )
    colour: Literal["rgb", "grey"] = Field("rgb", description="three channels, or one")
    longest: Weight = Field(60.0, description="seconds of the longest file that is still read")
    largest: Positive = Field(4096, description="pixels of the longest side of a file that is still read")
    augment: VideoAugmentSettings = VideoAugmentSettings()

    @property
    def channels(self) -> int:
        return 3 if self.colour == "rgb" else 1


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
"""The formats that are read, by FFmpeg's names and as people know them, whatever a file is called. FFmpeg knows many
more; some (playlists: HLS, DASH, concat) open other files and addresses that they name."""

PICTURES, SOUNDS = (b"\x89PNG", b"\xff\xd8\xff", b"BM", b"II*\0", b"MM\0*"), (b"fLaC", b"ID3")
"""How files begin that are no videos."""

MOST_FRAMES = 200_000
"""Of a file, however few of them are chosen: an hour at 50 a second."""

MOST_DECODED = 20_000_000_000
"""Pixels that may be decoded to reach the last frame that is chosen: five minutes of 1920 x 1080 at 30 a second. A file
of megabytes may hold a thousand times as many."""


@dataclass(frozen=True)
class Clip:
    """pixels: (frames, channels, height, width), from 0 to 255; times: (frames,), the second each is shown at."""

    pixels: Pixels
    times: NDArray[np.float32]

    @property
    def nbytes(self) -> int:
        return self.pixels.nbytes + self.times.nbytes


def read_video(path: str | Path, settings: VideoInput) -> Clip:
    """The frames of a file that the settings choose, turned as the file says.

    A file is decoded from its beginning: most frames are known by what changed since the last, so leaving some out
    saves only their conversion.
    """
    with _opened(path, settings) as (container, stream):
        wanted = chosen(_shown_at(container, stream, settings), settings)
        if not len(wanted):
            raise MediaError(f"no frame from {settings.start:g} s on{_until(settings)}")
        _check_pixels(stream.codec_context, int(wanted[-1]) + 1)
        container.seek(0)
        pixels = list[Pixels]()
        times = list[float]()
        for number, frame in enumerate(container.decode(stream)):
            if number > wanted[-1]:
                break
            _check_side(frame, settings)  # it may change on the way
            if number in wanted:
                pixels.append(_brought(frame, settings))
                times.append(float(frame.time or 0.0))
    if not pixels:
        raise MediaError("damaged: none of its frames can be decoded")
    where = np.minimum(np.searchsorted(np.unique(wanted), wanted), len(pixels) - 1)
    return Clip(np.stack(pixels)[where], np.asarray(times, dtype=np.float32)[where])


def times_in(path: str | Path, settings: VideoInput) -> NDArray[np.float64]:
    """(frames,), the second each frame of a file is shown at, of those that a model reads; nothing is decoded."""
    with _opened(path, settings) as (container, stream):
        times = _shown_at(container, stream, settings)
        return times[chosen(times, settings)]


def frames_in(path: str | Path, settings: VideoInput) -> int:
    """Frames of a file as a model reads it; nothing is decoded."""
    return len(times_in(path, settings))


def problem_of(path: str | Path, settings: VideoInput) -> str | None:
    """Why a video cannot be used; None where it can. It is read to the last frame that is wanted."""
    try:
        read_video(path, settings)
    except MediaError as error:
        return str(error)
    return None


def chosen(times: Sequence[float] | NDArray[np.float64], settings: VideoInput) -> NDArray[np.int64]:
    """The numbers of the frames that are read, of a file whose frames are shown at these seconds.

    >>> times = np.arange(10) / 5
    >>> chosen(times, VideoInput(every=3)).tolist(), chosen(times, VideoInput(frames=2)).tolist()
    ([0, 3, 6, 9], [2, 7])
    """
    seconds = np.asarray(times, dtype=np.float64)
    inside = (seconds >= settings.start - 1e-6) & ((seconds < settings.end) if settings.end else True)
    found = np.flatnonzero(inside)
    if not len(found):
        return found
    if settings.frames:
        return found[_spread(len(found), settings.frames)]
    if settings.rate:
        first = seconds[found[0]]
        ticks = first + np.arange(int((seconds[found[-1]] - first) * settings.rate + 1e-6) + 1) / settings.rate
        found = np.unique(found[np.searchsorted(seconds[found], ticks - 1e-6).clip(max=len(found) - 1)])
    else:
        found = found[:: settings.every]
    return found if len(found) <= settings.most else found[_spread(len(found), settings.most)]


def _spread(number: int, wanted: int) -> NDArray[np.int64]:
    """So many numbers below `number`, each from the middle of its share; some stand there twice if it is smaller."""
    return np.asarray((np.arange(wanted) + 0.5) * number / wanted, dtype=np.int64)


def _until(settings: VideoInput) -> str:
    return f" and before {settings.end:g} s" if settings.end else ""


def _brought(frame: Any, settings: VideoInput) -> Pixels:
    """One frame as (channels, height, width): turned, cut to the region, of the size that is wanted."""
    array = frame.to_ndarray(format="gray" if settings.colour == "grey" else "rgb24")
    turned = np.rot90(array, round(frame.rotation / 90)) if frame.rotation else array
    high, wide = turned.shape[:2]
    left, top, right, bottom = settings.region
    rows = slice(int(top * high), max(int(np.ceil(bottom * high)), int(top * high) + 1))
    columns = slice(int(left * wide), max(int(np.ceil(right * wide)), int(left * wide) + 1))
    part = turned[rows, columns]
    if part.shape[:2] != (settings.height, settings.width):
        picture = Image.fromarray(np.ascontiguousarray(part))
        part = np.asarray(fitted(picture, settings.height, settings.width, settings.fit))
    return np.ascontiguousarray(part[None] if part.ndim == 2 else part.transpose(2, 0, 1))


def _check_side(size: Any, settings: VideoInput) -> None:
    """size: whatever has a width and a height."""
    if max(size.width, size.height) > settings.largest:
        pixels = f"{size.width:,} x {size.height:,} pixels"
        raise MediaError(f"{pixels}; allowed: at most {settings.largest:,} on a side (`largest`)")


def _check_pixels(size: Any, frames: int) -> None:
    if frames * size.width * size.height > MOST_DECODED:
        pixels = f"{frames:,} frames of {size.width:,} x {size.height:,} pixels to decode"
        raise MediaError(f"{pixels}; allowed: at most {MOST_DECODED:,} pixels in all")


def _shown_at(container: Any, stream: Any, settings: VideoInput) -> NDArray[np.float64]:
    """The second at which each frame is shown, from 0 on, by what the file says of its packets."""
    held, found, shown = _held(container, stream), 0, list[int | None]()
    for packet in container.demux(stream):
        if not packet.size:
            continue
        found += 1
        if found > MOST_FRAMES:
            raise MediaError(f"more than {MOST_FRAMES:,} frames; allowed: at most that")
        if not packet.is_discard:
            shown.append(packet.pts)
    if not shown:
        raise MediaError("a video without any frames")
    if found < held:
        raise MediaError(f"damaged or cut short: {found:,} of {held:,} frames are there")
    rate = float(stream.guessed_rate or stream.average_rate or 25)
    known = [time for time in shown if time is not None]
    if len(known) < len(shown):
        times = np.arange(len(shown)) / rate
    else:
        times = (np.sort(np.asarray(known, dtype=np.float64)) - min(known)) * float(stream.time_base)
    seconds = times[-1] + 1 / rate
    if seconds > settings.longest:
        raise MediaError(f"{seconds:,.1f} s long; allowed: at most {settings.longest:g} s (`longest`)")
    return times


def _check_kind(file: Path) -> None:
    """Refuse pictures and sounds with a better message than FFmpeg's."""
    with decoding(), file.open("rb") as opened:
        head = opened.read(12)
    if head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:] == b"WEBP"):
        raise MediaError("a picture, not a video (an input of kind image reads pictures)")
    if head.startswith(SOUNDS) or (head[:4] == b"RIFF" and head[8:] == b"WAVE"):
        raise MediaError("no pictures in it: it has no video stream")


def _held(container: Any, stream: Any) -> int:
    """Packets that a file says it holds, before any is read; 0 where it does not say. Of MP4 that is cut without being
    coded anew, these are the packets that its edit list leaves, which may be fewer than its frames."""
    return len(stream.index_entries) if container.format.name.startswith("mov") else int(stream.frames)


@contextmanager
def _opened(path: str | Path, settings: VideoInput) -> Iterator[tuple[Any, Any]]:
    """The open file and its first stream of pictures, decoded in the thread that asks: many files are read at once.

    FFmpeg may open this file and nothing else: no other protocol, no format that names other files.
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
            raise MediaError("its pictures are coded in a way that FFmpeg does not know")
        _check_side(stream.codec_context, settings)
        stream.codec_context.options = {"max_pixels": str(settings.largest**2)}
        stream.thread_type = "NONE"
        yield container, stream


# ---------------- Decoded clips kept in memory

MOST = 2 << 30
"""Bytes of clips that are kept, however much memory there is."""


class KeptClips:
    """The clips read last, up to so many bytes of them; a file that has changed since is read anew."""

    def __init__(self, most: int):
        self.most, self.bytes = most, 0
        self._clips: OrderedDict[str, Clip] = OrderedDict()
        self._lock = Lock()

    def get(self, path: str, how: str, read: Callable[[], Clip]) -> Clip:
        """The clip of a file read in that way; `read` is called where it is not kept."""
        stamp = _stamp(path)
        key = f"{stamp}|{how}"
        with self._lock:
            if key in self._clips:
                self._clips.move_to_end(key)
                return self._clips[key]
        clip = read()
        clip.pixels.flags.writeable = False
        if _stamp(path) != stamp:  # gone or changed while it was read
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
        found = Path(path).stat()
    except OSError:
        return path
    return f"{Path(path).absolute()}|{found.st_size}|{found.st_mtime_ns}"


def _room() -> int:
    """A quarter of the machine's memory, at most MOST."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        whole = 4 * MOST
    return min(MOST, whole // 4)


KEPT = KeptClips(_room())
"""Of this process: what a first look into the files of a table decodes, training need not decode again."""
