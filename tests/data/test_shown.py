"""Files as a person sees them: what the model is shown, with its times and frequencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seq2see.data.sound_files import SoundInput
from seq2see.data.video_files import VideoInput
from seq2see.errors import UserError
from seq2see.modalities.sound import SoundField
from seq2see.modalities.video import VideoField


def test_a_sound_is_shown_with_its_tone_where_it_belongs(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")
    seconds = np.arange(8000) / 8000
    soundfile.write(tmp_path / "a.wav", 0.5 * np.sin(2 * np.pi * 1000 * seconds), 8000)
    shown = SoundField(SoundInput(rate=8000, mels=40)).to_drawable(str(tmp_path / "a.wav"))
    assert shown.energies.shape == (len(shown.energies), 40)
    assert shown.hop == pytest.approx(0.01)
    assert shown.seconds == pytest.approx(1.0, abs=0.03)
    loudest = shown.middles[shown.energies.mean(0).argmax()]
    assert abs(loudest - 1000) < 60
    with pytest.raises(UserError, match="no such file"):
        SoundField(SoundInput()).to_drawable(str(tmp_path / "b.wav"))


def test_a_video_is_shown_frame_by_frame_with_its_seconds(tmp_path: Path) -> None:
    clips = pytest.importorskip("tests.clips", reason="the extra `video` is not installed")
    path = clips.written(tmp_path / "a.mp4", clips.counted(20))
    shown = VideoField(VideoInput(height=32, width=48, frames=4)).to_drawable(str(path))
    assert shown.frames.shape == (4, 32, 48, 3)
    assert shown.times == pytest.approx([0.2, 0.7, 1.2, 1.7])
    assert [round((float(frame.mean()) - 20) / 8) for frame in shown.frames] == [2, 7, 12, 17]
