"""Lines of files that grow, are cut short, and are written anew."""

from __future__ import annotations

from pathlib import Path

from seq2see.data.output import write_bytes
from seq2see.studio.tail import Tail


def test_each_line_is_told_once_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    tail = Tail(path)
    assert tail.since(0).lines == []
    path.write_bytes(b"a\nb\nc")
    first = tail.since(0)
    assert (first.lines, first.following, first.whole) == ([b"a", b"b"], 2, True)
    with path.open("ab") as file:
        file.write("\u2028d\ne\n".encode())
    second = tail.since(first.following, first.file, most=1)
    assert (second.first, second.lines, second.following, second.whole) == (2, ["c\u2028d".encode()], 3, False)
    assert tail.since(99, first.file).lines == []


def test_a_file_that_is_written_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\n")
    tail = Tail(path)
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
