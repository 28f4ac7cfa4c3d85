"""Looks at a sound: strips of weights over the same time as the spectrogram, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from seq2see.looks import Looks, Spectrogram
from seq2see.seeing import plot
from seq2see.seeing.overlays import edges_of, hearings_of
from seq2see.seeing.panels import panels_of
from tests.seeing.conftest import some_weights


def heard(steps: int = 3, *, heads: int = 0) -> Looks:
    """Forty frames of a rising tone, four to a place."""
    energies = np.full((40, 16), -9.0, dtype=np.float32)
    energies[np.arange(40), np.arange(40) * 16 // 40] = 2.0
    sound = Spectrogram(energies, 0.01, np.linspace(100, 7000, 16, dtype=np.float32))
    shape = (heads, steps, 10) if heads else (steps, 10)
    return Looks(
        maps={"sound": some_weights(*shape)},
        inputs={"sound": [f"{0.04 * place:.2f} s" for place in range(10)]},
        outputs=["one", "<two>", "<eos>"][:steps],
        layouts={"sound": {"kind": "frames", "shape": [10]}},
        probabilities=[0.9, 0.5, 0.99][:steps],
        pictures={"sound": lambda: sound},
    )


def test_strips_lie_where_the_places_do() -> None:
    looks = heard()
    (hearing,) = hearings_of(looks, panels_of(looks))
    assert hearing.edges == pytest.approx(np.arange(11) * 0.04)
    figure = plot(looks, theme="dark")
    names = {axes.get_gid(): axes for axes in figure.axes}
    assert names["spectrogram"].get_xlim() == pytest.approx((0, 0.4))
    (mesh,) = [one for axes in figure.axes for one in axes.collections if one.get_gid() == "weights sound"]
    assert np.asarray(mesh.get_array()) == pytest.approx(looks.weights)
    written = [text.get_text() for text in figure.texts]
    assert {"one", "<two>", "<eos>", "90 %", "50 %", "99 %"} <= set(written)


def test_the_last_place_ends_with_the_sound_and_names_without_seconds_share_it() -> None:
    assert edges_of(["0.00 s", "0.40 s", "0.80 s"], 0.95).tolist() == [0.0, 0.4, 0.8, 0.95]
    assert edges_of(["1", "2"], 1.0).tolist() == [0.0, 0.5, 1.0]
    assert edges_of(["0.80 s", "0.00 s"], 1.0).tolist() == [0.0, 0.5, 1.0]


def test_heads_are_told_apart_where_asked_for() -> None:
    looks = heard(heads=2)
    groups = panels_of(looks)
    (mean,) = hearings_of(looks, groups)
    assert mean.weights == pytest.approx(looks.weights)
    assert [one.head for one in hearings_of(looks, groups, apart=True)] == [1, 2]
    assert sum("head" in text.get_text() for text in plot(looks, map="sound").texts) == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_every_format(tmp_path: Path, suffix: str) -> None:
    path = heard().save(tmp_path / f"heard{suffix}")
    assert path.stat().st_size > 300
    if suffix == ".json":
        assert json.loads(path.read_text("utf-8"))["inputs"][1] == "0.04 s"
    if suffix == ".html":
        page = path.read_text("utf-8")
        assert page.count("data:image/png;base64,") == 2
        assert "spectrogram with the weights over time for: one &lt;two&gt;" in page
        assert "<bdi>0.04s</bdi>" in page
        assert "<two>" not in page


def test_a_label_has_one_strip() -> None:
    assert plot(heard(1)).texts


def test_frequencies_are_named_where_their_bands_lie() -> None:
    places, names = Spectrogram(np.zeros((1, 3), np.float32), 0.01, np.array([400, 1000, 3000], np.float32)).ticks()
    assert names == ["0.5", "1", "2"]
    assert places == pytest.approx([0.5 + 1 / 6, 1.5, 2.0])


def test_a_sound_without_a_voice_is_drawn() -> None:
    looks = heard()
    silent = Spectrogram(np.zeros((40, 16), np.float32), 0.01, np.linspace(100, 7000, 16, dtype=np.float32))
    looks.pictures = {"sound": lambda: silent}
    assert plot(looks).axes
