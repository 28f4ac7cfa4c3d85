"""The models a server has, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from time import monotonic
from typing import Any

from seq2see.api import Model, load
from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError, nearest
from seq2see.files import shortened
from seq2see.modalities.files import MediaField
from seq2see.pipeline.bundle import folders_of
from seq2see.pipeline.five_answers import answers_of
from seq2see.pipeline.predictor import why_no_looks
from seq2see.studio.counters import Counters
from seq2see.studio.dynamic_batching import Batcher
from seq2see.studio.examples import examples_of
from seq2see.studio.http import Refused
from seq2see.studio.media import MediaDecoder
from seq2see.studio.schemas import Invalid
from seq2see.studio.settings import Limits
from seq2see.studio.training_runs import Watched
from seq2see.training.reports import METRICS

FILES = ("image", "sound", "video")


@dataclass
class Served:
    """A model, its queue, and inputs to begin with; outside: files of such inputs that nobody has said may be shown;
    run: how it was trained, as far as its folder tells; media: decodes its files, where it reads any."""

    name: str
    model: Model
    batcher: Batcher
    examples: list[dict[str, str]] = field(default_factory=list)
    outside: list[Path] = field(default_factory=list)
    run: Watched | None = None
    media: MediaDecoder | None = None

    def summary(self) -> dict[str, Any]:
        """One entry of the list of models: enough to make an entry form of."""
        recipe = self.model.recipe
        output: dict[str, Any] = {"kind": recipe.output.kind}
        if recipe.output.kind == "label":
            output["labels"] = self.model.bundle.fields.output.vocabulary.symbols
        if recipe.output.kind == "text":
            output["tokens"] = getattr(recipe.output, "tokens", "word")
        return {
            "name": self.name,
            "task": recipe.task,
            "description": recipe.description,
            "inputs": [_input(name, settings) for name, settings in recipe.inputs.items()],
            "output": output,
            "attention": {
                "score": recipe.attention.score if recipe.looked_at else "none",
                "over": list(recipe.looked_at),
                "scope": recipe.attention.scope,
                "choice": recipe.attention.choice,
                "heads": recipe.attention.heads,
            }
            | ({} if recipe.looked_at else {"reason": why_no_looks(recipe)}),
            "search": recipe.search.model_dump(mode="json") if not recipe.output.one_step else {},
            "ensemble": len(self.model.bundles),
            "run": self.run is not None,
        }

    @cached_property
    def details(self) -> dict[str, Any]:
        """The summary with the five answers (of each model of an ensemble) and the examples."""
        answers = [answers_of(bundle) for bundle in self.model.bundles]
        told = [one.to_dict() | {"description": one.description, "text": one.text()} for one in answers]
        return self.summary() | {"answers": told, "examples": [self._example(n) for n in range(len(self.examples))]}

    def example_file(self, number: int, name: str) -> Path:
        """The file of an example, where it is still there."""
        column = self.model.bundle.fields.inputs[name]
        path = Path(column.file(self.examples[number][name]) if isinstance(column, MediaField) else "")
        if not path.is_file():
            raise Refused(404, f"example {number} of '{self.name}': the file of '{name}' is gone")
        return path

    def _example(self, number: int) -> dict[str, Any]:
        """A row that a client may ask about as it stands, or as {"example": number}; files are told by address."""
        row, inputs = self.examples[number], dict[str, Any]()
        for name, settings in self.model.recipe.inputs.items():
            file = settings.kind in FILES
            inputs[name] = {"file": Path(row[name]).name, "example": number} if file else row[name]
        kind = self.model.recipe.output.kind
        return {"example": number, "inputs": inputs} | ({"output": row[OUTPUT]} if kind in ("text", "label") else {})


class Shelf:
    """All models of a server; media: what decodes their files."""

    def __init__(self, models: Sequence[Served], media: MediaDecoder | None = None):
        self._models = {one.name: one for one in models}
        self.media = media

    def __iter__(self) -> Any:
        return iter(self._models.values())

    def named(self, name: str | None) -> Served:
        """The model of that name; the only one needs none."""
        names = ", ".join(self._models)
        if name is None:
            if len(self._models) > 1:
                raise Invalid(f"model: missing; allowed: {names}")
            return next(iter(self._models.values()))
        if name not in self._models:
            unknown = shortened(name, quotes=False)
            raise Refused(404, f"model: '{unknown}' is not served{nearest(name, self._models)}; allowed: {names}")
        return self._models[name]

    def run(self, name: str | None) -> Watched:
        """How that model was trained; not said: the first one of which it is known."""
        known = [one for one in self._models.values() if one.run is not None]
        served = known[0] if name is None and known else self.named(name)
        if served.run is None:
            why = (
                "an ensemble has no run of its own" if len(served.model.bundles) > 1 else f"its folder has no {METRICS}"
            )
            raise Refused(404, f"nothing was recorded of the training of '{served.name}': {why}")
        return served.run

    def health(self, patience: float) -> dict[str, Any]:
        """status: 'ok', 'overloaded' (a queue is full) or 'failing' (something does not work), with the reasons; what
        waits for each model and to be decoded, and what is being answered and decoded."""
        models = list(self._models.values())
        failing = {one.name: one.batcher.problem(patience) for one in models}
        full = {one.name: "too many inputs wait" if one.batcher.full else None for one in models}
        queues = {one.name: {"waiting": one.batcher.waiting, "running": one.batcher.running} for one in models}
        record: dict[str, Any] = {"models": list(self._models), "queues": queues}
        if self.media is not None:
            pool = self.media.pool
            failing["decoding"] = self.media.problem()
            full["decoding"] = "too many files wait" if pool.waiting >= pool.most_waiting else None
            counts = {"waiting": pool.waiting, "running": pool.running, "processes": pool.processes}
            record["decoding"] = counts
        problems = [f"{name}: {problem}" for name, problem in (*failing.items(), *full.items()) if problem]
        status = "failing" if any(failing.values()) else "overloaded" if problems else "ok"
        return {"status": status} | record | ({"problems": problems} if problems else {})

    def close(self, grace: float | None = None) -> None:
        """End all queues; grace: seconds for the batches that are being answered, together (None: all they need)."""
        until = None if grace is None else monotonic() + grace
        if self.media is not None:
            self.media.close()
        for one in self._models.values():
            one.batcher.stop()
        for one in self._models.values():
            one.batcher.close(None if until is None else max(until - monotonic(), 0.0))


def shelf_of(given: Sequence[str], limits: Limits, counters: Counters, *, files: Sequence[Path] = ()) -> Shelf:
    """Load models: FOLDER, NAME=FOLDER, or an ensemble FOLDER+FOLDER; files: folders whose files may be shown."""
    media = MediaDecoder(limits)
    folders = named(given).items()
    try:
        models = [
            serve(name, load(one), limits, counters, folder=one, files=files, media=media) for name, one in folders
        ]
    except BaseException:
        media.close()
        raise
    return Shelf(models, media)


def serve(
    name: str,
    model: Model,
    limits: Limits,
    counters: Counters,
    *,
    folder: str | None = None,
    files: Sequence[Path] = (),
    media: MediaDecoder,
) -> Served:
    """One model made ready for clients."""
    told = partial(counters.batch, name)
    batcher = Batcher(model.bundles, rows=limits.rows, padded=limits.padded, waiting=limits.waiting, told=told)
    made = Served(name, model, batcher, media=media if media.serve(model) else None)
    if folder is not None:
        first = Path(folders_of(folder)[0])
        with media.on_demand():
            found = examples_of(model, first, files)
        made.examples, made.outside = found.rows, found.outside
        run = Watched(name, first, answers=lambda: made.details["answers"][0])
        made.run = run if run.recorded and len(model.bundles) == 1 else None
    return made


def named(given: Sequence[str]) -> dict[str, str]:
    """{name: folder}: a folder's own name, or the one before =; names may not repeat.

    >>> named(["runs/translation", "hard=runs/other", "runs/a+runs/b"])
    {'translation': 'runs/translation', 'hard': 'runs/other', 'a+b': 'runs/a+runs/b'}
    """
    found: dict[str, str] = {}
    for one in given:
        name, sign, folder = one.partition("=")
        if not sign or Path(one).is_dir():
            name, folder = "+".join(Path(part).resolve().name for part in folders_of(one)), one
        if not name.strip() or "/" in name or not folder:
            raise UserError(f"{one}: expected FOLDER, or NAME=FOLDER with a name without /")
        if name in found:
            raise UserError(
                f"two models are called '{name}' ({found[name]} and {folder}); give one another name: NAME={folder}"
            )
        found[name] = folder
    return found


def _input(name: str, settings: Any) -> dict[str, Any]:
    told = {"name": name, "kind": settings.kind, "file": settings.kind in FILES}
    return told | {key: getattr(settings, key) for key in ("tokens", "max_length") if hasattr(settings, key)}
