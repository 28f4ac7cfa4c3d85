"""A whole run, from a recipe and a table to a trained model in a folder."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from seq2see.data.dataset import Dataset
from seq2see.data.fields import Fields
from seq2see.data.output import unwritable, write_bytes
from seq2see.data.records import Data, is_path
from seq2see.data.trained_rows import TrainedRows
from seq2see.errors import UserError
from seq2see.evaluation.baselines import assign
from seq2see.files import MEBIBYTE, read_json, shortened
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, Bundle
from seq2see.pipeline.checksums import CHECKSUMS, changed_files, check_files
from seq2see.pipeline.devices import usable
from seq2see.pipeline.evaluator import judge
from seq2see.pipeline.measures import followed
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.weights import fill
from seq2see.recipe import Recipe, load_recipe, notes
from seq2see.training.capacity import check_fits
from seq2see.training.checkpoints import checkpoint_paths, recover_checkpoint
from seq2see.training.corpus import Corpus, lines_of, read_corpus
from seq2see.training.feeds import Feed, RowFeed, StreamFeed
from seq2see.training.film import FILM, Film
from seq2see.training.kept_rows import keep_rows
from seq2see.training.locking import alone
from seq2see.training.reading import Say, read_once
from seq2see.training.reports import METRICS, Listener, Report, TensorBoard
from seq2see.training.samples import samples_of
from seq2see.training.starting import carried_over
from seq2see.training.trainer import CHECKPOINTS, Trainer

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
    with alone(folder):
        if not resume and not overwrite:
            check_free(folder)
        if resume and not _begun(folder, sources):
            resume = False
            for listener in listeners:
                listener.said("no checkpoint yet: starting from the beginning")
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
            listener.said(message)
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
    text = bundle.recipe.output.kind == "text"
    options = options_of(bundle.recipe, beam=1 if text else None)
    judged = judge([bundle], rows, options=options, most=settings.dev_rows, metrics=metrics)
    few = slice(settings.samples if judged.predictions else 0)
    samples = samples_of(bundle.recipe, judged.questions[few], judged.predictions[few], metrics=metrics)
    if not judged.predictions and text and settings.samples:
        samples = [{"input": "", "output": one.text or "", "reference": ""} for one in _drawn(bundle)]
    made = judged.report
    said = {name: model.says for model, its in assign(bundle.baselines, list(made.metrics)).items() for name in its}
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
        baseline_says=said,
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
