"""The models of a server by name: loading them, describing them, their examples, their health."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

from seq2see.api import Model, load
from seq2see.data.columns import OUTPUT
from seq2see.data.tables import configured_folder
from seq2see.errors import UserError, nearest
from seq2see.files import MEBIBYTE, read_json, shortened
from seq2see.modalities.files import FileField
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, folders_of
from seq2see.pipeline.five_answers import answers_of
from seq2see.pipeline.language_models import language_model_of
from seq2see.pipeline.nearest_rows import has_index
from seq2see.pipeline.packing import SUFFIX, Stamp, file_stamp, model_folder
from seq2see.pipeline.predictor import options_of, why_no_looks
from seq2see.pipeline.weights import CHECKSUMS
from seq2see.recipe import Recipe
from seq2see.studio.dynamic_batching import Batcher
from seq2see.studio.http import InvalidRequest, RequestError
from seq2see.studio.limits import Limits
from seq2see.studio.media import MediaDecoder
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.training_runs import TrainingRun
from seq2see.training.checkpoints import SOURCES
from seq2see.training.dataset import open_table
from seq2see.training.reports import METRICS, MOST_EXAMPLES, file_names, kept_examples, reported_examples

Record = dict[str, Any]
Row = dict[str, str]


@dataclass
class ServedModel:
    """A model with its queue and its examples.

    outside: files of examples that may not be shown; run: its training, where its folder has a record of it; media:
    decodes its files, None where it reads none."""

    name: str
    model: Model
    batcher: Batcher
    examples: list[Row] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)
    run: TrainingRun | None = None
    media: MediaDecoder | None = None
    requests: int = 0
    """Requests that it is answering; see `ModelRepository.lease`."""

    def summary(self) -> Record:
        """One entry of the list of models: what a page needs for its form."""
        recipe = self.model.recipe
        output: Record = {"kind": recipe.output.kind, "column": recipe.output.column or OUTPUT}
        if recipe.output.classes:
            output["labels"] = self.model.bundle.fields.output.vocabulary.symbols
        if not recipe.output.one_step:
            output["tokens"] = getattr(recipe.output, "tokens", "word")
        return {
            "name": self.name,
            "task": recipe.task,
            "description": recipe.description,
            "inputs": [_describe_input(name, settings) for name, settings in recipe.inputs.items()],
            "output": output,
            "attention": {
                "score": recipe.attention.score if recipe.looked_at else "none",
                "over": list(recipe.looked_at),
                "scope": recipe.attention.scope,
                "choice": recipe.attention.choice,
                "heads": recipe.attention.heads,
            }
            | ({} if recipe.looked_at else {"reason": why_no_looks(recipe)}),
            "search": _describe_search(recipe),
            "ensemble": len(self.model.bundles),
            "run": self.run is not None,
            "index": len(self.model.bundles) == 1 and has_index(self.model.bundle),
        }

    @property
    def details(self) -> Record:
        """The summary with the five answers (of each model of an ensemble) and the examples."""
        return self.summary() | self._answers_and_examples

    @cached_property
    def _answers_and_examples(self) -> Record:
        answers = [answers_of(bundle) for bundle in self.model.bundles]
        records = [answer.to_dict() | {"description": answer.description, "text": answer.text()} for answer in answers]
        examples = [self._describe_example(number) for number in range(len(self.examples))]
        return {"answers": records, "examples": examples}

    def example_file(self, number: int, name: str) -> Path:
        """The file of an example; 404 where it is gone."""
        column = self.model.bundle.fields.inputs[name]
        path = Path(column.file(self.examples[number][name]) if isinstance(column, FileField) else "")
        if not path.is_file():
            raise RequestError(404, f"example {number} of '{self.name}': the file of '{name}' is gone")
        return path

    def _describe_example(self, number: int) -> Record:
        """A row that a client may send as it is, or as {"example": number}; files have addresses, not contents."""
        row, inputs = self.examples[number], dict[str, Any]()
        for name, settings in self.model.recipe.inputs.items():
            inputs[name] = {"file": Path(row[name]).name, "example": number} if settings.file else row[name]
        output = {} if self.model.recipe.output.numeric else {"output": row[OUTPUT]}
        return {"example": number, "inputs": inputs} | output


def _describe_search(recipe: Recipe) -> Record:
    """The search settings, without the path of a language model, which is no client's business."""
    return {} if recipe.output.one_step else recipe.search.model_dump(mode="json", exclude={"language_model"})


