"""results.jsonl of a comparison: one line for each finished run, found again by all that decides on its outcome."""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seq2see.attention import scores
from seq2see.decoders import decoders
from seq2see.encoders import encoders
from seq2see.errors import UserError
from seq2see.evaluation.ranking import Outcome
from seq2see.files import unwritable, write_bytes
from seq2see.recipe import Recipe
from seq2see.recipe.variants import Variant
from seq2see.training.run import Sources

RESULTS = "results.jsonl"


class Results:
    """Outcomes by the fingerprint of their runs. A line that a kill cut short goes: its run is not finished."""

    def __init__(self, folder: Path):
        self.path = folder / RESULTS
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise unwritable(folder, error) from None
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_bytes(self.path, whole)
        self._found = dict(self._read(line) for line in whole.splitlines())

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self._found

    def __getitem__(self, fingerprint: str) -> Outcome:
        return self._found[fingerprint]

    def add(self, fingerprint: str, variant: Variant, outcome: Outcome) -> None:
        """Written at once: what is finished stays finished, whatever happens next."""
        self._found[fingerprint] = outcome
        record = {"run": fingerprint, "variant": dict(variant.changes), **asdict(outcome)}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        except OSError as error:
            raise unwritable(self.path, error) from None

    def _read(self, line: bytes) -> tuple[str, Outcome]:
        try:
            record: dict[str, Any] = json.loads(line)
            run = str(record.pop("run"))
            record.pop("variant")
            return run, Outcome(**record)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(f"{self.path}: damaged, a line is no result of a run: {line[:60]!r} ({error})") from None


def fingerprint(recipe: Recipe, sources: Sources) -> str:
    """What tells runs apart that may end differently: the whole recipe, the rows, and code of the user's own.

    A score, encoder or decoder that was changed in its module is another one, whatever its name.
    """
    settings = recipe.to_dict()
    del settings["training"]["film"]  # whoever watches a run does not change it
    del settings["training"]["checkpoint_seconds"]  # nor does what is kept of it on the way
    rows = {"data": sources.data, "dev": sources.dev, "columns": sources.columns}
    made = hashlib.sha256(json.dumps([settings, rows], sort_keys=True).encode())
    for path in (sources.data, sources.dev):
        if path is not None and Path(path).is_file():
            made.update(_digest(Path(path)))
    for file in sorted(_own_code(recipe)):
        made.update(_digest(file))
    return made.hexdigest()[:16]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _own_code(recipe: Recipe) -> set[Path]:
    """Files of the parts a plug-in brought, and of what they inherit; those of the package are as they are."""
    parts: list[type] = [decoders[recipe.decoder.kind]]
    parts += [encoders[recipe.encoder_of(name).kind] for name in recipe.inputs]
    if recipe.looked_at:
        parts.append(scores[recipe.attention.score])
    lines = {one for part in parts for one in part.__mro__}
    strange = [one for one in lines if one.__module__.partition(".")[0] not in ("seq2see", "torch", "builtins")]
    files = [inspect.getsourcefile(one) for one in strange]
    return {Path(file) for file in files if file is not None and Path(file).is_file()}
