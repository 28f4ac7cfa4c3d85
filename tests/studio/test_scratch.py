"""What a request brings along is gone with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.data.kept_clips import KEPT
from seq2see.data.video import VideoField
from seq2see.data.videos import Clip, read_video
from seq2see.recipe.video_settings import VideoInput
from seq2see.studio.scratch import Scratch
from tests.clips import counted, written

FIELD = VideoField(VideoInput(height=32, width=48))


def test_clips_of_a_request_are_forgotten_with_it_and_no_others(tmp_path: Path) -> None:
    begun = KEPT.bytes
    stays = str(written(tmp_path / "stays.mp4", counted(3)))
    FIELD.batch([stays])
    before = KEPT.bytes
    assert before > begun
    with Scratch() as scratch:
        sent = written(scratch.file("sent.mp4"), counted(5))
        FIELD.batch([str(sent)])
        assert KEPT.bytes > before, "a request reads its files more than once"
    assert not sent.parent.exists()
    assert KEPT.bytes == before


def test_a_clip_that_is_still_read_when_its_request_ends_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    before = KEPT.bytes
    scratch = Scratch()
    sent = written(scratch.file("sent.mp4"), counted(5))

    def late(path: str, settings: VideoInput) -> Clip:
        clip = read_video(path, settings)
        scratch.__exit__(None, None, None)
        return clip

    monkeypatch.setattr("seq2see.data.media.read_video", late)
    FIELD.batch([str(sent)])
    assert KEPT.bytes == before
