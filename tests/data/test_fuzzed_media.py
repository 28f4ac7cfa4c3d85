"""Pictures, sounds, videos and series damaged at random: each is read, or refused with a message."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seq2see.data.decoder_pool import COMMAND as REAL_COMMAND
from seq2see.data.image_files import ImageInput, read_image, size_of
from seq2see.data.media_files import Job, MediaError, MediaSettings
from seq2see.data.series_files import SeriesInput, read_series
from seq2see.data.sound_files import SoundInput, read_sound, samples_of
from seq2see.data.video_files import VideoInput, read_video, times_in
from tests.clips import written
from tests.hostile.mutations import SEED, mutate_bytes
from tests.misbehaving_decoder import pool

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

IMAGE, LINE, SOUND = ImageInput(height=16, width=16), ImageInput(height=16, width=0), SoundInput(longest=5)
VIDEO = VideoInput(height=16, width=16, frames=4, longest=10)
SERIES = SeriesInput(source="files", names=["a", "b"])
SETTINGS: dict[str, MediaSettings] = {"image": IMAGE, "sound": SOUND, "video": VIDEO, "series": SERIES}
STAMPED = SERIES.model_copy(update={"time": "t"})

PICTURES: list[tuple[str, str, dict[str, Any]]] = [
    ("RGBA", "PNG", {}),
    ("P", "PNG", {"turned": True}),
    ("I;16", "PNG", {}),
    ("RGB", "JPEG", {"turned": True}),
    ("CMYK", "JPEG", {"progressive": True}),
    ("RGBA", "WEBP", {"turned": True}),
    ("RGB", "WEBP", {"lossless": True}),
    ("P", "GIF", {}),
    ("RGB", "BMP", {}),
    ("1", "BMP", {}),
    ("RGB", "TIFF", {}),
    ("RGBA", "TIFF", {}),
    ("RGB", "TIFF", {"compression": "tiff_lzw"}),
    ("RGB", "TIFF", {"compression": "jpeg"}),
    ("1", "TIFF", {"compression": "group4"}),
    ("L", "TIFF", {"compression": "tiff_adobe_deflate"}),
]
"""Modes, formats, and how they are saved; turned: by EXIF data."""


def pictures() -> Iterator[bytes]:
    noise = np.random.default_rng(0).integers(0, 255, (14, 18, 4)).astype(np.uint8)
    picture, exif = Image.fromarray(noise), Image.Exif()
    exif[0x0112] = 6
    for mode, form, how in PICTURES:
        how = {"exif": exif} if how.get("turned") else how
        file = BytesIO()
        deep = Image.fromarray(noise[..., 0].astype(np.uint16) * 257)
        (deep if mode == "I;16" else picture.convert(mode)).save(file, form, **how)
        yield file.getvalue()


def sounds() -> Iterator[bytes]:
    samples = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 2))
    for form, subtype in (
        *(("WAV", "PCM_16"), ("WAV", "FLOAT"), ("WAV", "MS_ADPCM"), ("WAVEX", "PCM_24"), ("RF64", "PCM_16")),
        *(("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("AIFF", "PCM_16")),
        ("AU", "ULAW"),
    ):
        file = BytesIO()
        soundfile.write(file, samples, 16_000, format=form, subtype=subtype)
        yield file.getvalue()


def videos(folder: Path) -> Iterator[bytes]:
    noise = np.random.default_rng(0).integers(0, 255, (6, 16, 32, 3)).astype(np.uint8)
    for name, codec in (
        *(("a.mp4", "mpeg4"), ("b.mp4", "libx264"), ("a.mkv", "mpeg4"), ("a.webm", "libvpx-vp9"), ("a.avi", "mpeg4")),
        *(("a.mpg", "mpeg1video"), ("a.ts", "mpeg2video"), ("a.flv", "flv"), ("a.asf", "wmv2"), ("b.mov", "libx264")),
    ):
        yield written(folder / name, noise, codec=codec, rate=25).read_bytes()
    file = BytesIO()
    frames = [Image.fromarray(one) for one in noise]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    yield file.getvalue()


def series() -> Iterator[bytes]:
    """Parquet files, and one file each of text and of numpy's format."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    random = np.random.default_rng(0)
    values = random.normal(size=20), random.integers(0, 9, 20)
    table = arrow.table({"t": [f"2021-01-{day}" for day in range(20)], "a": values[0], "b": values[1]})
    ways: list[dict[str, Any]] = [
        {},
        {"compression": "gzip"},
        {"compression": "none", "use_dictionary": False},
        {"row_group_size": 7, "version": "1.0"},
        {"data_page_version": "2.0", "compression": "zstd"},
    ]
    for how in ways:
        file = BytesIO()
        parquet.write_table(table, file, **how)
        yield file.getvalue()
    yield b"t,a,b\n" + b"".join(b"%d,%f,%d\n" % (day, a, b) for day, (a, b) in enumerate(zip(*values, strict=True)))
    file = BytesIO()
    np.save(file, np.stack(values, axis=1))
    yield file.getvalue()


