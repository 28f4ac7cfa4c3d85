"""Weights on disk: safetensors files with checksums, written as a whole or not at all, checked against the model."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.files import shortened, write_bytes

# ---------------- SHA-256 checksums of a model's files

CHECKSUMS = "checksums.json"
ALGORITHM = "sha256"
KEY = "seq2see-sha256"
BLANK = "0" * 64
"""The checksum in the metadata while it is computed."""

MAX_HEADER = 1 << 24
"""Bytes of the header of a safetensors file; a model of a thousand weights has a tenth of a megabyte."""
MAX_LIST = 1_000_000
MAX_FILE = 1 << 30
BLOCK = 1 << 20
CHECKSUM = re.compile(rb'"' + KEY.encode() + rb'":"([^"]*)"')


def with_checksum(content: bytes) -> tuple[bytes, memoryview]:
    """A safetensors file with its checksum in place of BLANK in its metadata: (header, data)."""
    end = 8 + int.from_bytes(content[:8], "little")
    field = CHECKSUM.search(content[:end])
    if field is None or field[1] != BLANK.encode():
        raise ValueError(f"a safetensors file with {KEY} {BLANK} in its metadata expected")
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[: field.start(1)] + digest + content[field.end(1) : end], memoryview(content)[end:]


def check_checksum(path: Path) -> None:
    """Compare a safetensors file with its own checksum; files without one (of other programs, or of earlier versions)
    pass."""
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
    if size > MAX_HEADER:
        return True  # not a safetensors file: reading it will raise the error
    header = file.read(size)
    field = CHECKSUM.search(header)
    if field is None:
        return True
    digest = hashlib.sha256(start + header[: field.start(1)] + BLANK.encode() + header[field.end(1) :])
    while block := file.read(BLOCK):
        digest.update(block)
    return digest.hexdigest().encode() == field[1]


def write_checksums(folder: Path, paths: Iterable[Path]) -> None:
    """Write checksums.json for files that are already in the folder."""
    files = {path.name: file_digest(path) for path in paths}
    content = json.dumps({"algorithm": ALGORITHM, "files": files}, ensure_ascii=False, indent=1) + "\n"
    write_bytes(folder / CHECKSUMS, content.encode())


def changed_files(folder: Path) -> list[str]:
    """Names of files that are missing or have changed since checksums.json was written; none without that file."""
    return [name for name, digest in _read_checksums(folder / CHECKSUMS).items() if _differs(folder / name, digest)]


def listed_checksums(folder: Path) -> dict[str, str]:
    """The checksums in checksums.json by file name; none without that file."""
    return _read_checksums(folder / CHECKSUMS)


def is_unchanged(folder: Path, name: str) -> bool:
    """Whether checksums.json lists a file, and it is as it was saved."""
    digest = _read_checksums(folder / CHECKSUMS).get(name)
    return digest is not None and not _differs(folder / name, digest)


def check_files(folder: Path, *, editable: str) -> bool:
    """Refuse files that have changed since they were saved. Returns whether `editable`, which users may change, is
    still the same."""
    changed = changed_files(folder)
    for name in changed:
        if name != editable:
            state = "damaged, or changed by hand" if (folder / name).is_file() else "missing"
            raise UserError(
                f"{folder / name}: {state}: the checksum in {CHECKSUMS} is that of the file the model was saved with; "
                "get the file from a copy of the model"
            )
    return editable not in changed


def _differs(path: Path, digest: str) -> bool:
    """Whether a file differs from its checksum. Listed files are small, so a large one need not be hashed."""
    return not path.is_file() or path.stat().st_size > MAX_FILE or file_digest(path) != digest


def file_digest(path: Path) -> str:
    """The SHA-256 checksum of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, ALGORITHM).hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read_checksums(path: Path) -> dict[str, str]:
    """Checksums by file name; none in folders of earlier versions."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_LIST:
            raise ValueError(f"larger than {MAX_LIST:,} bytes")
        stored: Any = json.loads(path.read_text("utf-8"))
        if not isinstance(stored, dict) or not isinstance(stored.get("files"), dict):
            raise ValueError(f"a mapping with the keys algorithm and files expected, got {shortened(stored)}")
        files = stored["files"]
        if stored.get("algorithm") != ALGORITHM:
            raise ValueError(f"algorithm {str(stored.get('algorithm'))[:40]!r}; allowed: {ALGORITHM}")
        if not all(isinstance(digest, str) and name == Path(name).name for name, digest in files.items()):
            raise ValueError("names of files with their checksums expected")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: damaged: {error}; without this file the folder loads, unchecked") from None
    return dict(files)


# ---------------- tensors

MAX_NAMED = 3
"""Weights that a message names; the others are counted."""
MAX_NAME = 100
FLOATS = ("F64", "F32", "F16", "BF16")
Shape = tuple[int, ...]


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter once (tied ones under their first name), and the persistent buffers."""
    persistent = network.state_dict().keys()
    buffers = {name: buffer for name, buffer in network.named_buffers() if name in persistent}
    return {name: parameter.detach() for name, parameter in network.named_parameters()} | buffers


