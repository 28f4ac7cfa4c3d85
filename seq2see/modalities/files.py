"""Inputs and outputs whose values are paths of files: what all of them share."""

from __future__ import annotations

import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import IO, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from seq2see.data.batches import Ragged
from seq2see.data.feature_store import FeatureStore
from seq2see.data.media_files import Job, MediaSettings
from seq2see.errors import UserError
from seq2see.modalities.base import Example, Modality, Schema
from seq2see.threads import cores

DATA_URL = (
    r"^data:[A-Za-z0-9_.+-]+/[A-Za-z0-9_.+-]+(;[A-Za-z0-9_=.+-]+)*;base64,"
    r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
)
"""How files are given inside JSON."""

BLOCK, BLOCKS = 1 << 14, 16
"""Size and number of the blocks hashed of a larger file, evenly spread, its first and last bytes among them."""


class FileDecoder:
    """Decodes files in this process; a server's fields have another one, which has them decoded beforehand (here:
    False)."""

    in_process: ClassVar[bool] = True

    def arrays(self, path: str, settings: MediaSettings) -> list[NDArray[Any]]:
        """A decoded file; a MediaError where it cannot be used."""
        return settings.decode(path)


class FileField(Modality):
    """Paths of files. decoder: by which files are read where nothing is changed at random."""

    unusable: ClassVar[str] = "a file"
    drawable: ClassVar[bool] = True

    def __init__(self, settings: Any, *, output: bool = False):
        super().__init__(settings, output=output)
        self.decoder = FileDecoder()

    def job(self, value: str, *, preview: bool = False) -> Job:
        """How a file is decoded to predict from it; preview: and to show it as well."""
        return Job(self.file(value), self.settings)

    def file(self, value: str) -> str:
        """The path of a value's file."""
        return value

    def clean(self, value: str) -> str:
        """Halves of surrogate pairs stand for bytes that are no text in the path of a file, and stay."""
        try:
            if b"\0" not in os.fsencode(self.file(value)):
                return value
        except UnicodeEncodeError:
            pass
        raise UserError(f"{value!r} is not the path of a file")

    def content(self, value: str) -> bytes:
        """A hash of the file, so that a copy in another folder is equal; of one that cannot be read, of its path."""
        return _content(Path(self.file(value))) + b"\0"

    def json_schemas(self, text: Schema) -> list[Schema]:
        return [{"type": "string", "pattern": DATA_URL}]

    def preview(self, example: Example) -> dict[str, Any]:
        return {}


class MediaField(FileField):
    """Files that are looked up when a batch is made. A stored row is its path, as bytes: it needs no list of files
    beside it, and two runs over other files are told apart like two runs over other words.

    features: what a frozen network made of files, which stands in for them where all of a batch are known;
    files_too: the files are read beside it, as some other part of the network needs them.
    """

    def __init__(self, settings: Any, *, output: bool = False):
        super().__init__(settings, output=output)
        self.features: FeatureStore | None = None
        self.files_too = False

    def kept(self, values: Sequence[str]) -> NDArray[np.float16] | None:
        """What is kept of these files, (files, *shape); None where any is not known."""
        if self.features is None or not all(value in self.features for value in values):
            return None
        return self.features.read(values)

    def ids(self, value: str) -> list[int]:
        return list(value.encode("utf-8", "surrogateescape"))

    def value(self, ids: Iterable[int]) -> str:
        """The path of a stored row.

        >>> from seq2see.modalities.image import ImageField
        >>> from seq2see.data.image_files import ImageInput
        >>> field = ImageField(ImageInput())
        >>> field.value(field.ids("images/ä.png"))
        'images/ä.png'
        """
        return np.fromiter(ids, dtype=np.uint8).tobytes().decode("utf-8", "surrogateescape")

    def widths(self, store: Ragged) -> NDArray[np.int64]:
        files = [self.file(self.value(store[row])) for row in range(len(store))]
        distinct = list(dict.fromkeys(files))
        with ThreadPoolExecutor(cores()) as pool:
            known = dict(zip(distinct, pool.map(self.width, distinct), strict=True))
        return np.fromiter((known[file] for file in files), dtype=np.int64, count=len(files))

    def length(self, example: Example) -> int:
        return self.width(example.value)

    @abstractmethod
    def width(self, value: str) -> int:
        """How much room a file takes in a batch, in symbols."""


def _content(path: Path) -> bytes:
    """A hash of a file; of one that cannot be read, of its path."""
    digest = blake2b(digest_size=16)
    try:
        size = path.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with path.open("rb") as file:
            if size <= BLOCK * BLOCKS:
                digest.update(file.read())
            else:
                for block in range(BLOCKS):
                    file.seek(block * (size - BLOCK) // (BLOCKS - 1))
                    digest.update(file.read(BLOCK))
    except (OSError, ValueError):
        digest.update(str(path).encode("utf-8", "surrogateescape"))
    return digest.digest()


# --- Files that are decoded once

_DECODED: ContextVar[_DecodedFiles | None] = ContextVar("decoded_files", default=None)


@contextmanager
def decode_once(folder: Path | None) -> Iterator[None]:
    """Inside, `decoded` keeps arrays in a temporary file of this folder: training reads its rows in several passes."""
    with _DecodedFiles(folder) as kept:
        before = _DECODED.set(kept)
        try:
            yield
        finally:
            _DECODED.reset(before)


def decoded(key: str, decode: Callable[[], list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """The arrays of a file, which `decode` returns where they are not kept. key: of the file and its settings."""
    kept = _DECODED.get()
    if kept is None:
        return decode()
    arrays = kept.read(key)
    if arrays is None:
        arrays = decode()
        kept.write(key, arrays)
    return arrays


class _DecodedFiles:
    """Arrays of files, in a temporary file; none are kept where that cannot be written."""

    def __init__(self, folder: Path | None):
        self._folder, self._failed = folder, False
        self._places: dict[str, tuple[int, list[tuple[np.dtype[Any], tuple[int, ...]]]]] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def read(self, key: str) -> list[NDArray[Any]] | None:
        if key not in self._places:
            return None
        assert self._file is not None
        start, forms = self._places[key]
        self._file.seek(start)
        parts = [self._file.read(dtype.itemsize * prod(shape)) for dtype, shape in forms]
        return [np.frombuffer(part, dtype).reshape(shape) for part, (dtype, shape) in zip(parts, forms, strict=True)]

    def write(self, key: str, arrays: Sequence[NDArray[Any]]) -> None:
        if self._failed:
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by `__exit__`
            start = self._file.seek(0, os.SEEK_END)
            for array in arrays:
                self._file.write(array.tobytes())
            self._file.flush()
        except OSError:  # a full disk
            self._failed = True
        else:
            self._places[key] = start, [(array.dtype, array.shape) for array in arrays]