def _describe_input(name: str, settings: Any) -> Record:
    """What the page needs to offer a field for an input."""
    record = {"name": name, "column": settings.column or name, "kind": settings.kind, "file": settings.file}
    more = ("tokens", "max_length", "noun", "media")
    return record | {key: getattr(settings, key) for key in more if hasattr(settings, key)}


class ModelRepository:
    """All models of a server; media: decodes their files."""

    def __init__(self, models: Sequence[ServedModel], media: MediaDecoder | None = None):
        self._models = {model.name: model for model in models}
        self._replaced: list[ServedModel] = []
        self._lock = threading.Lock()
        self.media = media
        self.version = 0
        """Grows with each model that is replaced."""

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(list(self._models.values()))

    def get(self, name: str | None) -> ServedModel:
        """The model of that name; a single model needs no name."""
        names = ", ".join(self._models)
        if name is None:
            if len(self._models) > 1:
                raise InvalidRequest(f"model: missing; allowed: {names}")
            return next(iter(self._models.values()))
        if name not in self._models:
            unknown = shortened(name, quotes=False)
            raise RequestError(404, f"model: '{unknown}' is not served{nearest(name, self._models)}; allowed: {names}")
        return self._models[name]

    @contextmanager
    def lease(self) -> Iterator[Lease]:
        """While inside, a model that the lease has found answers, even if it is replaced meanwhile."""
        lease = Lease(self)
        try:
            yield lease
        finally:
            if lease.served is not None:
                self.release(lease.served)

    def acquire(self, name: str | None) -> ServedModel:
        """`get`, counted as a request until `release`."""
        with self._lock:
            served = self.get(name)
            served.requests += 1
            return served

    def release(self, served: ServedModel) -> None:
        with self._lock:
            served.requests -= 1
        self._close_unused()

    def replace(self, served: ServedModel) -> None:
        """Serve this model from now on in place of the one of its name, which ends with its last request."""
        with self._lock:
            self._replaced.append(self._models[served.name])
            self._models[served.name] = served
            self.version += 1
        self._close_unused()

    def _close_unused(self) -> None:
        with self._lock:
            unused = [model for model in self._replaced if not model.requests]
            self._replaced = [model for model in self._replaced if model.requests]
        for model in unused:
            model.batcher.stop()

    def get_run(self, name: str | None) -> TrainingRun:
        """The training of that model; without a name: of the first model that has a record of it."""
        recorded = [model for model in self if model.run is not None]
        served = recorded[0] if name is None and recorded else self.get(name)
        if served.run is None:
            ensemble = len(served.model.bundles) > 1
            reason = "an ensemble has no run of its own" if ensemble else f"its folder has no {METRICS}"
            raise RequestError(404, f"nothing was recorded of the training of '{served.name}': {reason}")
        return served.run

    def health(self, timeout: float) -> Record:
        """status: 'ok', 'overloaded' (a queue is full) or 'failing', with the problems; and what waits and runs, for
        each model and for the decoders."""
        failing = {model.name: model.batcher.problem(timeout) for model in self}
        full = {model.name: "too many inputs wait" if model.batcher.full else None for model in self}
        queues = {model.name: {"waiting": model.batcher.waiting, "running": model.batcher.running} for model in self}
        record: Record = {"models": list(self._models), "queues": queues}
        if self.media is not None:
            pool = self.media.pool
            failing["decoding"] = self.media.problem()
            full["decoding"] = "too many files wait" if pool.waiting >= pool.queue_size else None
            record["decoding"] = {"waiting": pool.waiting, "running": pool.running, "processes": pool.processes}
        problems = [f"{name}: {problem}" for name, problem in (*failing.items(), *full.items()) if problem]
        status = "failing" if any(failing.values()) else "overloaded" if problems else "ok"
        return {"status": status} | record | ({"problems": problems} if problems else {})

    def close(self, grace: float | None = None) -> None:
        """Close all queues; grace: seconds for the batches in progress, together (None: as long as they need)."""
        deadline = None if grace is None else monotonic() + grace
        if self.media is not None:
            self.media.close()
        models = [*self, *self._replaced]
        for model in models:
            model.batcher.stop()
        for model in models:
            model.batcher.close(None if deadline is None else max(deadline - monotonic(), 0.0))


