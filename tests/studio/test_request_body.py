"""What a request brings along is gone with it."""

from __future__ import annotations

import base64
import os
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from seq2see import api
from seq2see.data import video_files
from seq2see.data.video_files import Clip, ClipCache, VideoInput, read_video
from seq2see.modalities.video import VideoField
from seq2see.studio.inputs import InputReader
from seq2see.studio.limits import Limits
from seq2see.studio.request_body import ScratchFolder
from tests.clips import counted, written

FIELD = VideoField(VideoInput(height=32, width=48))


def test_a_folder_is_made_when_it_is_needed_and_goes_with_the_request() -> None:
    with ScratchFolder() as scratch:
        with scratch.open("a") as first, scratch.open("b") as second:
            first.write(b"1")
        folder = Path(first.name).parent
        assert folder == Path(second.name).parent
        assert Path(first.name).read_bytes() == b"1"
    assert not folder.exists()


def test_a_request_that_ends_while_a_thread_writes_leaves_nothing_behind() -> None:
    with ScratchFolder() as scratch:
        writing = ExitStack()
        file = writing.enter_context(scratch.open("a"))
    file.write(b"1")  # as a thread does that nobody can stop
    with pytest.raises(RuntimeError), scratch.open("b"):
        pass
    writing.close()
    assert not Path(file.name).parent.exists()


def test_a_client_that_hangs_up_while_its_files_are_written_leaves_none(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread goes on with the next file after the others were removed, and before their folder is."""
    url = "data:image/png;base64," + base64.b64encode(b"a picture").decode()
    scratch, removing, remove_folder = ScratchFolder(), threading.Event(), os.rmdir
    reader = InputReader(api.load(captions), scratch, Limits())

    def write_next() -> None:
        assert removing.wait(60)
        reader.read(url)

    def rmdir(*args: Any, **how: Any) -> None:
        removing.set()
        wait([writing], 60)
        remove_folder(*args, **how)

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write_next)
        with scratch:
            reader.read(url)
            monkeypatch.setattr("os.rmdir", rmdir)
        monkeypatch.setattr("os.rmdir", remove_folder)
        assert isinstance(writing.exception(60), RuntimeError)
    assert list(tmp_path.iterdir()) == []


def test_a_clip_that_goes_while_it_is_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ClipCache(most=1 << 20)
    path = written(tmp_path / "a.mp4", counted(5))

    def late(path: str, settings: VideoInput) -> Clip:
        clip = read_video(path, settings)
        Path(path).unlink()
        return clip

    monkeypatch.setattr(video_files, "CLIP_CACHE", kept)
    monkeypatch.setattr(video_files, "read_video", late)
    FIELD.batch([str(path)])
    assert kept.bytes == 0
