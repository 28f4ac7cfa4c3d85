"""Which shards of a folder are predicted: a record of each, so that every row is predicted once, whatever ends a run.

An output is written into a folder of its own under `.seq2see`, flushed, recorded with its checksum, and renamed last.
So an output that is there is whole; one without its record is somebody else's file; a record without its output is of a
run that was ended between the two, and the shard is predicted again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from seq2see import __version__
from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_json, shortened, unwritable, write_bytes
from seq2see.locking import FolderInUse, lock_folder
from seq2see.pipeline.weights import file_digest

FOLDER = ".seq2see"
MOST_BYTES = 16 * MEBIBYTE
"""Bytes of a record; a table may have 10,000 columns with names of 1,000 characters."""


@dataclass
class Attempt:
    """A shard that is being predicted. part: where its output is written; input: size and checksum of the shard."""

    part: Path
    input: dict[str, Any]


class FinishedShards:
    """The outputs in a folder and their records.

    job: what the outputs depend on besides their inputs (checksums of models, options), as JSON has it; overwrite:
    replace outputs of another job, of inputs that have changed since, and files of unknown origin, which are refused
    otherwise. Outputs of the same job and input are never written again.
    """

    def __init__(self, folder: Path, job: Mapping[str, Any], *, overwrite: bool = False):
        self.folder = folder
        self.job = json.loads(json.dumps(job))
        self.overwrite = overwrite

    def output(self, shard: Path) -> Path:
        """The path of a shard's output."""
        return self.folder / shard.name

    def check_job(self, shard: Path) -> None:
        """Refuse an output of another job, or of unknown origin. Reads the record alone."""
        if self.overwrite or not self.output(shard).exists():
            return
        record = self._record(shard)
        if record is None:
            self._refuse(shard, "it is there already, and was not written by this command")
        differences = _differences(record.get("job"), self.job)
        if differences:
            self._refuse(shard, f"it was predicted otherwise: {'; '.join(differences)}")

    def is_finished(self, shard: Path) -> bool:
        """Whether a shard has its output; refuses one that is not of this job and of the shard as it is now."""
        self.check_job(shard)
        output = self.output(shard)
        record = self._record(shard) if output.exists() else None
        if record is None:
            return False
        changed = ""
        if record.get("job") != self.job:
            changed = "it was predicted otherwise"
        elif record.get("input") != _state(shard):
            changed = f"{shard} has changed since it was predicted"
        elif record.get("output") != _state(output):
            changed = "it has changed since it was written"
        if changed and not self.overwrite:
            self._refuse(shard, changed)
        return not changed

    @contextmanager
    def attempt(self, shard: Path) -> Iterator[Attempt]:
        """Predict a shard, alone among processes; `finish` it in the end."""
        place = self.folder / FOLDER / f"{shard.name}.part"
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(place.parent, error) from None
        try:
            with lock_folder(place):
                part = place / shard.name
                try:
                    yield Attempt(part, _state(shard))
                finally:
                    part.unlink(missing_ok=True)
        except FolderInUse as error:
            owner = str(error).partition(": ")[2].partition(";")[0]
            raise UserError(
                f"{self.output(shard)}: {owner}: another process predicts this shard; give all processes the same "
                "--file and the same N of --shard I/N (WORLD_SIZE), and each its own I"
            ) from None
        finally:
            with suppress(OSError):  # one that a killed process left
                place.rmdir()

    def finish(self, shard: Path, attempt: Attempt, *, rows: int, columns: Sequence[str]) -> None:
        """Record an output and put it into its place."""
        if _state(shard) != attempt.input:
            raise UserError(f"{shard}: has changed while it was predicted; predict it again")
        output = self.output(shard)
        try:
            _flush(attempt.part)
            record = {
                "version": __version__,
                "job": self.job,
                "input": attempt.input,
                "output": _state(attempt.part),
                "rows": rows,
                "columns": list(columns),
            }
            write_bytes(self._path(shard), json.dumps(record, indent=1).encode() + b"\n")
            _flush(self._path(shard).parent)
            attempt.part.replace(output)
            _flush(self.folder)
        except OSError as error:
            raise unwritable(output, error) from None

    def _path(self, shard: Path) -> Path:
        return self.folder / FOLDER / f"{shard.name}.json"

    def _record(self, shard: Path) -> dict[str, Any] | None:
        """The record of a shard; None if there is none that can be read."""
        path = self._path(shard)
        if not path.exists():
            return None
        try:
            record = read_json(path, most=MOST_BYTES, what="the record of a predicted shard")
        except UserError:
            return None
        return record if isinstance(record, dict) else None

    def _refuse(self, shard: Path, why: str) -> NoReturn:
        raise UserError(f"{self.output(shard)}: {why}; give another folder, or --overwrite to replace it")


def _differences(there: Any, now: Mapping[str, Any]) -> list[str]:
    """What two jobs differ in, by key: 'beam is 5 there and 1 now'."""
    if not isinstance(there, dict):
        return ["its record says nothing about models and options"]
    differences = []
    for key in dict.fromkeys([*now, *there]):
        before, after = there.get(key), now.get(key)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, Mapping):
            differences += _differences(before, after)
        elif key == "models":
            differences.append("by another model (its files have other checksums)")
        else:
            differences.append(f"{key} is {shortened(before)} there and {shortened(after)} now")
    return differences


def _state(path: Path) -> dict[str, Any]:
    """Size and checksum of a file."""
    digest = file_digest(path)
    try:
        return {"bytes": path.stat().st_size, "sha256": digest}
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def _flush(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder, before what comes next; some file systems cannot do the
    latter."""
    with suppress(OSError) if path.is_dir() else nullcontext():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