class Lease:
    """The model of one request, found once."""

    def __init__(self, repository: ModelRepository):
        self._repository = repository
        self.served: ServedModel | None = None

    def get(self, name: str | None) -> ServedModel:
        """The model of that name; the one that was found before where it has that name."""
        if self.served is None or name not in (None, self.served.name):
            before, self.served = self.served, self._repository.acquire(name)
            if before is not None:
                self._repository.release(before)
        return self.served


# ---------------------------------------------------------------- loading


def load_models(
    arguments: Sequence[str], limits: Limits, metrics: ServerMetrics, *, files: Sequence[Path] = ()
) -> ModelRepository:
    """Load models: FOLDER, NAME=FOLDER, or an ensemble FOLDER+FOLDER; files: folders whose files may be shown."""
    return ModelLoader(arguments, limits, metrics, files=files).load_all()


Fingerprint = tuple[Stamp | None, ...]


def fingerprint(model: str) -> Fingerprint:
    """What tells that a model was saved anew: inode, size and time of its weights, recipe and checksums, or of a packed
    model's file. A training writes other files all the time."""
    parts = [Path(part) for part in folders_of(model)]
    paths = [
        path
        for part in parts
        for path in ([part] if part.is_file() else [part / name for name in (WEIGHTS, RECIPE, CHECKSUMS)])
    ]
    return tuple(map(file_stamp, paths))


class ModelLoader:
    """Loads the models of a server: FOLDER, NAME=FOLDER, or an ensemble FOLDER+FOLDER; files: folders whose files may
    be shown.

    loaded: by name, the fingerprint of the folder before it was last loaded: what changes it meanwhile is noticed."""

    def __init__(
        self,
        arguments: Sequence[str],
        limits: Limits,
        metrics: ServerMetrics,
        *,
        files: Sequence[Path] = (),
        device: str = "cpu",
    ):
        self.device = device
        self.folders = parse_names(arguments)
        self.loaded: dict[str, Fingerprint] = {}
        self._limits, self._metrics, self._files = limits, metrics, files
        self._media = MediaDecoder(limits)

    def load_all(self) -> ModelRepository:
        try:
            models = [self.load(name) for name in self.folders]
        except BaseException:
            self._media.close()
            raise
        return ModelRepository(models, self._media)

    def load(self, name: str) -> ServedModel:
        """The model of that name, from its folder as it is now."""
        folder = self.folders[name]
        self.loaded[name] = fingerprint(folder)
        model = load(folder, device=self.device)
        return serve_model(
            name, model, self._limits, self._metrics, folder=folder, files=self._files, media=self._media
        )


def serve_model(
    name: str,
    model: Model,
    limits: Limits,
    metrics: ServerMetrics,
    *,
    folder: str | None = None,
    files: Sequence[Path] = (),
    media: MediaDecoder,
) -> ServedModel:
    """A model with a queue; folder: where its examples and its training run are. The language model of its search is
    loaded now, rather than with the first request."""
    language_model_of(model.bundle, options_of(model.recipe))
    batcher = Batcher(
        model.bundles,
        rows=limits.batch_rows,
        symbols=limits.batch_symbols,
        queue_size=limits.queue_size,
        on_batch=partial(metrics.count_batch, name),
        tracer=metrics.telemetry.tracer(name),
    )
    served = ServedModel(name, model, batcher, media=media if media.attach(model) else None)
    if folder is not None:
        first = model_folder(folders_of(folder)[0])
        try:
            with media.on_demand():
                examples = find_examples(model, first, files)
        except BaseException:
            batcher.stop()
            raise
        served.examples, served.outside = examples.rows, examples.outside
        run = TrainingRun(name, first, answers=lambda: served.details["answers"][0])
        served.run = run if run.recorded and len(model.bundles) == 1 else None
    metrics.watch_queue(name, lambda: batcher.waiting)
    return served


def parse_names(arguments: Sequence[str]) -> dict[str, str]:
    """{name: folder}: the folder's own name, or the one before =; names must differ.

    >>> parse_names(["runs/translation", "hard=runs/other", "runs/a+runs/b"])
    {'translation': 'runs/translation', 'hard': 'runs/other', 'a+b': 'runs/a+runs/b'}
    """
    folders: dict[str, str] = {}
    for argument in arguments:
        name, sign, folder = argument.partition("=")
        if not sign or Path(argument).exists():
            parts = [Path(part).resolve() for part in folders_of(argument)]
            name, folder = "+".join(part.name.removesuffix(SUFFIX) for part in parts), argument
        if not name.strip() or "/" in name or not folder:
            raise UserError(f"{argument}: expected FOLDER, or NAME=FOLDER with a name without /")
        if name in folders:
            raise UserError(
                f"two models are called '{name}' ({folders[name]} and {folder}); give one another name: NAME={folder}"
            )
        folders[name] = folder
    return folders


