"""Files that mean harm: none opens another file, starts a program or takes more than its share."""

from __future__ import annotations

import os
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import seq2see
from seq2see.data import image_files, sound_files, video_files
from seq2see.data.image_files import ImageInput
from seq2see.data.media_files import MediaError
from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import VideoInput
from seq2see.errors import UserError
from seq2see.modalities.image import ImageField
from seq2see.recipe import load_recipe
from seq2see.training.dataset import open_table
from tests.clips import av, counted, written

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

IMAGE, SOUND, VIDEO = ImageInput(height=16, width=16), SoundInput(), VideoInput(height=32, width=48)
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"
DDS = b"DDS |\0\0\0\x07\x10\0\0" + struct.pack("<II", 8, 8) + bytes(104)
PSD = b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 8, 8, 8, 3) + bytes(200)


def secret(folder: Path) -> Path:
    """A video that a playlist may want to show."""
    return written(folder / "secret.ts", counted(12), codec="mpeg2video")


def playlist(folder: Path, name: str, *, ended: bool = True) -> Path:
    """An HLS playlist of the secret."""
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:10", "#EXTINF:2,", f"file://{secret(folder)}"]
    (folder / name).write_text("\n".join([*lines, *(["#EXT-X-ENDLIST"] if ended else []), ""]), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4", "list.ts"])
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "endless"])
def test_a_playlist_shows_no_other_file(tmp_path: Path, name: str, ended: bool) -> None:
    path = playlist(tmp_path, name, ended=ended)
    assert video_files.problem_of(tmp_path / "secret.ts", VIDEO) is None, "which can be read by itself"
    assert "not a video" in (video_files.problem_of(path, VIDEO) or "")
    with pytest.raises(MediaError):
        video_files.times_in(path, VIDEO)


def test_formats_that_name_other_files_are_not_videos(tmp_path: Path) -> None:
    path = secret(tmp_path)
    (tmp_path / "a.ffconcat").write_text(f"ffconcat version 1.0\nfile {path.name}\n", encoding="utf-8")
    mpd = f"<MPD><Period><AdaptationSet><BaseURL>file://{path}</BaseURL></AdaptationSet></Period></MPD>"
    (tmp_path / "a.mpd").write_text(f'<?xml version="1.0"?>\n{mpd}', encoding="utf-8")
    (tmp_path / "a.sdp").write_text("v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 1 RTP/AVP 96\n", encoding="utf-8")
    Image.new("RGB", (8, 8)).save(tmp_path / "frame-1.png")
    (tmp_path / "frame-%d.png").write_bytes(b"")
    for name in ("a.ffconcat", "a.mpd", "a.sdp", "frame-%d.png"):
        assert video_files.problem_of(tmp_path / name, VIDEO) is not None, name


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/a.mp4", "concat:a.mp4|b.mp4", "pipe:0", "lavfi", "data:,a"])
def test_an_address_is_not_a_file(address: str) -> None:
    assert video_files.problem_of(address, VIDEO) == "no such file"


def test_training_opens_no_playlist(tmp_path: Path) -> None:
    playlist(tmp_path, "list.m3u8")
    (tmp_path / "table.tsv").write_text("clip\toutput\nlist.m3u8\tx\n", encoding="utf-8")
    recipe = load_recipe({"inputs": {"clip": {"kind": "video"}}, "output": {"kind": "label"}})
    opened, resolution = open_table(recipe, tmp_path / "table.tsv", None)
    with pytest.raises(UserError, match=r"list\.m3u8: not a video"):
        list(resolution.rows(opened))