def mutate_footer(content: bytes, draw: random.Random) -> bytes:
    """A Parquet file with one to three changed bytes in its metadata, which are at its end."""
    made, size = bytearray(content), int.from_bytes(content[-8:-4], "little")
    for _ in range(draw.choice((1, 1, 2, 3))):
        made[-9 - draw.randrange(size)] = draw.choice((draw.randrange(256), 0, 1, 127, 128, 255))
    return bytes(made)


def read(kind: str, path: Path) -> None:
    """All that is done with a file."""
    calls: dict[str, list[Callable[[], object]]] = {
        "image": [lambda: read_image(path, IMAGE), lambda: read_image(path, LINE), lambda: size_of(path, LINE)],
        "sound": [lambda: read_sound(path, SOUND), lambda: samples_of(path, SOUND)],
        "video": [lambda: read_video(path, VIDEO), lambda: times_in(path, VIDEO)],
        "series": [lambda: read_series(path, SERIES), lambda: read_series(path, STAMPED)],
    }
    for call in calls[kind]:
        with contextlib.suppress(MediaError):
            call()


def damaged(whole: list[bytes], draw: random.Random) -> bytes:
    """One of these files with some changes."""
    content = draw.choice(whole)
    if content.endswith(b"PAR1") and draw.random() < 0.7:
        return mutate_footer(content, draw)
    return mutate_bytes(content, draw, others=whole)


def fuzzed(kind: str, folder: Path, number: int, seed: int) -> Iterator[bytes]:
    whole, draw = list(files(kind, folder)), random.Random(seed)
    return (damaged(whole, draw) for _ in range(number))


def files(kind: str, folder: Path) -> Iterator[bytes]:
    made = {"image": pictures, "sound": sounds, "video": lambda: videos(folder), "series": series}
    return made[kind]()


@pytest.mark.parametrize("kind", SETTINGS)
def test_whole_files_are_read(tmp_path: Path, kind: str) -> None:
    for number, content in enumerate(files(kind, tmp_path)):
        (tmp_path / f"{number}.bin").write_bytes(content)
        if kind == "image":
            read_image(tmp_path / f"{number}.bin", IMAGE)
        elif kind == "sound":
            read_sound(tmp_path / f"{number}.bin", SOUND)
        elif kind == "series":
            assert read_series(tmp_path / f"{number}.bin", SERIES).values.shape == (20, 2)
        else:
            read_video(tmp_path / f"{number}.bin", VIDEO)


@pytest.mark.parametrize(("kind", "number"), [("image", 600), ("sound", 400), ("video", 250), ("series", 2000)])
def test_damaged_files_are_read_or_refused(tmp_path: Path, kind: str, number: int) -> None:
    path = tmp_path / "damaged.bin"
    for content in fuzzed(kind, tmp_path, number, seed=1):
        path.write_bytes(content)
        read(kind, path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SETTINGS)
def test_many_damaged_files_are_read_or_refused_by_processes(tmp_path: Path, kind: str) -> None:
    decoders = pool(queue_size=10_000, seconds=20, command=REAL_COMMAND)
    try:
        problems = []
        for number, content in enumerate(fuzzed(kind, tmp_path, 7000, seed=SEED)):
            path = tmp_path / f"{number % 100}.bin"
            path.write_bytes(content)
            (decoding,) = decoders.submit([Job(str(path), SETTINGS[kind])])
            failure = decoding.exception(60)
            assert failure is None or isinstance(failure, MediaError)
            problems += [(number, str(failure))] if failure is not None else []
        assert not [one for one in problems if "broke down" in one[1] or "longer than" in one[1]]
    finally:
        decoders.close()
