"""SHA-256 checksums of a model's files: of tensors inside the file itself, of all others in checksums.json.

Weights and checkpoints are replaced while a run goes on. Their checksum lies in the metadata of the safetensors file:
both are replaced in one step, and a kill between two writes cannot part them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from seq2see.data.output import write_bytes
from seq2see.errors import UserError

CHECKSUMS = "checksums.json"
ALGORITHM = "sha256"
KEY = "seq2see-sha256"
UNSIGNED = "0" * 64
"""Stands in the metadata in place of the checksum while that is computed."""

MOST_HEADER = 1 << 24
"""Bytes of a safetensors file's header; a model of a thousand weights has a tenth of a megabyte."""
LARGEST_LIST = 1_000_000
LARGEST_FILE = 1 << 30
BLOCK = 1 << 20
SIGNED = re.compile(rb'"' + KEY.encode() + rb'":"([^"]*)"')


def signed(content: bytes) -> tuple[bytes, memoryview]:
    """A safetensors file that was made with UNSIGNED in its metadata, in two parts, with its checksum filled in."""
    end = 8 + int.from_bytes(content[:8], "little")
    field = SIGNED.search(content[:end])
    if field is None or field[1] != UNSIGNED.encode():
        raise ValueError(f"a safetensors file with {KEY} {UNSIGNED} in its metadata expected")
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: field.start(1)] + digest + content[field.end(1) : end], memoryview(content)[end:]


def check_signed(path: Path) -> None:
    """Compare a safetensors file with its own checksum; one without (written by others, or earlier versions) passes."""
    try:
        with path.open("rb") as file:
            intact = _intact(file)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not intact:
        raise UserError(f"{path}: damaged or cut short, its contents do not match its checksum")


def _intact(file: BinaryIO) -> bool:
    start = file.read(8)
    size = int.from_bytes(start, "little")
    if size > MOST_HEADER:
        return True  # no safetensors file: whoever reads it says so
    header = file.read(size)
    field = SIGNED.search(header)
    if field is None:
        return True
    hashed = hashlib.sha256(start + header[: field.start(1)] + UNSIGNED.encode() + header[field.end(1) :])
    while block := file.read(BLOCK):
        hashed.update(block)
    return hashed.hexdigest().encode() == field[1]


def write_checksums(folder: Path, paths: Iterable[Path]) -> None:
    """Write checksums.json for these files of the folder, which are there already."""
    files = {path.name: _digest(path) for path in paths}
    content = json.dumps({"algorithm": ALGORITHM, "files": files}, ensure_ascii=False, indent=1) + "\n"
    write_bytes(folder / CHECKSUMS, content.encode())


def changed_files(folder: Path) -> list[str]:
    """Names of the files that are missing, or not what they were when checksums.json was written; none without it."""
    return [name for name, digest in _listed(folder / CHECKSUMS).items() if _differs(folder / name, digest)]


def check_files(folder: Path, *, free: str) -> bool:
    """A UserError names a file that is not as it was saved; whether `free`, which users may edit, is still the same."""
    changed = changed_files(folder)
    for name in changed:
        if name != free:
            state = "damaged, or changed by hand" if (folder / name).is_file() else "missing"
            raise UserError(
                f"{folder / name}: {state}: the checksum in {CHECKSUMS} is that of the file the model was saved with; "
                "get the file from a copy of the model"
            )
    return free not in changed


def _differs(path: Path, digest: str) -> bool:
    """Files that are listed are small: one that is large is another file, and not worth hashing."""
    return not path.is_file() or path.stat().st_size > LARGEST_FILE or _digest(path) != digest


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, ALGORITHM).hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _listed(path: Path) -> dict[str, str]:
    """Checksums by name; none where the folder is of an earlier version."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > LARGEST_LIST:
            raise ValueError(f"larger than {LARGEST_LIST:,} bytes")
        stored: Any = json.loads(path.read_text("utf-8"))
        files = stored["files"]
        if stored["algorithm"] != ALGORITHM:
            raise ValueError(f"algorithm {str(stored['algorithm'])[:40]!r}; allowed: {ALGORITHM}")
        if not all(isinstance(digest, str) and name == Path(name).name for name, digest in files.items()):
            raise ValueError("names of files with their checksums expected")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: damaged: {error}; without this file the folder loads, unchecked") from None
    return dict(files)
