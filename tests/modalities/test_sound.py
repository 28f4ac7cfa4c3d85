"""Sounds as files: opened with care, mixed, brought to one rate, changed at random only where asked."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from seq2see.data.batches import RaggedWriter
from seq2see.data.log_mel import log_mels
from seq2see.data.sound_files import SoundAugmentSettings, SoundInput, problem_of, read_sound, resample, samples_of
from seq2see.errors import MissingExtra, UserError
from seq2see.modalities.files import MediaField
from seq2see.modalities.sound import (
    SoundField,
    augment_waveform,
    equalise,
    frames_of,
    masked,
    shift_spectrum,
    sound_features,
)

soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")

SMALL = SoundInput(rate=8000, mels=20, longest=2)


def tone(frequency: float, seconds: float, rate: int) -> np.ndarray:
    return np.sin(2 * np.pi * frequency * np.arange(round(seconds * rate)) / rate).astype(np.float32)


def written(path: Path, samples: np.ndarray, rate: int = 8000, **saving: object) -> Path:
    soundfile.write(path, samples, rate, **saving)
    return path


def features(path: Path, settings: SoundInput, random: np.random.Generator | None = None) -> torch.Tensor:
    return sound_features(*read_sound(path, settings), settings, random)


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "a.ogg"])
def test_channels_are_mixed_whatever_the_file(tmp_path: Path, name: str) -> None:
    left, right = tone(500, 0.5, 8000), tone(900, 0.5, 8000)
    samples, rate = read_sound(written(tmp_path / name, np.stack([left, right], 1) / 2), SMALL)
    assert rate == 8000
    assert samples.shape == (4000,)
    assert np.abs(samples - (left + right) / 4)[200:-200].max() < (0.1 if name == "a.ogg" else 1e-3)


def level(samples: np.ndarray) -> float:
    """Decibels beside a whole tone, its ends left out."""
    inner = samples[len(samples) // 8 : -len(samples) // 8]
    return float(10 * np.log10(np.mean(np.square(inner)) * 2 + 1e-12))


@pytest.mark.parametrize(("rate", "wanted"), [(44_100, 16_000), (8000, 16_000), (16_000, 8000), (11_025, 16_000)])
def test_a_resampled_tone_is_the_tone_at_the_other_rate(rate: int, wanted: int) -> None:
    frequency = 0.35 * min(rate, wanted)
    found, exact = resample(tone(frequency, 1, rate), rate, wanted), tone(frequency, 1, wanted)
    assert len(found) == len(exact)
    assert level(found - exact) < -60


def test_what_the_lower_rate_cannot_hold_is_not_folded_back() -> None:
    assert level(tone(5200, 1, 44_100)) > -1
    assert level(resample(tone(5200, 1, 44_100), 44_100, 8000)) < -60


def test_a_level_stays_a_level() -> None:
    flat = resample(np.full(3000, 0.5, dtype=np.float32), 22_050, 16_000)
    assert flat[100:-100] == pytest.approx(0.5, abs=1e-6)


def test_rates_without_a_common_divisor_serve_too() -> None:
    found, exact = resample(tone(440, 0.4, 11_003), 11_003, 8000), tone(440, 0.4, 8000)
    assert level(found[: len(exact)] - exact[: len(found)]) < -60


@pytest.mark.parametrize(("rate", "wanted"), [(192_001, 16_000), (383_999, 8000), (48_001, 16_000), (1009, 48_000)])
def test_odd_rates_are_resampled_like_any_other(rate: int, wanted: int) -> None:
    found, exact = resample(tone(200, 0.3, rate), rate, wanted), tone(200, 0.3, wanted)
    assert found.dtype == np.float32
    assert len(found) == -(-round(0.3 * rate) * wanted // rate)
    assert level(found[: len(exact)] - exact[: len(found)]) < -60


@pytest.mark.parametrize("number", [1, 2, 3, 50])
def test_frames_are_counted_as_they_are_made_however_short_a_sound_is(number: int) -> None:
    for rate in (44_100, 192_001, 1009):
        samples = np.full(number, 0.1, dtype=np.float32)
        assert len(sound_features(samples, rate, SMALL)) == frames_of(number, rate, SMALL)


def test_a_file_of_an_odd_rate_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "odd.wav", tone(440, 0.5, 192_001), 192_001)
    assert problem_of(path, SMALL) is None
    assert len(features(path, SMALL)) == frames_of(*samples_of(path, SMALL), SMALL)


def test_files_of_two_rates_sound_alike(tmp_path: Path) -> None:
    settings = SMALL.model_copy(update={"normalise": "none"})
    low = features(written(tmp_path / "low.wav", tone(700, 1, 8000) / 2, 8000), settings)
    high = features(written(tmp_path / "high.wav", tone(700, 1, 44_100) / 2, 44_100), settings)
    assert low.shape == high.shape == (frames_of(*samples_of(tmp_path / "high.wav", settings), settings), 20)
    assert (low.argmax(1) == high.argmax(1)).all()
    loud = low > low.max() - 6
    assert (low - high)[loud].abs().max() < 0.05


def test_what_cannot_be_used_is_said(tmp_path: Path) -> None:
    good = written(tmp_path / "good.flac", tone(500, 1, 8000)).read_bytes()
    (tmp_path / "cut.flac").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.wav").write_text("no sound", encoding="utf-8")
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "samples.raw").write_bytes(bytes(100))
    (tmp_path / "folder.wav").mkdir()
    written(tmp_path / "none.wav", np.zeros(0, dtype=np.float32))
    written(tmp_path / "long.wav", np.zeros(8000 * 3, dtype=np.float32))
    written(tmp_path / "slow.wav", np.zeros(400, dtype=np.float32), 999)
    written(tmp_path / "fast.wav", np.zeros(400, dtype=np.float32), 400_000)
    written(tmp_path / "nan.wav", np.full(400, np.nan, dtype=np.float32), subtype="FLOAT")
    said = {
        "gone.wav": "no such file",
        "cut.flac": "damaged or cut short",
        "text.wav": "not a sound that libsndfile can read",
        "empty.wav": "not a sound that libsndfile can read",
        "samples.raw": "not a sound that libsndfile can read",
        "folder.wav": "a folder, not a sound",
        "none.wav": "of length zero",
        "long.wav": "3.0 s long; allowed: at most 2 s",
        "slow.wav": "999 samples per second; allowed: from 1,000 to 384,000",
        "fast.wav": "400,000 samples per second; allowed: from 1,000 to 384,000",
        "nan.wav": "samples that are not numbers",
    }
    for name, reason in said.items():
        assert reason in (problem_of(tmp_path / name, SMALL) or ""), name
    assert problem_of(tmp_path / "good.flac", SMALL) is None
    with pytest.raises(UserError, match=r"gone\.wav: no such file"):
        SoundField(SMALL).batch([str(tmp_path / "gone.wav")])


def test_without_the_extra_no_file_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "a.wav", tone(500, 0.1, 8000))
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(MissingExtra, match=r"pip install 'seq2see\[sound\]'"):
        problem_of(path, SMALL)


def test_only_sounds_of_another_rate_need_the_resampler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "soxr", None)
    assert len(resample(tone(500, 0.1, 8000), 8000, 8000)) == 800
    with pytest.raises(MissingExtra, match=r"soxr is not installed: pip install 'seq2see\[sound\]'"):
        resample(tone(500, 0.1, 8000), 8000, 16_000)


def test_masks_blot_out_stretches_and_bands_and_nothing_else() -> None:
    augment = SoundAugmentSettings(time_masks=1, time_width=200, frequency_masks=1, frequency_width=5)
    settings = SMALL.model_copy(update={"augment": augment})
    frames = torch.randn(60, 20)
    widths = set()
    for seed in range(40):
        made = masked(frames, settings, np.random.default_rng(seed))
        changed = made != frames
        times, bands = changed.all(1), changed.all(0)
        assert (changed == (times[:, None] | bands)).all()
        assert (made[changed] == frames.mean()).all()
        for line, most in ((times, 15), (bands, 5)):
            where = line.nonzero()[:, 0]
            assert len(where) <= most
            assert len(where) == 0 or where[-1] - where[0] + 1 == len(where)
        widths.add(int(times.sum()))
    assert len(widths) > 5


def test_speed_and_noise_change_what_is_heard() -> None:
    samples, random = tone(500, 0.5, 8000), np.random.default_rng(1)
    drawn = [augment_waveform(samples, 8000, SoundAugmentSettings(speed=0.2), random) for _ in range(50)]
    assert all(same is samples for same, _ in drawn)
    rates = {rate for _, rate in drawn}
    assert len(rates) > 10
    assert 6400 <= min(rates) < 7000
    assert 9000 < max(rates) <= 9600
    noisy, rate = augment_waveform(samples, 8000, SoundAugmentSettings(noise=0.5), random)
    assert rate == 8000
    assert 0 < np.std(noisy - samples) < 0.5 * np.std(samples)


def test_a_higher_voice_is_heard_in_the_bands_of_a_higher_tone() -> None:
    settings = SoundInput(rate=16_000, mels=40, normalise="none")
    heard = {pitch: torch.from_numpy(log_mels(tone(pitch, 0.5, 16_000), settings))[10] for pitch in (1000, 1200)}
    made = shift_spectrum(heard[1000][None], 1.2, settings)[0]
    assert made.argmax() == heard[1200].argmax() != heard[1000].argmax()
    torch.testing.assert_close(shift_spectrum(heard[1000][None], 1.0, settings)[0], heard[1000], atol=1e-3, rtol=0)
    assert torch.equal(shift_spectrum(torch.ones(3, 40), 0.7, settings), torch.ones(3, 40))


def test_voices_are_drawn_between_deeper_and_higher(tmp_path: Path) -> None:
    settings = SoundInput(rate=16_000, mels=80, augment=SoundAugmentSettings(voice=0.3))
    path = written(tmp_path / "a.wav", tone(1000, 0.3, 16_000), 16_000)
    bands = {int(features(path, settings, np.random.default_rng(seed))[10].argmax()) for seed in range(20)}
    plain = int(features(path, settings)[10].argmax())
    assert len(bands) > 5
    assert min(bands) < plain < max(bands)


def test_a_filter_bends_all_frames_alike_and_smoothly() -> None:
    frames = torch.randn(7, 40)
    bent = [equalise(frames, 0.5, np.random.default_rng(seed)) - frames for seed in range(20)]
    curves = torch.stack([one[0] for one in bent])
    assert all((one - one[0]).abs().max() < 1e-5 for one in bent)
    assert 0.3 < curves.abs().max() <= 0.5
    assert (curves.diff(dim=1).abs() < 0.11).all()
    assert (curves.max(0).values > 0).all()
    assert (curves.min(0).values < 0).all()


def test_filters_are_drawn_where_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "a.wav", tone(1000, 0.3, 16_000), 16_000)
    bent = features(path, SoundInput(augment=SoundAugmentSettings(filter=0.4)), np.random.default_rng(1))
    assert not torch.equal(bent, features(path, SoundInput()))


def stored(field: MediaField, paths: list[Path]) -> object:
    with RaggedWriter(None) as writer:
        for path in paths:
            writer.append(field.ids(str(path)))
        return writer.finish()


def test_a_batch_is_padded_masked_and_named(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.wav", tone(500 + 200 * i, 0.2 + 0.1 * i, 8000)) for i in range(3)]
    column = SoundField(SMALL).batch([str(path) for path in paths])
    assert column.values.shape == (3, 39, 20)
    assert column.mask.sum(1).tolist() == [19, 29, 39]
    assert not column.values[~column.mask].any()
    assert column.names is not None
    assert column.names[0][:3] == ["0.00 s", "0.01 s", "0.02 s"]
    assert [len(row) for row in column.names] == [19, 29, 39]
    alone = SoundField(SMALL).batch([str(paths[0])])
    torch.testing.assert_close(alone.values[0], column.values[0, :19])


def test_changes_are_drawn_by_the_run_and_only_where_it_learns(tmp_path: Path) -> None:
    settings = SMALL.model_copy(update={"augment": SoundAugmentSettings(time_masks=2, noise=0.2, speed=0.1)})
    field = SoundField(settings)
    paths = [written(tmp_path / f"{i}.wav", tone(500, 0.4, 8000)) for i in range(2)]
    store, drawn = stored(field, paths), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(field.pad(store, [0, 1]).values)  # type: ignore[arg-type]
    assert torch.equal(drawn[0], drawn[1])
    assert drawn[0].shape != drawn[2].shape or not torch.equal(drawn[0], drawn[2])
    values = [str(path) for path in paths]
    assert torch.equal(field.batch(values).values, field.batch(values).values)


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "FLOAT"])
def test_a_wav_file_that_ends_before_its_head_says_is_refused(tmp_path: Path, subtype: str) -> None:
    whole = written(tmp_path / "a.wav", np.stack([tone(500, 0.5, 8000)] * 2, 1), subtype=subtype).read_bytes()
    width = {"PCM_16": 4, "PCM_24": 6, "FLOAT": 8}[subtype]
    (tmp_path / "cut.wav").write_bytes(whole[: len(whole) - 1500 * width])
    assert problem_of(tmp_path / "a.wav", SMALL) is None
    assert (
        problem_of(tmp_path / "cut.wav", SMALL) == "cut short: 2,500 of 4,000 samples promised by its header are there"
    )
    with pytest.raises(UserError, match=r"cut\.wav: cut short: 2,500 of 4,000"):
        SoundField(SMALL).batch([str(tmp_path / "cut.wav")])


def test_other_wav_files_are_whole(tmp_path: Path) -> None:
    for name, saving in {"a.rf64": {"format": "RF64"}, "b.wav": {"subtype": "MS_ADPCM"}}.items():
        data = written(tmp_path / name, tone(500, 0.5, 8000), **saving).read_bytes()
        assert problem_of(tmp_path / name, SMALL) is None
        (tmp_path / f"cut-{name}").write_bytes(data[: len(data) // 2])
        assert "cut short" in (problem_of(tmp_path / f"cut-{name}", SMALL) or ""), name
    piped = bytearray(written(tmp_path / "c.wav", tone(500, 0.5, 8000)).read_bytes())
    for unknown in (b"\xff\xff\xff\xff", b"\xf0\xff\xff\x7f"):  # written to a pipe, by ffmpeg and by sox
        piped[4:8] = piped[40:44] = unknown
        (tmp_path / "piped.wav").write_bytes(piped)
        assert problem_of(tmp_path / "piped.wav", SMALL) is None