# ---------------------------------------------------------------- examples

READ_ROWS = 200
"""Rows of a table among which examples are looked for."""


@dataclass
class Examples:
    """rows: with distinct inputs by the recipe's names, and the output; outside, where there are no rows: files and
    tables that exist and may not be shown."""

    rows: list[Row] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)


def find_examples(model: Model, folder: Path, files: Sequence[Path] = ()) -> Examples:
    """Rows of the data that the model was evaluated on, as far as its folder still leads to them.

    A model's folder may come from a stranger. So files are read only from the folder itself, from the folder of data
    sets that SEQ2SEE_DATA names, and from folders that the user gives (`files`, the option --files); and only files
    that the model itself can read.
    """
    if not model.recipe.inputs:
        return Examples()
    roots = [root.resolve() for root in (folder, *files, *filter(None, [configured_folder()]))]
    finder = _ExampleFinder(model, folder, roots)
    for source in (finder.from_examples, finder.from_table, finder.from_report):
        try:
            allowed = [row for row in source() if finder.is_allowed(row)]
        except (UserError, OSError, ValueError, LookupError, AttributeError, TypeError):
            continue  # a model is complete without the data it was trained on
        if allowed:
            return Examples(allowed[:MOST_EXAMPLES])
    return Examples(outside=finder.outside)


@dataclass
class _ExampleFinder:
    """Looks for the examples of one model; roots: folders in which files may be, links resolved."""

    model: Model
    folder: Path
    roots: list[Path]
    outside: list[Path] = field(default_factory=list)

    def from_examples(self) -> list[Row]:
        rows = kept_examples(self.folder, [*self.model.recipe.inputs, OUTPUT])
        files = file_names(self.model.recipe)
        return [row | {name: str(self.folder / row[name]) for name in files} for row in rows]

    def from_table(self) -> list[Row]:
        """Rows of the table that the run names; runs of earlier versions keep no examples."""
        sources = read_json(self.folder / SOURCES, most=MEBIBYTE, what="the sources of a run")
        path = Path(sources.get("dev") or sources["data"])
        if not self._is_inside(path):
            return []
        fields = self.model.bundle.fields
        table, resolution = open_table(self.model.recipe, path, sources.get("columns"), fields=fields)
        resolution = replace(resolution, files=dict.fromkeys(resolution.files, _accept_file))
        rows: dict[tuple[str, ...], Row] = {}
        for row in islice(resolution.rows(table), READ_ROWS):
            inputs = tuple(row[name] for name in self.model.recipe.inputs)
            if all(value.strip() for value in inputs):
                rows.setdefault(inputs, self._row(row))
            if len(rows) == MOST_EXAMPLES:
                break
        return list(rows.values())

    def from_report(self) -> list[Row]:
        """Samples of the last report of the training."""
        return reported_examples(self.folder, list(self.model.recipe.inputs))

    def is_allowed(self, row: Row) -> bool:
        """Whether the files of a row may be shown, and the model can read all of it."""
        fields = self.model.bundle.fields.inputs
        paths = [Path(field.file(row[name])) for name, field in fields.items() if isinstance(field, FileField)]
        inside = [self._is_inside(path) for path in paths]
        return all(inside) and all(field.problem(row[name]) is None for name, field in fields.items())

    def _row(self, record: Mapping[str, Any]) -> Row:
        row = {name: record[name] for name in (*self.model.recipe.inputs, OUTPUT)}
        if not all(isinstance(value, str) for value in row.values()):
            raise ValueError("texts expected")
        return row

    def _is_inside(self, path: Path) -> bool:
        """Whether a file lies in one of the roots, links resolved; one that exists elsewhere is noted."""
        inside = any(path.resolve().is_relative_to(root) for root in self.roots)
        if not inside and path.exists():
            self.outside.append(path.absolute())
        return inside


def _accept_file(_path: str) -> None:
    """No problem is reported of a file that may not be opened yet."""
