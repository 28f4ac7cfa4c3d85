"""Rows of ids on disk: what keeps them from being written is said with the file's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2see.data import batches
from seq2see.data.batches import RaggedWriter
from seq2see.errors import UserError


def test_rows_come_back_from_disk_as_from_memory(tmp_path: Path) -> None:
    rows = [[4, 5], [], [6, 7, 8]]
    memory, disk = RaggedWriter(), RaggedWriter(tmp_path / "cache" / "word")
    for row in rows:
        memory.append(row)
        disk.append(row)
    assert [list(row) for row in map(disk.finish().__getitem__, range(3))] == rows
    assert [list(row) for row in map(memory.finish().__getitem__, range(3))] == rows


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"file/word: cannot be written: (Not a directory|File exists)"):
        RaggedWriter(tmp_path / "file" / "word")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here, which is a disk that is always full")
@pytest.mark.parametrize("full", ["ids", "offsets"])
@pytest.mark.parametrize("buffered", [1, 1 << 18])
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, buffered: int) -> None:
    monkeypatch.setattr(batches, "_FLUSH", buffered)
    (tmp_path / f"word.{full}").symlink_to("/dev/full")
    writer = RaggedWriter(tmp_path / "word")

    def write() -> None:
        for _ in range(3000):
            writer.append([1, 2, 3])
        writer.finish()

    with pytest.raises(UserError, match=rf"word\.{full}: cannot be written: No space left on device"):
        write()