def write_tensors(path: Path, tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors by name with a checksum; the file appears as a whole, or the old one stays."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, *with_checksum(save(contiguous, {**(metadata or {}), KEY: BLANK})))


def half_precision(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights as float16, half the size on the disk; `fill` copies them into a network of single precision."""
    return {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read tensors by name; a UserError if the file is missing or damaged."""
    _check_file(path)
    check_checksum(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise _damaged(path, error) from None


def check_header(path: Path, network: nn.Module) -> None:
    """Compare the names and shapes of a weights file with those of a network. Only the header of the file is read, and
    the network may be on the meta device, so that nothing is allocated."""
    _, stored = read_header(path)
    expected = tensors_of(network)
    _check_shapes(_shapes(expected), {name: shape for name, (_, shape) in stored.items()}, path=path)
    for name, parameter in expected.items():
        kind = stored[name][0]
        if parameter.is_floating_point() != (kind in FLOATS):
            allowed = ", ".join(FLOATS) if parameter.is_floating_point() else "whole numbers"
            raise UserError(f"{path}: {name} is of type {kind}; allowed: {allowed}")


def read_header(path: Path) -> tuple[dict[str, str], dict[str, tuple[str, Shape]]]:
    """The metadata of a safetensors file, and (type, shape) of each tensor; its numbers are not read."""
    _check_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            kinds = {name: (str(part.get_dtype()), tuple(part.get_shape())) for name, part in slices.items()}
            return file.metadata() or {}, kinds
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise _damaged(path, error) from None


def check_finite(tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Refuse NaN and infinite weights: training never saves them, and every output would be wrong."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(f"{path}: damaged: {name} holds numbers that are not finite (NaN or infinite)")


def _check_file(path: Path) -> None:
    """Refuse what is no weights file before safetensors maps it: it may be a pipe, or claim a header of gigabytes."""
    if not path.is_file():
        what = "not a file" if path.exists() else "missing"
        raise UserError(f"{path}: {what}; a model's folder holds recipe.yaml, model.safetensors and its vocabularies")
    try:
        with path.open("rb") as file:
            claimed = int.from_bytes(file.read(8), "little")
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if size < 8 or claimed > min(size - 8, MAX_HEADER):
        raise _damaged(path, f"a header of {claimed:,} bytes in a file of {size:,}; at most {MAX_HEADER:,}")
    memory = machine_memory()
    if memory is not None and size > memory:
        raise UserError(
            f"{path}: {size / 1e9:,.1f} GB of weights, and this machine has {memory / 1e9:,.1f} GB of memory"
        )


def _damaged(path: Path, error: object) -> UserError:
    return UserError(f"{path}: damaged or cut short, not a whole safetensors file ({error})")


def fill(network: nn.Module, tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Copy tensors into a network after checking that each fits."""
    own = tensors_of(network)
    _check_shapes(_shapes(own), _shapes(tensors), path=path)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, Shape]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _check_shapes(expected: Mapping[str, Shape], stored: Mapping[str, Shape], *, path: Path) -> None:
    """expected: the shapes that the recipe and the vocabularies ask for; stored: those of the file."""
    differences = {
        "missing": [name for name in expected if name not in stored],
        "not of this recipe": [name for name in stored if name not in expected],
    }
    problems = [f"{what}: {_list_names(names)}" for what, names in differences.items() if names]
    if problems:
        raise UserError(f"{path}: these weights do not belong to the recipe next to them; {'; '.join(problems)}")
    unlike = [name for name in expected if expected[name] != stored[name]]
    if unlike:
        each = "; ".join(
            f"{name} is {_shape(stored[name])}, not {_shape(expected[name])}" for name in unlike[:MAX_NAMED]
        )
        more = f"; and {len(unlike) - MAX_NAMED:,} more" if len(unlike) > MAX_NAMED else ""
        raise UserError(
            f"{path}: {each}{more}, as recipe.yaml and the files next to it require: a size in the recipe, "
            "the numbers of a column or a vocabulary does not fit the weights"
        )


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(name[:MAX_NAME] for name in names[:MAX_NAMED]) + more


def _shape(sizes: Shape) -> str:
    return " x ".join(str(size) for size in sizes) or "a single number"


def machine_memory() -> int | None:
    """Bytes of physical memory, None if the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
