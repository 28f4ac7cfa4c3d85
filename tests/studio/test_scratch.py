"""What a request brings along is gone with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.data import media
from seq2see.data.kept_clips import KeptClips
from seq2see.data.video import VideoField
from seq2see.data.videos import Clip, read_video
from seq2see.recipe.video_settings import VideoInput
from seq2see.studio.scratch import Scratch
from tests.clips import counted, written

FIELD = VideoField(VideoInput(height=32, width=48))


def test_a_folder_is_made_when_it_is_needed_and_goes_with_the_request() -> None:
    with Scratch() as scratch:
        first, second = scratch.file("a"), scratch.file("b")
        first.write_bytes(b"1")
        assert first.parent == second.parent
        assert first.exists()
    assert not first.parent.exists()


def test_a_clip_that_goes_while_it_is_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptClips(most=1 << 20)
    path = written(tmp_path / "a.mp4", counted(5))

    def late(path: str, settings: VideoInput) -> Clip:
        clip = read_video(path, settings)
        Path(path).unlink()
        return clip

    monkeypatch.setattr(media, "KEPT", kept)
    monkeypatch.setattr(media, "read_video", late)
    FIELD.batch([str(path)])
    assert kept.bytes == 0
