"""A whole run, from a recipe and a table to a trained model in a folder."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from seq2see.data.columns import OUTPUT
from seq2see.data.records import Data, is_path
from seq2see.errors import UserError
from seq2see.evaluation.baselines import assign
from seq2see.files import MEBIBYTE, read_json, shortened, unwritable, write_bytes
from seq2see.locking import lock_folder
from seq2see.looks import Prediction
from seq2see.modalities.files import MediaField
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.devices import machine_memory, usable
from seq2see.pipeline.evaluator import judge
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.frozen_features import keep_features
from seq2see.pipeline.measures import followed
from seq2see.pipeline.parameters import of_recipe, total
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.trained_rows import TrainedRows
from seq2see.pipeline.weights import CHECKSUMS, changed_files, check_files, fill
from seq2see.recipe import Recipe, load_recipe, notes
from seq2see.settings.base import CellSettings
from seq2see.training.checkpoints import checkpoint_paths, recover_checkpoint
from seq2see.training.dataset import Corpus, lines_of, read_corpus
from seq2see.training.feeds import Feed, RowFeed, StreamFeed
from seq2see.training.film import FILM, Film
from seq2see.training.fine_tuning import carried_over
from seq2see.training.reports import METRICS, Listener, Report, TensorBoard, keep_rows, samples_of
from seq2see.training.trainer import CHECKPOINTS, Trainer

# ---------------- Before the first update

SAID_EVERY = 10.0

Say = Callable[[str], None]


def read_once(bundle: Bundle, train: Dataset, dev: Sequence[Mapping[str, str]], say: Say) -> None:
    """Every file of train and dev, in their order."""

    def files(name: str, field: MediaField) -> Iterator[str]:
        yield from (field.file(field.value(train.stores[name][row])) for row in range(len(train)))
        yield from (field.file(row[name]) for row in dev)

    keep_features(bundle, files, _Speed(say))


class _Speed:
    """Says how far it is and how fast, at most every few seconds and at the end."""

    def __init__(self, say: Say):
        self._say, self._began, self._said = say, time.perf_counter(), time.perf_counter()

    def __call__(self, name: str, done: int, of: int) -> None:
        now = time.perf_counter()
        if now - self._said > SAID_EVERY or done == of:
            self._said = now
            speed = done / max(now - self._began, 1e-9)
            self._say(f"'{name}': {done:,} of {of:,} files read by the frozen network, {speed:.0f} a second")


# ---------------- Whether a model can be trained in the memory there is

BYTES = 4
GIGABYTE = 1e9
SIZES = ("size", "layers", "readout", "positions", "filters", "feedforward", "longest", "pooling_size")
SHOWN = 3
HUGE = 1 << 31


def check_fits(recipe: Recipe, fields: Fields) -> None:
    """Refuse a model whose weights, gradients and optimiser's averages are more than the machine's whole memory.

    What a batch takes beside them is not known beforehand and not counted, so a model that passes may still be large.
    """
    memory = machine_memory()
    if memory is None:
        return
    each = BYTES * _copies(recipe)
    needed = _at_least(recipe) * each
    if needed <= memory:
        needed = parameters_of(recipe, fields) * each
    if needed > memory:
        raise UserError(
            f"the model is too large for this machine: training it takes at least {needed / GIGABYTE:,.0f} GB (weights,"
            f" gradients and what the optimizer keeps), and there are {memory / GIGABYTE:,.1f} GB; what makes it so"
            f" large: {', '.join(_largest(recipe, fields))}"
        )


def parameters_of(recipe: Recipe, fields: Fields) -> int:
    """How many numbers the model would learn; nothing is allocated to find out."""
    known = {recipe.vocabulary_owner(name): field.size for name, field in fields.all.items() if field.size}
    return total(of_recipe(recipe, known))[()]


def _at_least(recipe: Recipe) -> int:
    """A number of parameters that is never too large, for sizes that torch has no numbers for.

    The product of a layer with the state before it alone takes size * size; a size of billions counts at least itself.
    """
    readers = [recipe.encoder_of(name) for name in recipe.inputs if recipe.reader_of(name) == name]
    cells: list[CellSettings] = [settings for settings in readers if isinstance(settings, CellSettings)]
    if recipe.decoder.kind in ("recurrent", "transformer") and not recipe.output.one_step:
        cells.append(recipe.decoder)
    huge = sum(size for _, size in _sizes(recipe.to_dict()) if size > HUGE)
    return huge + sum(cell.layers * cell.size**2 for cell in cells)


def _copies(recipe: Recipe) -> int:
    """Numbers held for each parameter. (On a device of its own, only the weights are ever in this memory.)"""
    settings = recipe.training
    if settings.device.partition(":")[0] != "cpu":
        return 1
    if settings.optimizer == "sgd":
        return 3 if settings.momentum else 2
    return 4


def _largest(recipe: Recipe, fields: Fields) -> list[str]:
    """The keys with the largest numbers, as 'encoder.size 4,096'."""
    found = dict(_sizes(recipe.to_dict()))
    for name, field in fields.all.items():
        key = name if name == OUTPUT else f"inputs.{name}"
        found[f"{key}.vocabulary"] = field.size
    ordered = sorted(found, key=lambda key: -found[key])
    least = found[ordered[0]] // 10
    return [f"{key} {found[key]:,}" for key in ordered[:SHOWN] if found[key] >= least]


def _sizes(settings: Any, path: str = "") -> list[tuple[str, int]]:
    found = []
    for key, value in settings.items():
        inside = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            found += _sizes(value, inside)
        elif key in SIZES and isinstance(value, int):
            found.append((inside, value))
    return found


SOURCES, TABLES = "data.json", "data"
"""Where a run notes which tables it reads, and where those are written that were held in memory."""


@dataclass
class Sources:
    """Where a run's rows come from: remembered in its folder, so that --resume needs no other word.

    fine_tuned: the run began from another model's weights, which only its checkpoints still have.
    """

    data: str
    dev: str | None = None
    columns: list[str] | None = None
    fine_tuned: bool = False


def sources_of(
    recipe: Recipe, data: Data, dev: Data | None, columns: Sequence[str] | None, *, folder: Path
) -> tuple[Sources, dict[Path, bytes]]:
    """(where a run's rows come from, tables to write into its folder first: those of rows that are held in memory)."""
    if isinstance(columns, str):
        raise UserError(f"columns: expected a list of names, got the text '{columns}'")
    tables: dict[Path, bytes] = {}

    def path_of(given: Data, what: str, name: str) -> str:
        if is_path(given):
            return str(Path(given).resolve())
        path = folder.resolve() / TABLES / name
        tables[path] = lines_of(recipe, given, columns, what=what)
        return str(path)

    rows = path_of(data, "data", "train.jsonl")
    beside = None if dev is None else path_of(dev, "dev", "dev.jsonl")
    return Sources(rows, beside, list(columns) if columns else None), tables


def write_tables(tables: Mapping[Path, bytes]) -> None:
    for path, content in tables.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from None
        write_bytes(path, content)


def train(
    recipe: Recipe,
    sources: Sources,
    *,
    folder: Path,
    listeners: Sequence[Listener] = (),
    resume: bool = False,
    overwrite: bool = True,
    start: Bundle | None = None,
    tables: Mapping[Path, bytes] | None = None,
) -> Bundle:
    """Train and leave a model in `folder`, which no other process may write to meanwhile.

    overwrite: a run that lies there may go. start: a model to go on from (fine-tuning), whose vocabularies are kept;
    tables: to be written first (`sources_of`).
    """
    folder = Path(folder)
    if folder.is_file():
        raise UserError(f"--out {folder}: a file; a run needs a folder")
    with lock_folder(folder):
        if not resume and not overwrite:
            check_free(folder)
        if resume and not _begun(folder, sources):
            resume = False
            for listener in listeners:
                listener.on_message("no checkpoint yet: starting from the beginning")
        if not resume:
            sources = replace(sources, fine_tuned=start is not None)
        write_tables(tables or {})
        return _train(recipe, sources, folder=folder, listeners=listeners, resume=resume, start=start)


def _train(
    recipe: Recipe, sources: Sources, *, folder: Path, listeners: Sequence[Listener], resume: bool, start: Bundle | None
) -> Bundle:
    checkpoint, damaged = None, dict[Path, str]()
    if resume:  # before the rows are read and anything is written
        check_files(folder, free=RECIPE)
        checkpoint, damaged = recover_checkpoint(folder / CHECKPOINTS)
    settings = recipe.training
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = usable(settings.device, key="training.device")
    seed_everything(settings.seed)
    fields = Fields.load(folder, recipe) if resume else start.fields if start is not None else None
    measured, metric = followed(recipe)
    corpus = read_corpus(recipe, sources.data, dev=sources.dev, columns=sources.columns, fields=fields, folder=folder)
    recipe = corpus.recipe
    bundle = _bundle(recipe, corpus, start, fresh=not resume)
    earlier = TrainedRows.load(folder) if resume else start.trained if start is not None else None
    bundle.trained = corpus.trained.joined(earlier)
    bundle.network.to(device)
    if not resume:
        _clear(folder)
        write_bytes(
            folder / SOURCES, json.dumps(asdict(sources), ensure_ascii=False).encode("utf-8", "backslashreplace")
        )
        keep_rows(folder, recipe, corpus.dev)
    if not resume or recipe != load_recipe(folder / RECIPE) or RECIPE in changed_files(folder):
        bundle.save_setup(folder)
    listeners = [*listeners, TensorBoard(folder)] if settings.tensorboard else list(listeners)
    for message in [*notes(recipe), *corpus.notes, *bundle.notes]:
        for listener in listeners:
            listener.on_message(message)
    trainer = Trainer(
        bundle,
        _feed(corpus, recipe),
        lambda made: dev_report(made, corpus.dev, measured),
        metric=metric,
        folder=folder,
        listeners=listeners,
        prepare=partial(_prepare, bundle, corpus),
        film=Film(bundle, corpus.dev, folder=folder) if settings.film else None,
    )
    if checkpoint is not None:
        trainer.restore(checkpoint, damaged)
        checkpoint = None  # several times the size of the model
    trainer.run(resume=resume)
    return bundle


def _prepare(bundle: Bundle, corpus: Corpus, say: Say) -> None:
    """What is done once the weights are there, and before the first update."""
    if isinstance(corpus.train, Dataset):
        read_once(bundle, corpus.train, corpus.dev, say)


def check_free(folder: Path) -> None:
    """A run is never lost by mistake. One that was killed before its first checkpoint holds nothing to lose."""
    kept = [folder / WEIGHTS, *(folder / CHECKPOINTS).glob("*.safetensors")]
    if not (folder / SOURCES).exists():
        kept += [folder / RECIPE, folder / METRICS]
    if any(path.exists() for path in kept):
        raise UserError(
            f"{folder} holds a run already, and nothing was changed; --resume goes on with it, --out takes another "
            "folder, --overwrite begins anew"
        )


def resumable(folder: Path) -> tuple[Recipe, Sources]:
    """The recipe and sources of a run that was begun in this folder."""
    if not (folder / SOURCES).is_file() or not (folder / RECIPE).is_file():
        raise UserError(f"{folder}: nothing to resume; a run's folder holds {RECIPE}, {SOURCES} and {CHECKPOINTS}/")
    return load_recipe(folder / RECIPE, complete=True), known_sources(folder / SOURCES)


def _begun(folder: Path, sources: Sources) -> bool:
    """Whether there is a checkpoint to go on from; a UserError where a new start could not replace it."""
    if checkpoint_paths(folder / CHECKPOINTS):
        return True
    missing = f"{folder}: nothing to resume, there is no checkpoint in {CHECKPOINTS}/"
    if (folder / WEIGHTS).exists():
        raise UserError(f"{missing}, but a model, which a new start would replace; begin without --resume")
    if sources.fine_tuned:
        raise UserError(f"{missing}, and the run began from another model; begin without --resume and with --from")
    return False


def known_sources(path: Path) -> Sources:
    """What a run remembers of where its rows come from."""
    stored = read_json(path, most=MEBIBYTE, what="where a run's rows come from")
    try:
        return TypeAdapter(Sources).validate_python(stored, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, got = ".".join(map(str, first["loc"])), shortened(first["input"])
        raise UserError(
            f"{path}: damaged, it does not say where the rows come from: '{where}': {first['msg']}, got {got}"
        ) from None


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(abs(seed) % (1 << 32))  # noqa: NPY002 - libraries that draw from the old generator repeat too
    torch.manual_seed(seed)


def dev_report(bundle: Bundle, rows: Sequence[Mapping[str, str]], metrics: Sequence[str]) -> Report:
    """The dev part of a report: greedy outputs are enough to follow a run."""
    settings = bundle.recipe.training
    text = not bundle.recipe.output.one_step
    options = options_of(bundle.recipe, beam=1 if text else None)
    judged = judge([bundle], rows, options=options, most=settings.dev_rows, metrics=metrics)
    few = slice(settings.samples if judged.predictions else 0)
    samples = samples_of(bundle.recipe, judged.questions[few], judged.predictions[few], metrics=metrics)
    if not judged.predictions and text and settings.samples:
        samples = [{"input": "", "output": one.text or "", "reference": ""} for one in _drawn(bundle)]
    made = judged.report
    assigned = assign(bundle.baselines, list(made.metrics))
    says = {name: baseline.description for baseline, names in assigned.items() for name in names}
    return Report(
        update=0,
        epoch=0.0,
        seconds=0.0,
        loss=0.0,
        learning_rate=0.0,
        tokens_per_second=0.0,
        gradient_norm=0.0,
        dev=made.metrics,
        baseline=made.baseline,
        baseline_says=says,
        samples=samples,
    )


def _drawn(bundle: Bundle) -> list[Prediction]:
    most = min(80, bundle.recipe.search.max_length)
    return predict([bundle], [{}], options_of(bundle.recipe, sample=True, n_best=1, max_length=most))


def _bundle(recipe: Recipe, corpus: Corpus, start: Bundle | None, *, fresh: bool) -> Bundle:
    check_fits(recipe, corpus.fields)
    bundle = Bundle.create(recipe, corpus.fields, pretrained=fresh and start is None)
    if start is not None:
        fill(bundle.network, carried_over(bundle.network, start.network), path=Path("the model to go on from"))
    bundle.baselines = corpus.baselines
    return bundle


def _feed(corpus: Corpus, recipe: Recipe) -> Feed:
    if isinstance(corpus.train, Dataset):
        return RowFeed(corpus.train, recipe.training)
    return StreamFeed(corpus.train, recipe.training)


def _clear(folder: Path) -> None:
    """A folder for a new run: what an old one left goes, weights first, lest they meet another vocabulary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        old = [folder / name for name in (WEIGHTS, CHECKSUMS, METRICS, FILM)]
        for path in [*old, *(folder / CHECKPOINTS).glob("*.safetensors*")]:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
