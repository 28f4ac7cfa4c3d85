"""Encoded tables on disk, so that resuming a run, or a second run on the same table, starts within seconds.

An entry is a folder of plain arrays, readable text and JSON, named by a hash of the table's content and of all settings
that its rows depend on. It appears complete or not at all. Its manifest names every file with size and checksum, so
that damage is noticed and the entry made anew. Nothing in it is ever run.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from seq2see.data.batches import Ragged
from seq2see.data.blocks import ColumnParts
from seq2see.data.columns import Values
from seq2see.data.tables import Table
from seq2see.errors import UserError
from seq2see.evaluation import Baseline
from seq2see.evaluation.baselines import from_dict
from seq2see.files import MEBIBYTE, read_json, write_bytes
from seq2see.locking import lock_folder
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.encoded_table import WIDTHS, store_path
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.trained_rows import TrainedRows
from seq2see.recipe.schema import Recipe
from seq2see.threads import cores

VERSION = 1
MANIFEST, ROWS = "manifest.json", "rows.json"
MOST_BYTES = 32 << 30
"""Bytes of all entries; those that were not used for longest are removed first."""
MOST_JSON = 256 * MEBIBYTE
_PIECE = 16 << 20
_UNFINISHED = ".unfinished-"
PROCESS = "process"
"""The file in an unfinished entry that says which process of which machine writes it."""


@dataclass
class StoredTable:
    """What a training takes from its table. dev: rows that are set aside; notes: messages about the table."""

    fields: Fields
    train: Dataset
    dev: list[Values]
    baselines: list[Baseline]
    trained: TrainedRows
    notes: list[str]


def digest_files(paths: Sequence[Path]) -> str:
    """A hash of the content of files, in their order; read in pieces by several threads."""
    pieces = [(path, start) for path in paths for start in range(0, max(path.stat().st_size, 1), _PIECE)]
    with ThreadPoolExecutor(cores()) as threads:
        digests = list(threads.map(_digest_piece, pieces))
    whole = blake2b(digest_size=16)
    for (_, start), digest in zip(pieces, digests, strict=True):
        whole.update(start.to_bytes(8, "little") + digest)
    return whole.hexdigest()


def _digest_piece(piece: tuple[Path, int]) -> bytes:
    path, start = piece
    with path.open("rb") as file:
        file.seek(start)
        return blake2b(file.read(_PIECE), digest_size=16).digest()


def digest_fields(fields: Fields) -> str:
    """A hash of all that fields have learned."""
    with tempfile.TemporaryDirectory() as folder:
        paths = fields.save(Path(folder))
        return digest_files(sorted(paths))


class TableCache:
    """The entry of one table and recipe. root: the folder of all entries."""

    def __init__(self, root: Path, key: str):
        self.root, self.folder = root, root / key

    @classmethod
    def of(
        cls,
        root: Path,
        recipe: Recipe,
        table: Table,
        columns: Sequence[ColumnParts],
        mapping: dict[str, str],
        *,
        split: bool,
        fields: Fields | None = None,
    ) -> TableCache:
        """The entry for a table as it is now. mapping: which of its columns are read; split: whether rows are set
        aside; fields: those of an earlier model."""
        vocabularies = {
            name: settings.model_dump(mode="json", exclude={"encoder"})
            for name, settings in [*recipe.inputs.items(), ("", recipe.output)]
        }
        settings = {
            "version": VERSION,
            "python": [sys.byteorder, unicodedata.unidata_version],
            "table": digest_files(table.files),
            "names": [path.name for path in table.files],
            "data": recipe.data.model_dump(mode="json"),
            "columns": [asdict(column) for column in columns],
            "vocabularies": vocabularies,
            "baseline": [recipe.evaluation.baseline, *recipe.evaluation.further_baselines, recipe.training.samples > 0],
            "mapping": mapping,
            "split": split,
            "fields": "" if fields is None else digest_fields(fields),
        }
        content = json.dumps(settings, sort_keys=True).encode()
        return cls(root, blake2b(content, digest_size=16).hexdigest())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While inside, no other process makes this entry; one that wants to waits."""
        folder = self.root / f".making-{self.folder.name}"
        try:
            with lock_folder(folder, wait=True):
                yield
        finally:
            with suppress(OSError):  # another one waits in it, or has removed it
                folder.rmdir()

    def begin(self) -> Path:
        """A folder in which the files of a new entry are written; `save` or `discard` ends it."""
        self.root.mkdir(parents=True, exist_ok=True)
        self._remove_unfinished()
        folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.root))
        (folder / PROCESS).write_text(f"{os.getpid()} {platform.node()}", "utf-8")
        return folder

    def discard(self, folder: Path) -> None:
        """Remove the folder of `begin`, unless `save` has made it an entry."""
        shutil.rmtree(folder, ignore_errors=True)

    def _remove_unfinished(self) -> None:
        """Remove what killed processes of this machine have left; other machines may share the folder."""
        for folder in self.root.glob(f"{_UNFINISHED}*"):
            with suppress(OSError, ValueError, UserError):
                process, _, machine = (folder / PROCESS).read_text("utf-8").partition(" ")
                if machine == platform.node() and not _alive(int(process)):
                    shutil.rmtree(folder)

    def save(self, folder: Path, stored: StoredTable) -> int:
        """Complete the entry whose ids and widths lie in `folder`; the number of its bytes."""
        train = stored.train
        stored.fields.save(folder / "fields")
        stored.trained.save(folder)
        with ThreadPoolExecutor(1) as thread:
            digest = thread.submit(lambda: train.digest)
            checksums = self._checksums(folder)
        rows = {
            "rows": len(train),
            "left_out": train.left_out,
            "cut": train.cut,
            "digest": digest.result(),
            "dev": [[row.line, dict(row)] for row in stored.dev],
            "baselines": [baseline.to_dict() for baseline in stored.baselines],
            "notes": stored.notes,
            "fields": digest_fields(stored.fields),
        }
        write_bytes(folder / ROWS, json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        checksums |= self._checksums(folder, ROWS)
        sizes = {path: path.stat().st_size for path in checksums}
        manifest: dict[str, list[object]] = {
            str(path.relative_to(folder)): [sizes[path], checksums[path]] for path in sorted(checksums)
        }
        write_bytes(folder / MANIFEST, json.dumps(manifest).encode())
        (folder / PROCESS).unlink(missing_ok=True)
        if not self._is_made_of(manifest):  # what another process has completed meanwhile is as good, and in use
            shutil.rmtree(self.folder, ignore_errors=True)
        try:
            folder.rename(self.folder)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
        self._evict()
        return sum(sizes.values())

    def _checksums(self, folder: Path, pattern: str = "*") -> dict[Path, str]:
        paths = (path for path in folder.rglob(pattern) if path.is_file() and path.name != PROCESS)
        return {path: digest_files([path]) for path in paths}

    def _evict(self) -> None:
        """Remove the entries that were not used for longest while there are too many bytes."""
        entries = sorted((path for path in self.root.iterdir() if (path / MANIFEST).is_file()), key=_used, reverse=True)
        size = 0
        for entry in entries:
            size += sum(path.stat().st_size for path in entry.rglob("*") if path.is_file())
            if size > MOST_BYTES and entry != self.folder:
                shutil.rmtree(entry, ignore_errors=True)

    def load(
        self, recipe: Recipe, table: Table, *, fields: Fields | None = None, check: bool = True
    ) -> StoredTable | None:
        """The entry; None where there is none, or where it was made with other fields than these. A UserError says what
        is damaged. check: compare checksums; not of an entry that was just written."""
        if not (self.folder / MANIFEST).is_file():
            return None
        if check:
            self._check()
        rows = read_json(self.folder / ROWS, most=MOST_JSON, what="a list of rows")
        try:
            if fields is not None and rows["fields"] != digest_fields(fields):
                return None
            fields = Fields.load(self.folder / "fields", recipe)
            stores = {name: Ragged.open(store_path(self.folder, name)) for name in fields.all}
            widths = np.load(self.folder / WIDTHS, mmap_mode="r", allow_pickle=False)
            shapes = {len(store) for store in stores.values()} | {len(widths), rows["rows"]}
            if len(shapes) != 1 or any(int(store.offsets[-1]) != len(store.flat) for store in stores.values()):
                raise ValueError("the numbers of rows differ")
            train = Dataset(fields, stores, left_out=rows["left_out"], cut=rows["cut"], widths=widths)
            train.digest = rows["digest"]
            dev = [Values(values, table, line, written={}) for line, values in rows["dev"]]
            baselines = [from_dict(baseline) for baseline in rows["baselines"]]
            trained = TrainedRows.load(self.folder)
        except (ValueError, KeyError, TypeError, OSError, AttributeError) as error:
            raise UserError(f"{self.folder}: damaged: {error}") from None
        if trained is None:
            raise UserError(f"{self.folder}: damaged: no hashes of rows")
        with suppress(OSError):
            os.utime(self.folder / MANIFEST)
        return StoredTable(fields, train, dev, baselines, trained, list(rows["notes"]))

    def _is_made_of(self, manifest: dict[str, list[object]]) -> bool:
        """Whether the entry is there, not damaged, and has just these files."""
        try:
            self._check()
            return bool(read_json(self.folder / MANIFEST, most=MEBIBYTE, what="a manifest") == manifest)
        except UserError:
            return False

    def _check(self) -> None:
        """Compare all files with the manifest."""
        manifest = read_json(self.folder / MANIFEST, most=MEBIBYTE, what="a manifest")
        try:
            files = {self.folder / name: (int(size), str(digest)) for name, (size, digest) in manifest.items()}
            for path, (size, _) in files.items():
                if not path.resolve().is_relative_to(self.folder.resolve()):
                    raise ValueError(f"{path} lies elsewhere")
                if path.stat().st_size != size:
                    raise ValueError(f"{path.name} has {path.stat().st_size:,} bytes, not {size:,}")
            for path, (_, digest) in files.items():
                if digest_files([path]) != digest:
                    raise ValueError(f"{path.name} has another checksum")
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise UserError(f"{self.folder}: damaged: {error}") from None


def _used(entry: Path) -> float:
    return (entry / MANIFEST).stat().st_mtime


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
