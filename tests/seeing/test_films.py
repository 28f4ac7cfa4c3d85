"""Looks at a video: under each word the frames that were looked at, in the order of the film, with their weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2see.looks import Film, Looks
from seq2see.seeing import plot
from seq2see.seeing.overlays import MOST, WIDEST_FILM, Reel, most_seen, reels_of
from seq2see.seeing.panels import panels_of
from seq2see.seeing.style import THEMES


def seen(weights: Any, *, shape: list[int], grey: bool = False) -> Looks:
    """A light that wanders from left to right; one frame for each quarter of a second."""
    frames = np.full((shape[0], 24, 32, 1 if grey else 3), 40, dtype=np.uint8)
    for number in range(shape[0]):
        frames[number, 8:16, number * 32 // shape[0] : number * 32 // shape[0] + 4] = 250
    film = Film(frames, [0.25 * number for number in range(shape[0])])
    weights = np.asarray(weights, dtype=np.float32)
    return Looks(
        maps={"video": weights},
        inputs={"video": [f"{place}" for place in range(weights.shape[-1])]},
        outputs=["a", "ball", "<eos>"][: weights.shape[-2]],
        layouts={"video": {"kind": "frames" if len(shape) == 1 else "frames-grid", "shape": shape}},
        probabilities=[0.8] * weights.shape[-2],
        pictures={"video": lambda: film},
    )


def one_reel(looks: Looks) -> Reel:
    (reel,) = reels_of(looks, panels_of(looks))
    return reel


def test_film_and_words_show_the_same_frames_in_the_same_columns() -> None:
    weights = np.full((2, 12), 0.01)
    weights[0, [9, 3, 7]] = [0.5, 0.31, 0.1]
    weights[1, 11] = 0.89
    reel = one_reel(seen(weights, shape=[12]))
    assert len(reel.columns) == MOST
    assert {3, 7, 9, 11} <= set(reel.columns)
    assert reel.elsewhere == pytest.approx([0.04, 0.04])
    figure = plot(seen(weights, shape=[12]))
    written = [text.get_text() for text in figure.texts]
    assert {"50 %", "31 %", "10 %", "0.75 s", "2.25 s", "a", "ball", "P = 0.80", "4 % elsewhere"} <= set(written)
    assert written[0].startswith("8 of 12 frames, the most looked at")
    seconds: dict[float, set[str]] = {}
    for axes in figure.axes:
        if str(axes.get_gid()).startswith("frame"):
            seconds.setdefault(round(axes.get_position().x0, 4), set()).add(str(axes.get_gid()))
    assert [len(names) for names in seconds.values()] == [1] * MOST


def test_what_any_word_looked_at_most_is_shown() -> None:
    assert one_reel(seen(np.eye(12)[[0, 5, 11]], shape=[12])).columns[::7] == [0, 11]
    assert most_seen(np.eye(20)) == list(range(WIDEST_FILM))
    assert most_seen(np.eye(10)) == list(range(10))
    even = np.full((1, 12), 1 / 12)
    assert len(most_seen(even)) == 11  # 10 would leave more than a tenth of the look out


def test_frames_are_lit_by_their_weight() -> None:
    reel = one_reel(seen([[0.0, 1.0, 0.0]], shape=[3]))
    theme = THEMES["light"]
    ghost, lit = reel.lit(0, 0, theme).astype(int), reel.lit(0, 1, theme).astype(int)
    assert (ghost[0, 0] > 150).all()
    assert (lit[0, 0] < ghost[0, 0]).all()


def test_regions_of_frames_are_lit_where_they_were_looked_at() -> None:
    weights = np.zeros((1, 2 * 1 * 2))
    weights[0, 3] = 1.0  # the second frame, its right half
    reel = one_reel(seen(weights, shape=[2, 1, 2], grey=True))
    assert reel.shares.tolist() == [[0.0, 1.0]]
    picture = reel.lit(0, 1, THEMES["light"]).astype(int)
    assert picture[0, 0].sum() > picture[0, -1].sum() + 60
    assert not reel.whole


def test_places_that_stand_for_several_frames_show_one_of_them() -> None:
    film = Film(np.zeros((8, 2, 2, 3), dtype=np.uint8), [float(number) for number in range(8)])
    assert film.only(4).times == [1.0, 3.0, 5.0, 7.0]
    assert film.only(8) is film


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_every_format(tmp_path: Path, suffix: str) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=3)
    path = seen(weights, shape=[6]).save(tmp_path / f"film{suffix}", title="a ball")
    assert path.stat().st_size > 300
    if suffix == ".html":
        page = path.read_text("utf-8")
        assert page.count("data:image/png;base64,") == 2
        assert "frames that were looked at for: a ball" in page
        assert "<table" in page


def test_heads_are_their_mean_unless_asked_for() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3))
    looks = seen(weights, shape=[4])
    assert one_reel(looks).shares == pytest.approx(weights.mean(0), abs=1e-6)
    reels = reels_of(looks, panels_of(looks), apart=True)
    assert [reel.head for reel in reels] == [1, 2]
    written = [text.get_text() for text in plot(looks, map="video").texts]
    assert written.count("the film") == 1
    assert [text.split(" · ")[0] for text in written if text.startswith("head")] == ["head 1", "head 2"]