def film(path: Path, frames: int, size: int) -> Path:
    """A film of one real frame and others of a few bytes each."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=100)
        stream.width = stream.height = size
        stream.pix_fmt = "yuv420p"
        (packet,) = stream.encode(av.VideoFrame.from_ndarray(np.zeros((size, size, 3), np.uint8), format="rgb24"))
        container.mux(packet)
        for number in range(1, frames):
            small = av.Packet(b"\0\0\1\xb6\x50")
            small.stream, small.time_base, small.pts, small.dts = stream, Fraction(1, 100), number, number
            container.mux(small)
    return path


def test_a_film_of_more_pixels_than_anybody_films_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = film(tmp_path / "film.mkv", 1500, 4096)
    assert path.stat().st_size < 500_000
    assert "20,000,000,000 pixels" in (video_files.problem_of(path, VIDEO) or "")
    assert "20,000,000,000 pixels" not in (video_files.problem_of(path, VideoInput(end=1)) or ""), (
        "where it ends sooner"
    )


def test_a_film_of_too_many_frames_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.avi", counted(12))
    monkeypatch.setattr(video_files, "MAX_FRAMES", 10)
    assert "10 frames" in (video_files.problem_of(path, VIDEO) or "")


@pytest.mark.parametrize("name", ["a.eps", "a.png", "a.jpg"])
def test_no_picture_starts_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Pillow has Ghostscript draw EPS files, whatever they are called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("gs", "gswin64c"):
        (programs / program).write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n", encoding="utf-8")
        (programs / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # is looked for anew
    (tmp_path / name).write_bytes(EPS)
    assert "PNG, JPEG, WEBP, GIF, BMP, TIFF" in (image_files.problem_of(tmp_path / name, IMAGE) or "")
    with pytest.raises(MediaError):
        image_files.size_of(tmp_path / name, ImageInput(width=0))
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("suffix", ["dds", "avif", "psd", "ppm", "tga", "pcx", "ico", "jp2", "icns", "sgi"])
def test_other_formats_are_refused_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "a.png"
    if suffix in ("dds", "psd"):
        path.write_bytes({"dds": DDS, "psd": PSD}[suffix])
    else:
        try:
            Image.new("RGB", (64, 64), "red").save(path, format={"jp2": "JPEG2000"}.get(suffix, suffix.upper()))
        except (KeyError, OSError):
            pytest.skip("not written by this Pillow")
    assert "allowed: PNG, JPEG, WEBP, GIF, BMP, TIFF" in (image_files.problem_of(path, IMAGE) or "")


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.gif", "a.bmp", "a.tif"])
def test_allowed_formats_are_read_whatever_they_are_called(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (20, 20), "red").save(tmp_path / name)
    (tmp_path / name).rename(tmp_path / "a.eps")
    assert image_files.problem_of(tmp_path / "a.eps", IMAGE) is None


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def large_png(path: Path, width: int, height: int, bits: int, channels: int) -> Path:
    """A picture of nothing, its first rows: sizes are looked at before anything is decoded."""
    head = struct.pack(">IIBBBBB", width, height, bits, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    row, packing = bytes(1 + width * channels * bits // 8), zlib.compressobj(9)
    body = b"".join([*(packing.compress(row) for _ in range(min(height, 100))), packing.flush()])
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b""))
    return path


def test_sixteen_bits_count_twice(tmp_path: Path) -> None:
    deep = large_png(tmp_path / "deep.png", 12_000, 5400, 16, 4)
    assert "allowed: at most 260,000,000 bytes" in (image_files.problem_of(deep, IMAGE) or "")
    with pytest.raises(MediaError, match="bytes in total"):
        image_files.size_of(deep, ImageInput(width=0))
    small = large_png(tmp_path / "small.png", 120, 54, 16, 4)
    assert image_files.problem_of(small, IMAGE) is None


def test_a_picture_that_pillow_itself_warns_of_is_refused(tmp_path: Path) -> None:
    for side in (9500, 14_000):  # Pillow warns of the first and refuses the second
        path = large_png(tmp_path / "large.png", side, side, 8, 1)
        assert "65,000,000" in (image_files.problem_of(path, ImageInput(largest=20_000)) or "")


def test_a_line_is_not_stretched_without_end(tmp_path: Path) -> None:
    """Twelve thousand pixels across and one down would be three million across at the height that is read."""
    Image.new("L", (12_000, 1)).save(tmp_path / "line.png")
    settings = ImageInput(height=256, width=0)
    assert "16,000,000" in (image_files.problem_of(tmp_path / "line.png", settings) or "")
    with pytest.raises(MediaError):
        image_files.size_of(tmp_path / "line.png", settings)
    with pytest.raises(MediaError):
        image_files.read_image(tmp_path / "line.png", settings)
    Image.new("L", (12_000, 40)).save(tmp_path / "long.png")
    field = ImageField(ImageInput(height=10, width=0))
    larger = field.to_drawable(str(tmp_path / "long.png")).pixels
    assert larger.size <= 3 * image_files.MAX_SIZED, "nor is what is shown of it"


@pytest.mark.parametrize("form", ["VOC", "CAF", "W64", "SVX", "IRCAM", "PAF", "MAT4"])
def test_sounds_of_other_formats_are_refused_by_name(tmp_path: Path, form: str) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(800), 8000, format=form, subtype="PCM_16")
    assert "WAV, WAVEX, RF64, FLAC, OGG, MP3" in (sound_files.problem_of(tmp_path / "a.wav", SOUND) or "")


@pytest.mark.parametrize(("form", "name"), [("WAV", "a.raw"), ("FLAC", "a.sd2"), ("OGG", "a.wav"), ("MP3", "a.htk")])
def test_allowed_sounds_are_read_whatever_they_are_called(tmp_path: Path, form: str, name: str) -> None:
    soundfile.write(tmp_path / "written", np.sin(np.arange(8000) / 9), 8000, format=form)
    (tmp_path / "written").rename(tmp_path / name)
    assert sound_files.problem_of(tmp_path / name, SOUND) is None


def test_many_channels_take_no_more_memory_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, (5000, 70)).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", samples, 8000, subtype="FLOAT")
    whole, _ = sound_files.read_sound(tmp_path / "a.wav", SOUND)
    monkeypatch.setattr(sound_files, "BLOCK", 1000)
    parts, _ = sound_files.read_sound(tmp_path / "a.wav", SOUND)
    assert np.array_equal(whole, parts)
    assert np.array_equal(whole, samples.mean(1))


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for problem_of, settings in (
        (image_files.problem_of, IMAGE),
        (sound_files.problem_of, SOUND),
        (video_files.problem_of, VIDEO),
    ):
        for path in (tmp_path / "pipe", Path("/dev/zero")):
            assert "not a regular file" in (problem_of(path, settings) or "")  # type: ignore[operator]
        assert "no such file" in (problem_of("a" * 5000, settings) or "")  # type: ignore[operator]
        assert "no such file" in (problem_of("a\0b", settings) or "")  # type: ignore[operator]


def test_what_threads_run_leaves_warning_filters_alone() -> None:
    """They are the whole process's: drawing and the command line, in the main thread, may set them."""
    package = Path(seq2see.__file__).parent
    users = [path for path in package.rglob("*.py") if "catch_warnings" in path.read_text(encoding="utf-8")]
    assert {path.relative_to(package).parts[0] for path in users} <= {"seeing", "cli"}


def test_reading_pictures_in_threads_leaves_warnings_as_they_are(tmp_path: Path) -> None:
    paths = []
    for number in range(8):
        Image.new("RGB", (64, 64), (number, 0, 0)).save(tmp_path / f"{number}.png")
        paths.append(str(tmp_path / f"{number}.png"))
    before, pixels = list(warnings.filters), Image.MAX_IMAGE_PIXELS
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            list(threads.map(lambda path: image_files.read_image(path, IMAGE), paths))
            list(threads.map(lambda path: image_files.size_of(path, ImageInput(width=0)), paths))
            assert warnings.filters == before
    assert pixels is not None, "which is every other program's that uses Pillow in this process"
