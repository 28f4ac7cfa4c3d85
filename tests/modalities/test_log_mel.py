"""Log-mel energies against their formula, written out again in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seq2see.data.log_mel import filterbank, frames_in, log_mels, normalised
from seq2see.data.sound_files import SoundInput

PLAIN = SoundInput(rate=8000, mels=23, window=25, hop=10, normalise="none")


def transcribed(samples: np.ndarray, mels: int, rate: int, width: int, hop: int, size: int) -> np.ndarray:
    """Frame by frame and band by band, in double precision."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    edges = [700 * (10 ** (top * i / (mels + 1) / 2595) - 1) for i in range(mels + 2)]
    hann = [0.5 - 0.5 * np.cos(2 * np.pi * n / width) for n in range(width)]
    number = 1 + max(int(np.ceil((len(samples) - width) / hop)), 0)
    filled = np.concatenate([samples, np.zeros(number * hop + width)])
    energies = np.zeros((number, mels))
    for t in range(number):
        window = filled[t * hop : t * hop + width] * hann
        for k in range(size // 2 + 1):
            spectrum = np.sum(window * np.exp(-2j * np.pi * k * np.arange(width) / size))
            frequency = k * rate / size
            for m in range(mels):
                low, middle, high = edges[m : m + 3]
                if low < frequency <= middle:
                    energies[t, m] += (frequency - low) / (middle - low) * abs(spectrum) ** 2
                elif middle < frequency < high:
                    energies[t, m] += (high - frequency) / (high - middle) * abs(spectrum) ** 2
    return np.log(np.maximum(energies, energies.max() * 1e-8))


def test_log_mels_are_their_formula() -> None:
    samples = np.random.default_rng(1).normal(0, 0.1, 530)
    expected = transcribed(samples, mels=23, rate=8000, width=200, hop=80, size=256)
    found = log_mels(samples, PLAIN)
    assert found.shape == expected.shape == (6, 23)
    assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize(("mels", "rate"), [(80, 8000), (256, 16_000), (256, 1000), (1, 8000)])
def test_every_band_hears_something(mels: int, rate: int) -> None:
    noise = np.random.default_rng(1).standard_normal(rate)
    found = log_mels(noise, SoundInput(rate=rate, mels=mels, normalise="none"))
    assert found.shape[1] == mels
    assert found.min() > found.max() - 16  # nothing at the floor, 18.4 below


def test_triangles_reach_one_and_overlap_by_half() -> None:
    filters = filterbank(20, 4096, 16_000)
    assert filters.max(0).min() > 0.95
    middle = filters.argmax(0)
    between = filters[middle[0] : middle[-1]].sum(1)
    assert between.min() == pytest.approx(1, abs=1e-4)
    assert between.max() == pytest.approx(1, abs=1e-4)


def test_a_tone_is_loudest_in_its_band() -> None:
    time = np.arange(8000) / 8000
    filters = filterbank(23, 256, 8000)
    for frequency in (312.5, 1000, 2500):
        found = log_mels(np.sin(2 * np.pi * frequency * time), PLAIN).mean(0).argmax()
        assert found == filters[round(frequency * 256 / 8000)].argmax()


def test_normalising_is_per_file() -> None:
    frames = np.random.default_rng(1).standard_normal((50, 23)) * np.arange(1, 24) + 7
    bands, whole = normalised(frames, "bands"), normalised(frames, "whole")
    assert np.abs(bands.mean(0)).max() < 1e-5
    assert np.abs(np.square(bands).mean(0) - 1).max() < 1e-4
    assert abs(whole.mean()) < 1e-5
    assert np.square(whole).mean() == pytest.approx(1, abs=1e-4)
    assert whole[:, 20].std() > 5 * whole[:, 0].std()
    assert normalised(frames, "none") is frames


def test_loudness_does_not_matter_once_normalised() -> None:
    samples, settings = (
        np.random.default_rng(1).standard_normal(4000) * 0.1,
        PLAIN.model_copy(update={"normalise": "whole"}),
    )
    np.testing.assert_allclose(log_mels(samples, settings), log_mels(samples * 0.2, settings), atol=1e-4, rtol=0)


@pytest.mark.parametrize("samples", [np.zeros(3000), np.zeros(1), np.ones(1)])
def test_silence_and_a_single_sample_are_finite(samples: np.ndarray) -> None:
    for how in ("bands", "whole", "none"):
        found = log_mels(samples, PLAIN.model_copy(update={"normalise": how}))
        assert len(found) == frames_in(len(samples), PLAIN)
        assert np.isfinite(found).all()


def test_what_is_far_below_the_loudest_is_silence() -> None:
    tone = np.sin(np.arange(16_000) * 2 * np.pi * 1000 / 16_000)
    noise = 1e-3 * np.random.default_rng(1).standard_normal(16_000)

    def sound_features(samples: np.ndarray, decibels: float) -> np.ndarray:
        return log_mels(samples, SoundInput(normalise="none", range=decibels))

    noisy, clean = sound_features(tone + noise, 30), sound_features(tone, 30)
    np.testing.assert_allclose(noisy, clean, atol=0.02, rtol=0)
    assert float(noisy.max() - noisy.min()) == pytest.approx(3 * math.log(10), abs=1e-4)
    assert np.abs(sound_features(tone + noise, 80) - sound_features(tone, 80)).max() > 1
