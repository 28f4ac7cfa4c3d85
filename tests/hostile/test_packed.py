"""A packed model that somebody else has written: nothing outside its temporary folder, nothing larger than the file."""

from __future__ import annotations

import random
import stat
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import seq2see
from seq2see.errors import Notice, UserError
from seq2see.pipeline import packing
from tests.hostile.mutations import mutate_bytes, survived

Members = dict[str, bytes]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which archives are unpacked."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        yield folder


@pytest.fixture
def members(models: dict[str, Path]) -> Members:
    folder = models["word"]
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if packing.is_model_file(path.name)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stranger.seq2see"


def write(path: Path, members: Members, *, method: int = zipfile.ZIP_STORED, **attributes: int) -> None:
    """An archive; attributes: of its last member."""
    with zipfile.ZipFile(path, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (name, content) in enumerate(members.items(), start=1):
            member = zipfile.ZipInfo(name)
            member.compress_type = method
            for attribute, value in attributes.items() if number == len(members) else ():
                setattr(member, attribute, value)
            archive.writestr(member, content)


def refused(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        seq2see.load(path)
    assert path.name in str(caught.value)
    return str(caught.value)


def test_a_whole_one_is_loaded(path: Path, members: Members) -> None:
    write(path, members)
    assert seq2see.load(path).predict("one two").text is not None


NAMES = [
    "../recipe.yaml",
    "/tmp/recipe.yaml",
    "folder/recipe.yaml",
    "folder/",
    "recipe.yaml/",
    "..",
    "vocabulary-..\\x.txt",
    "vocabulary-a/b.txt",
    "sources.json",
    "code.py",
    "checkpoints/update-1.safetensors",
    "Recipe.yaml",
    "vocabulary-é.txt",
    f"vocabulary-{'a' * 300}.txt",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_no_files_of_a_model(path: Path, members: Members, scratch: Path, name: str) -> None:
    write(path, {**members, name: b"x"})
    refused(path)
    assert not list(scratch.iterdir())
    assert {entry.name for entry in path.parent.iterdir()} == {"scratch", path.name}


def test_links_and_devices(path: Path, members: Members, scratch: Path) -> None:
    for kind in (stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR):
        write(path, {**members, "vocabulary-x.txt": b"/etc/passwd"}, external_attr=(kind | 0o777) << 16)
        assert "vocabulary-x.txt" in refused(path)
        assert not list(scratch.iterdir())


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressed_members(path: Path, members: Members, scratch: Path, method: int) -> None:
    write(path, {**members, "vocabulary-bomb.txt": bytes(1 << 20)}, method=method)
    refused(path)
    assert not list(scratch.iterdir())


def test_a_member_twice(path: Path, members: Members) -> None:
    write(path, members)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="recipe"):
        archive.writestr("recipe.yaml", "x")
    assert "recipe.yaml" in refused(path)


def test_members_that_overlap(path: Path, scratch: Path) -> None:
    """Every entry of the list points at the same megabyte."""
    content, local = bytes(1 << 20), struct.Struct("<4s5H3I2H")
    name = b"vocabulary-a.txt"
    crc = zipfile.crc32(content)
    start = local.pack(b"PK\x03\x04", 20, 0, 0, 0, 0, crc, len(content), len(content), len(name), 0) + name + content
    entries = b""
    for number in range(500):
        own = f"vocabulary-{number}.txt".encode()
        sizes = (crc, len(content), len(content), len(own))
        entries += struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, *sizes, 0, 0, 0, 0, 0, 0)
        entries += own
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 500, 500, len(entries), len(start), 0)
    path.write_bytes(start + entries + end)
    refused(path)
    assert not list(scratch.iterdir())


def test_too_many_members(path: Path, members: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_MEMBERS", len(members) - 1)
    write(path, members)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    refused(path)


def test_ends_that_are_not_ours(path: Path, members: Members) -> None:
    write(path, members)
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:-22], whole + b"x", whole[:100], whole[:4], whole[:50] + whole[60:]):
        path.write_bytes(content)
        refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"PK\x05\x06" + bytes(18)
        archive.writestr("recipe.yaml", members["recipe.yaml"])
    refused(path)


def test_checksums_hold_as_in_a_folder(path: Path, members: Members) -> None:
    write(path, {**members, "vocabulary-source.txt": members["vocabulary-source.txt"] + b"new\n"})
    assert "vocabulary-source.txt" in refused(path)
    damaged = bytearray(members["model.safetensors"])
    damaged[-1] ^= 1
    write(path, {**members, "model.safetensors": bytes(damaged)})
    assert "model.safetensors" in refused(path)
    write(path, {name: content for name, content in members.items() if name != "model.safetensors"})
    assert "model.safetensors" in refused(path)


def test_other_files(path: Path, call: Callable[..., tuple[int, str, str]]) -> None:
    for content in (b"", b"PK", b"text", b"PK\x05\x06" + bytes(18)):
        path.write_bytes(content)
        code, _, err = call("predict", path, "one two")
        assert code == 2
        assert path.name in err


def test_mutated_archives(path: Path, members: Members, scratch: Path) -> None:
    write(path, members)
    whole, draw, sound = path.read_bytes(), random.Random(5), 0
    for _ in range(60):
        path.write_bytes(mutate_bytes(whole, draw))
        sound += survived(lambda: seq2see.load(path).predict("one two"))
    assert sound < 60
    assert len(list(scratch.iterdir())) <= 1
