"""Lines of text: slope, size of the letters and contrast are taken out, the letters stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from seq2see.data.image_files import ImageInput, read_image, size_of
from seq2see.data.line_normalisation import STEEPEST, measure_slope, normalise_line, trimmed_moments

LINE = ImageInput(height=48, width=0, colour="grey", normalise="line")


def line(slope: float = 0.0, *, letter: int = 10, height: int = 60, ink: int = 0, paper: int = 255) -> Image.Image:
    """Forty boxes as high as a letter, every fifth half as high again, along a line of this slope."""
    picture = Image.new("L", (600, height), paper)
    draw = ImageDraw.Draw(picture)
    for number in range(40):
        left = 14 * number + 10
        bottom = height / 2 + letter / 2 + slope * (left - 300)
        top = bottom - (1.5 * letter if number % 5 == 0 else letter)
        draw.rectangle((left, top, left + 8, bottom), outline=ink)
    return picture


def inked_rows(picture: Image.Image) -> NDArray[np.intp]:
    return np.flatnonzero((np.asarray(picture) < 128).any(1))


@pytest.mark.parametrize("slope", [-0.08, -0.02, 0.0, 0.05, 0.1])
def test_a_sloping_line_becomes_level(slope: float) -> None:
    down, across = np.nonzero(np.asarray(line(slope, height=100)) < 128)
    weights = np.ones(len(down), dtype=np.float32)
    measured = measure_slope(down.astype(np.float32), (across - across.mean()).astype(np.float32), weights)
    assert measured == pytest.approx(slope, abs=0.006)
    level, sloping = (normalise_line(line(s, height=100)) for s in (0.0, slope))
    assert sloping.height == pytest.approx(level.height, abs=3)
    profile = (np.asarray(sloping) < 128).sum(1)
    assert profile.max() > 200  # the upper or lower edges of all boxes lie in one row


def test_no_slope_beyond_the_steepest() -> None:
    across = np.arange(200, dtype=np.float32) - 100
    assert measure_slope(across, across, np.ones(200, dtype=np.float32)) <= STEEPEST


def test_small_and_large_writing_become_alike() -> None:
    shares = []
    for letter in (8, 16, 30):
        made = normalise_line(line(letter=letter, height=100))
        rows = inked_rows(made)
        shares.append((rows[-1] - rows[0]) / made.height)
    assert max(shares) - min(shares) < 0.08
    assert min(shares) > 0.35


def test_pale_ink_becomes_black_and_dark_paper_white() -> None:
    plain = np.asarray(normalise_line(line()))
    pale = np.asarray(normalise_line(line(ink=215)))
    inverted = np.asarray(normalise_line(line(ink=255, paper=40)))
    assert plain.min() == pale.min() == inverted.min() == 0
    assert plain[0, 0] == pale[0, 0] == inverted[0, 0] == 255
    np.testing.assert_array_equal(plain, pale)
    np.testing.assert_array_equal(plain, inverted)


def test_specks_far_away_do_not_shrink_the_letters() -> None:
    picture = line(height=100)
    alone = normalise_line(picture)
    ImageDraw.Draw(picture).point([(30, 2), (31, 2), (500, 97)], fill=0)
    assert normalise_line(picture).height == pytest.approx(alone.height, abs=2)


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (40, 1), (300, 40)])
def test_blank_images_stay_as_they_are(size: tuple[int, int]) -> None:
    blank = Image.new("L", size, 250)
    assert normalise_line(blank).tobytes() == blank.tobytes()


def test_images_of_noise_and_of_extreme_shapes_are_taken() -> None:
    random = np.random.default_rng(0)
    for height, width in ((2, 2), (3, 4000), (400, 3), (64, 64)):
        noise = Image.fromarray(random.integers(0, 256, (height, width), dtype=np.uint8))
        made = normalise_line(noise)
        assert made.width == width
        assert 1 <= made.height <= 2 * height


def test_moments_are_those_of_all_rows_where_none_is_far_away() -> None:
    rows = np.random.default_rng(1).uniform(10, 20, 500).astype(np.float32)
    weights = np.linspace(1, 2, 500, dtype=np.float32)
    mean, deviation = trimmed_moments(rows, weights)
    assert mean == pytest.approx(np.average(rows, weights=weights), abs=1e-4)
    assert deviation == pytest.approx(np.sqrt(np.average((rows - mean) ** 2, weights=weights)), abs=1e-4)


def test_the_width_for_batches_is_that_of_the_normalised_line(tmp_path: Path) -> None:
    line(0.05, letter=8, height=100).save(tmp_path / "a.png")
    pixels = read_image(tmp_path / "a.png", LINE)
    assert pixels.shape[1:] == size_of(tmp_path / "a.png", LINE)
    assert pixels.shape[2] > 2 * read_image(tmp_path / "a.png", LINE.model_copy(update={"normalise": "none"})).shape[2]
