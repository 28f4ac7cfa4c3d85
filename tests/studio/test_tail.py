"""Lines of files that grow, are cut short, and are written anew."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from seq2see.files import write_bytes
from seq2see.studio import training_runs as limits
from seq2see.studio.training_runs import FileTail


def test_each_line_is_told_once_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    tail = FileTail(path)
    assert tail.since(0).lines == []
    path.write_bytes(b"a\nb\nc")
    first = tail.since(0)
    assert (first.lines, first.following, first.complete) == ([b"a", b"b"], 2, True)
    with path.open("ab") as file:
        file.write("\u2028d\ne\n".encode())
    second = tail.since(first.following, first.file, most=1)
    assert (second.first, second.lines, second.following, second.complete) == (2, ["c\u2028d".encode()], 3, False)
    assert tail.since(99, first.file).lines == []


def test_a_file_that_is_written_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\n")
    tail = FileTail(path)
    old = tail.since(0)
    write_bytes(path, b"a\nb\n")
    new = tail.since(old.following, old.file)
    assert new.file != old.file
    assert (new.first, new.lines) == (0, [b"a", b"b"])
    path.write_bytes(b"another\nb\nc\nd\n")
    assert tail.since(new.following, new.file).lines == [b"another", b"b", b"c", b"d"]
    path.unlink()
    gone = tail.since(4, new.file)
    assert (gone.first, gone.lines) == (0, [])


def test_a_large_file_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are too long are left out, wherever they end; all others come, each once."""
    monkeypatch.setattr(limits, "READ_BYTES", 10)
    monkeypatch.setattr(limits, "LINE_BYTES", 6)
    path = tmp_path / "lines"
    path.write_bytes(b"first\n" + b"x" * 45 + b"\nb\n1234567\nc\n" + b"y" * 33)
    tail = FileTail(path)
    parts = [tail.since(0)]
    while not parts[-1].complete:
        assert len(parts) < 20
        parts.append(tail.since(parts[-1].following, parts[-1].file))
    assert len(parts) > 3
    assert [line for part in parts for line in part.lines] == [b"first", b"b", b"c"]
    with path.open("ab") as file:
        file.write(b"y\nd\nunfin")
    assert [tail.since(3, parts[0].file).lines for _ in range(3)][-1] == [b"d"]
    with path.open("ab") as file:
        file.write(b"ished\ne\n")
    assert [tail.since(4, parts[0].file).lines for _ in range(2)][-1] == [b"e"]


def test_a_file_that_begins_with_a_long_line_is_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_BYTES", 10)
    monkeypatch.setattr(limits, "LINE_BYTES", 6)
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 25 + b"\na\n")
    tail = FileTail(path)
    names = {tail.since(0).file for _ in range(4)}
    assert len(names) == 1
    assert tail.since(0).lines == [b"a"]
    path.write_bytes(b"z" * 25 + b"\nb\n")
    assert [tail.since(1, *names).lines for _ in range(4)][-1] == [b"b"]


def test_no_more_lines_are_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_BYTES", 3 * (limits.OVERHEAD + 1))
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\nd\n")
    part = FileTail(path).since(0)
    assert (part.lines, part.complete) == ([b"a", b"b", b"c"], True)


def test_a_file_without_lines_takes_little_memory_and_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.touch()
    os.truncate(path, 100 << 20)  # a hole: it takes no room on the disk
    tail = FileTail(path)
    tracemalloc.start()
    parts = [tail.since(0) for _ in range(8)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * limits.READ_BYTES
    assert [part.complete for part in parts[-2:]] == [True, True]
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert tail.since(0).lines == [b"last"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines")
    assert FileTail(tmp_path / "lines").since(0).lines == []
