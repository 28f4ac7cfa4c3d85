"""Pictures as files: opened with care, brought to one size, changed at random only where asked."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from PIL import Image

from seq2see.data import image_files
from seq2see.data.image_files import (
    AugmentSettings,
    ImageInput,
    SmoothNoise,
    distorted,
    problem_of,
    read_image,
    size_of,
    thickened,
)
from seq2see.data.media_files import MediaError
from seq2see.modalities.image import ImageField


def drawn(path: Path, size: tuple[int, int] = (40, 20), mode: str = "RGB", **saving: object) -> Path:
    """Left half red, right half blue."""
    picture = Image.new("RGB", size, "blue")
    picture.paste((255, 0, 0), (0, 0, size[0] // 2, size[1]))
    picture.convert(mode).save(path, **saving)  # type: ignore[arg-type]
    return path


SMALL = ImageInput(height=10, width=20, fit="stretch")


@pytest.mark.parametrize(("name", "mode"), [("a.png", "RGB"), ("a.jpg", "CMYK"), ("a.png", "P"), ("a.tif", "RGB")])
def test_pictures_of_every_mode_become_red_green_and_blue(tmp_path: Path, name: str, mode: str) -> None:
    pixels = read_image(drawn(tmp_path / name, mode=mode), SMALL)
    assert pixels.shape == (3, 10, 20)
    assert pixels[0, 5, 3] > 180 > 90 > pixels[2, 5, 3]
    assert pixels[2, 5, 16] > 180 > 90 > pixels[0, 5, 16]


def test_what_lies_on_its_side_is_turned(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    path = drawn(tmp_path / "a.jpg", exif=exif, quality=95)
    pixels = read_image(path, ImageInput(height=20, width=10, fit="stretch"))
    assert pixels[0, 3, 5] > 180
    assert pixels[2, 16, 5] > 180
    assert size_of(path, ImageInput(height=40, width=0)) == (40, 20)


def test_transparent_parts_are_white(tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "a.png")
    assert (read_image(tmp_path / "a.png", ImageInput(height=8, width=8)) == 255).all()


def test_sixteen_bits_become_eight(tmp_path: Path) -> None:
    values = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png", ImageInput(height=8, width=8, colour="grey"))
    assert np.abs(pixels[0].astype(int) - (values / 65535 * 255).astype(int)).max() <= 1


def test_three_ways_to_fit(tmp_path: Path) -> None:
    path = drawn(tmp_path / "a.png")
    crop = read_image(path, ImageInput(height=20, width=20, fit="crop"))
    stretch = read_image(path, ImageInput(height=20, width=20, fit="stretch"))
    pad = read_image(path, ImageInput(height=20, width=20, fit="pad"))
    assert crop.shape == stretch.shape == pad.shape == (3, 20, 20)
    assert (pad[:, 0] == 255).all()
    assert not (stretch[:, 0] == 255).all()


def test_lines_keep_their_proportions_and_are_squeezed_at_most(tmp_path: Path) -> None:
    path = drawn(tmp_path / "a.png", (400, 20))
    assert read_image(path, ImageInput(height=40, width=0, colour="grey")).shape == (1, 40, 800)
    limited = ImageInput(height=40, width=0, widest=100)
    assert read_image(path, limited).shape == (3, 40, 100)
    assert size_of(path, limited) == (40, 100)


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    good = drawn(tmp_path / "good.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(good[:-40])
    (tmp_path / "text.png").write_text("no picture", encoding="utf-8")
    (tmp_path / "empty.png").write_bytes(b"")
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "green", "blue")]
    frames[0].save(tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    Image.new("L", (20_000, 4)).save(tmp_path / "wide.png")
    Image.new("1", (9000, 9000)).save(tmp_path / "large.png")
    frames[0].save(tmp_path / "pages.tif", save_all=True, append_images=frames[1:])
    pages = (tmp_path / "pages.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(pages[:200])
    (tmp_path / "later.tif").write_bytes(pages[: len(pages) // 2 + 100])
    said = {
        "missing.jpg": "no such file",
        "cut.jpg": "damaged or cut short",
        "text.png": "not an image",
        "empty.png": "not an image",
        "film.gif": "an animation of 3 frames",
        "wide.png": "20,000 x 4 pixels; allowed: at most 12,000",
        "large.png": "9,000 x 9,000 pixels; allowed: at most 65,000,000 in total",
        "pages.tif": "an animation of 3 frames",
        "cut.tif": "damaged or cut short",
        "later.tif": "damaged or cut short",
    }
    for name, reason in said.items():
        found = problem_of(tmp_path / name, SMALL)
        assert found is not None, name
        assert reason in found, (name, found)
        with pytest.raises(MediaError):
            read_image(tmp_path / name, SMALL)
        if name != "cut.jpg":  # whose head tells its size
            with pytest.raises(MediaError):
                size_of(tmp_path / name, ImageInput(height=10, width=0))
    assert problem_of(tmp_path / "good.jpg", SMALL) is None


def test_of_a_phones_pictures_in_one_file_the_first_is_read(tmp_path: Path) -> None:
    other = Image.new("RGB", (10, 5), "green")
    path = drawn(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[other])
    with Image.open(path) as opened:
        assert opened.format == "MPO"
    assert problem_of(path, SMALL) is None
    pixels = read_image(path, SMALL)
    assert pixels[0, 5, 3] > 180 > 90 > pixels[2, 5, 3]
    assert size_of(path, ImageInput(height=40, width=0)) == (40, 80)


@pytest.mark.parametrize("given", [b"\0\2\0\0\0\1y\0\0\0", b"\0\3\0\0\0\1\2\0\0\0"], ids=["a letter", "512"])
def test_an_orientation_that_is_none_turns_nothing(tmp_path: Path, given: bytes) -> None:
    path = drawn(tmp_path / "a.png", exif=b"Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12" + given + bytes(4))
    settings = ImageInput(height=40, width=0)
    assert read_image(path, settings).shape[1:] == size_of(path, settings) == (40, 80)


def test_a_damaged_exif_head_is_said(tmp_path: Path) -> None:
    path = drawn(tmp_path / "a.png", exif=b"Exif\0\0no head of a TIFF file")
    settings = ImageInput(height=40, width=0)
    assert "damaged" in (problem_of(path, settings) or "")
    with pytest.raises(MediaError, match="damaged"):
        size_of(path, settings)


@pytest.mark.parametrize(
    "augment",
    [
        *({"flip": True}, {"crop": 0.5}, {"rotate": 20.0}, {"shear": 20.0}, {"blur": 4.0}, {"light": 0.5}),
        *({"noise": 30.0}, {"elastic": 2.0}, {"elastic": 2.0, "elastic_width": 3.0}, {"thickness": 1.5}),
    ],
    ids=str,
)
def test_every_change_changes_and_the_same_seed_changes_alike(tmp_path: Path, augment: dict[str, object]) -> None:
    path = drawn(tmp_path / "a.png")
    settings = ImageInput(height=20, width=40, augment=augment)  # type: ignore[arg-type]
    plain = read_image(path, settings)
    drawn_at = [read_image(path, settings, np.random.default_rng(seed)) for seed in range(6)]
    assert any((one != plain).any() for one in drawn_at)
    assert (drawn_at[3] == read_image(path, settings, np.random.default_rng(3))).all()


def test_lines_are_stretched_and_slanted_without_losing_ink(tmp_path: Path) -> None:
    line = Image.new("L", (200, 40), 255)
    line.paste(0, (0, 0, 4, 40))
    line.paste(0, (196, 0, 200, 40))
    line.save(tmp_path / "line.png")
    stretched = ImageInput(height=40, width=0, colour="grey", augment=AugmentSettings(stretch=0.3))
    widths = {read_image(tmp_path / "line.png", stretched, np.random.default_rng(i)).shape[2] for i in range(20)}
    assert len(widths) > 10
    assert all(140 <= width <= 260 for width in widths)
    slanted = ImageInput(height=40, width=0, colour="grey", augment=AugmentSettings(shear=30))
    for seed in range(6):
        pixels = read_image(tmp_path / "line.png", slanted, np.random.default_rng(seed))[0]
        assert pixels.shape[1] <= 200 + 24
        assert (255 - pixels.astype(float)).sum() == pytest.approx(255 * 8 * 40, rel=0.05)


def test_elastic_distortion_moves_every_point_by_its_field() -> None:
    """Against bilinear interpolation pixel by pixel, in grey and in colour; the field is smooth and of deviation 1."""
    high, wide, amount, width = 9, 700, 1.5, 4.0
    grey = np.random.default_rng(0).integers(0, 256, (high, wide)).astype(np.uint8)
    random = np.random.default_rng(5)
    fields = [SmoothNoise(high, wide, width, random).rows(slice(0, high)) for _ in range(2)]
    ours = distorted(grey, amount, width, np.random.default_rng(5))
    for y, x in [(0, 0), (8, 699), (4, 300), (7, 13), *((row, 20 * row) for row in range(high))]:
        down = min(max(y + amount * float(fields[0][y, x]), 0), high - 1)
        across = min(max(x + amount * float(fields[1][y, x]), 0), wide - 1)
        expected = 0.0
        for row in range(high):
            for column in range(max(int(across) - 1, 0), min(int(across) + 3, wide)):
                share = max(1 - abs(down - row), 0) * max(1 - abs(across - column), 0)
                expected += share * grey[row, column]
        assert abs(float(ours[y, x]) - expected) <= 1, (y, x)
    colours = distorted(np.stack([grey, grey, 255 - grey], axis=2), amount, width, np.random.default_rng(5))
    assert (colours[..., 0] == ours).all()
    assert (np.abs(colours[..., 2].astype(int) - (255 - ours.astype(int))) <= 1).all()
    many = np.stack([SmoothNoise(high, wide, width, random).rows(slice(0, high)) for _ in range(20)])
    assert many.std() == pytest.approx(1, abs=0.05)
    apart = [np.corrcoef(many[..., :-by].ravel(), many[..., by:].ravel())[0, 1] for by in (4, 16)]
    assert apart[0] == pytest.approx(np.exp(-0.25), abs=0.05), "two Gaussians, one deviation apart"
    assert abs(apart[1]) < 0.1


def test_strokes_grow_and_shrink_by_so_many_pixels() -> None:
    stroke = np.full((12, 20), 255, dtype=np.uint8)
    stroke[:, 8:12] = 0
    inks = {amount: float((255 - thickened(stroke, amount).astype(float)).sum()) / 255 / 12 for amount in (-2, -0.5, 1)}
    assert inks == pytest.approx({-2: 8, -0.5: 5, 1: 2}, abs=0.02)
    assert thickened(stroke, 0.0) is stroke
    dot = np.zeros((5, 5), dtype=np.uint8)
    dot[2, 2] = 200
    assert thickened(dot, 1.0).tolist()[1:4] == [[0, 0, 200, 0, 0], [0, 200, 200, 200, 0], [0, 0, 200, 0, 0]]
    assert thickened(np.repeat(dot[..., None], 3, axis=2), 1.0)[2, 1].tolist() == [200] * 3


@pytest.mark.parametrize("fit", ["crop", "stretch", "pad"])
def test_a_person_is_shown_what_the_model_is_shown(tmp_path: Path, fit: Literal["crop", "stretch", "pad"]) -> None:
    """In more pixels, and no other part of the picture."""
    across, down = np.linspace(0, 250, 900), np.linspace(0, 250, 400)
    pixels = np.stack([np.tile(across, (400, 1)), np.tile(down[:, None], (1, 900)), np.full((400, 900), 90)], 2)
    Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "a.png")
    field = ImageField(ImageInput(height=30, width=30, fit=fit))
    shown = field.to_drawable(str(tmp_path / "a.png")).pixels
    assert shown.shape == (480, 480, 3)
    given = read_image(tmp_path / "a.png", field.settings)
    small = shown.reshape(30, 16, 30, 16, 3).mean((1, 3)).transpose(2, 0, 1)
    assert np.median(np.abs(small - given)) < 2  # the edge of what is padded falls between pixels
    assert np.abs(small - given).mean() < 8
    drawn(tmp_path / "line.png", (400, 20))
    line = ImageField(ImageInput(height=40, width=0, colour="grey", widest=100))
    assert line.to_drawable(str(tmp_path / "line.png")).pixels.shape == (80, 200, 1)  # wide enough as it is


@pytest.mark.parametrize("suffix", ["png", "jpg"])
@pytest.mark.parametrize("width", [40, 0])
def test_a_preview_takes_no_second_decoding_and_changes_nothing_for_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, width: int
) -> None:
    pixels = np.random.default_rng(2).integers(0, 255, (300, 420, 3)).astype(np.uint8)
    path = str(tmp_path / f"a.{suffix}")
    Image.fromarray(pixels).save(path)
    field = ImageField(ImageInput(height=32, width=width))
    job = field.job(path, preview=True)
    assert isinstance(job.preview, ImageInput)
    decode, calls = image_files._decode, list[str]()
    monkeypatch.setattr(image_files, "_decode", lambda *given: calls.append("") or decode(*given))
    small, large = job.settings.decode_with_preview(path, job.preview)
    assert len(calls) == 1
    assert np.array_equal(small, read_image(path, field.settings))
    assert large.shape == read_image(path, job.preview).shape
    if suffix == "png":
        assert np.array_equal(large, read_image(path, job.preview))
