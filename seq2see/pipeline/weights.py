"""Weights on disk: safetensors, written whole or not at all, checked against the model they are read into."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.files import write_bytes
from seq2see.pipeline.devices import machine_memory

# ---------------- SHA-256 checksums of a model's files

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


NAMED = 3
"""Weights that a message names; the others are counted."""
LONGEST_NAME = 100
FLOATS = ("F64", "F32", "F16", "BF16")
Shape = tuple[int, ...]


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter once (tied ones under their first name), and what else a network keeps (of normalisations the
    means they have seen)."""
    kept = network.state_dict().keys()
    buffers = {name: buffer for name, buffer in network.named_buffers() if name in kept}
    return {name: parameter.detach() for name, parameter in network.named_parameters()} | buffers


def write_tensors(path: Path, tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None) -> None:
    """Tensors by name as one file with its checksum, which appears whole or leaves the old one in its place."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, *signed(save(whole, {**(metadata or {}), KEY: UNSIGNED})))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors by name; a missing or damaged file is the user's to mend."""
    _check_file(path)
    check_signed(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise _damaged(path, error) from None


def check_header(path: Path, network: nn.Module) -> None:
    """Compare the names and shapes of a weights file with those of a network, which may be on the meta device: of the
    file the header alone is read, and nothing is allocated for either."""
    _check_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            shapes = {name: tuple(one.get_shape()) for name, one in slices.items()}
            types = {name: str(one.get_dtype()) for name, one in slices.items()}
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise _damaged(path, error) from None
    own = tensors_of(network)
    _check_fit({name: tuple(one.shape) for name, one in own.items()}, shapes, path=path)
    for name, parameter in own.items():
        if parameter.is_floating_point() != (types[name] in FLOATS):
            allowed = ", ".join(FLOATS) if parameter.is_floating_point() else "whole numbers"
            raise UserError(f"{path}: {name} is of type {types[name]}; allowed: {allowed}")


def check_finite(tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Refuse weights that are not numbers: no training leaves such a model, and every output of it would be wrong."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise UserError(f"{path}: damaged: {name} holds numbers that are not finite (NaN or infinite)")


def _check_file(path: Path) -> None:
    """Refuse what is no weights file before a library maps it: it may be a pipe, or claim a header of gigabytes."""
    if not path.is_file():
        what = "not a file" if path.exists() else "missing"
        raise UserError(f"{path}: {what}; a model's folder holds recipe.yaml, model.safetensors and its vocabularies")
    try:
        with path.open("rb") as file:
            claimed = int.from_bytes(file.read(8), "little")
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    if size < 8 or claimed > min(size - 8, MOST_HEADER):
        raise _damaged(path, f"a header of {claimed:,} bytes in a file of {size:,}; at most {MOST_HEADER:,}")
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
    shapes = ({name: tuple(one.shape) for name, one in given.items()} for given in (own, tensors))
    _check_fit(*shapes, path=path)
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(tensors[name])


def _check_fit(own: Mapping[str, Shape], stored: Mapping[str, Shape], *, path: Path) -> None:
    """own: the shapes that the recipe and the vocabularies ask for; stored: those of the file."""
    parts = {
        "missing": [name for name in own if name not in stored],
        "not of this recipe": [name for name in stored if name not in own],
    }
    problems = [f"{what}: {_named(found)}" for what, found in parts.items() if found]
    if problems:
        raise UserError(f"{path}: these weights do not belong to the recipe beside them; {'; '.join(problems)}")
    unlike = [name for name in own if own[name] != stored[name]]
    if unlike:
        each = "; ".join(f"{name} is {_shape(stored[name])}, not {_shape(own[name])}" for name in unlike[:NAMED])
        more = f"; and {len(unlike) - NAMED:,} more" if len(unlike) > NAMED else ""
        raise UserError(
            f"{path}: {each}{more}, as recipe.yaml and the vocabularies beside it ask for: a size in the recipe, or "
            "the vocabulary does not fit the weights"
        )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(name[:LONGEST_NAME] for name in names[:NAMED]) + more


def _shape(sizes: Shape) -> str:
    return " x ".join(str(size) for size in sizes) or "a single number"
