"""Models as one file: an uncompressed zip archive of the files that a model's folder needs, without checkpoints.

An archive may come from a stranger. It is unpacked into a temporary folder only if all its members are files of a
model (`is_model_file`), stored as they are, without links, folders, duplicates or overlaps. The folder is then read
like any other, with the same checksums and limits.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import struct
import tempfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from seq2see.errors import UserError, listing
from seq2see.files import MEBIBYTE, shortened, unwritable

SUFFIX = ".seq2see"
"""Of packed models, by convention: they are recognised by their content."""
FILES = (
    "recipe.yaml",
    "model.safetensors",
    "checksums.json",
    "baselines.json",
    "trained_rows.safetensors",
    "metrics.jsonl",
    "examples.jsonl",
)
"""Files of a model that are not of one input or output."""
FIELD_FILE = re.compile(r"[a-z][a-z0-9_]{0,40}-[A-Za-z0-9_.~%-]{1,200}\.(txt|json)", re.ASCII)
"""Names of the files of inputs and outputs, such as `vocabulary-source.txt`."""
MAX_MEMBERS = 1_000
MAX_DIRECTORY = 1 << 20
"""Bytes of the archive's list of members."""
MAX_ARCHIVE = (1 << 32) - (1 << 24)
"""Bytes of an archive; larger ones would need another kind of zip."""

_START, _END, _END_SIZE = b"PK\x03\x04", b"PK\x05\x06", 22
_TIME = (1980, 1, 1, 0, 0, 0)


def is_model_file(name: str) -> bool:
    """Whether a packed or published model may have a file of this name.

    >>> [is_model_file(name) for name in ("recipe.yaml", "vocabulary-source.txt", "sources.json", "../recipe.yaml")]
    [True, True, False, False]
    """
    return name in FILES or FIELD_FILE.fullmatch(name) is not None


def is_packed(path: str | Path) -> bool:
    """Whether a path is that of a packed model, by the first bytes of the file."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb") as file:
            return file.read(len(_START)) == _START
    except (OSError, ValueError):
        return False


def write_archive(out: Path, files: Sequence[Path]) -> None:
    """Write files of a model into an archive, as a whole or not at all; equal files give equal archives."""
    for path in files:
        if not is_model_file(path.name):
            raise UserError(f"{path}: a packed model has no file of this name; allowed: {', '.join(FILES)}, NAME-*.txt")
    size = sum(path.stat().st_size for path in files)
    if size > MAX_ARCHIVE:
        raise UserError(f"{out}: {size:,} bytes; a packed model has at most {MAX_ARCHIVE:,}")
    part = out.with_name(f".{out.name}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
                for path in files:
                    member = zipfile.ZipInfo(path.name, _TIME)
                    member.external_attr = (stat.S_IFREG | 0o644) << 16
                    with path.open("rb") as source, archive.open(member, "w") as target:
                        shutil.copyfileobj(source, target, MEBIBYTE)
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise unwritable(out, error) from None


# ---------------- Reading

Stamp = tuple[int, int, int]

_folders: dict[Path, tuple[Stamp, Path]] = {}
"""By the path of an archive, its state when it was unpacked, and the temporary folder."""
_unpacking = threading.Lock()


def model_folder(model: str | Path) -> Path:
    """The folder of a model: itself, or for a packed model a temporary folder with its files, which is removed when
    the process ends or the file has changed."""
    path = Path(model)
    if not is_packed(path):
        return path
    with _unpacking:
        real = path.resolve()
        stamp = file_stamp(real)
        known = _folders.get(real)
        if known is not None and known[0] == stamp and known[1].is_dir():
            return known[1]
        if known is not None:
            _remove(known[1])
        folder = _unpacked(path)
        _folders[real] = stamp or (0, 0, 0), folder
        return folder


def file_stamp(path: Path) -> Stamp | None:
    """What tells that a file was written anew: inode, size and time; None without a file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def naming_archive(model: str | Path, folder: Path) -> Iterator[None]:
    """Let errors about files of an unpacked model name the archive."""
    try:
        yield
    except UserError as error:
        if folder == Path(model) or str(folder) not in str(error):
            raise
        message = str(error).replace(str(folder), str(model))
        error.args = (message,)
        raise


def _unpacked(path: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="seq2see-packed-"))
    try:
        with path.open("rb") as file:
            _check_end(path, file)
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                _check_members(path, members)
                for member in members:
                    with archive.open(member) as source, (folder / member.filename).open("xb") as target:
                        shutil.copyfileobj(source, target, MEBIBYTE)
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UserError(f"{path}: damaged or cut short, not a whole packed model ({error})") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if not _folders:
        atexit.register(_remove_all, os.getpid())
    return folder


def _check_end(path: Path, file: BinaryIO) -> None:
    """Refuse a list of members that is too long, before it is read: `write_archive` ends archives with a record of its
    size, without a comment."""
    size = file.seek(0, os.SEEK_END)
    if size > MAX_ARCHIVE + MAX_DIRECTORY:
        raise UserError(f"{path}: {size:,} bytes; a packed model has at most {MAX_ARCHIVE:,}")
    file.seek(max(size - _END_SIZE - 20, 0))
    end = file.read()
    if end[-_END_SIZE:][:4] != _END:
        raise UserError(f"{path}: damaged or cut short: the record at the end of a packed model is missing")
    if end.startswith(b"PK\x06\x07"):
        raise UserError(f"{path}: a zip archive of another kind (zip64); `seq2see pack` does not write these")
    count, length, start = struct.unpack("<HII", end[-_END_SIZE:][10:20])
    if count > MAX_MEMBERS or length > MAX_DIRECTORY:
        raise UserError(
            f"{path}: a list of {count:,} files, {length:,} bytes; at most {MAX_MEMBERS:,} files and "
            f"a list of {MAX_DIRECTORY:,} bytes"
        )
    if start + length + _END_SIZE != size:
        raise UserError(f"{path}: damaged: its list of files does not lie where the archive says")


def _check_members(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse archives with anything but the files of one model, each once and stored as it is."""
    names = [member.filename for member in members]
    strange = [shortened(name) for name in names if not is_model_file(name)]
    if strange:
        allowed = f"{', '.join(FILES)}, and files of inputs and outputs (vocabulary-NAME.txt)"
        raise UserError(f"{path}: holds {listing(strange, 3)}, which is not part of a model; allowed: {allowed}")
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UserError(f"{path}: holds {twice[0]} more than once")
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        problem = (
            "a link or device"
            if kind not in (0, stat.S_IFREG)
            else "encrypted"
            if member.flag_bits & 1
            else "compressed; a packed model stores its files as they are"
            if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size
            else ""
        )
        if problem:
            raise UserError(f"{path}: {member.filename} is {problem}")
    total = sum(member.file_size for member in members)
    if total > path.stat().st_size:
        raise UserError(f"{path}: damaged: files of {total:,} bytes in an archive of {path.stat().st_size:,}")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _remove_all(owner: int) -> None:
    """Remove the temporary folders at the end of the process that made them; its forks leave them alone."""
    if os.getpid() == owner:
        for _, folder in _folders.values():
            _remove(folder)
        _folders.clear()
