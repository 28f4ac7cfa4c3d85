"""Gradients of the three cells, with and without clipping: how far back they reach, and what the optimiser is given."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2see.data.dataset import Dataset
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.through_time import by_steps_back, gradients_through_time
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.cells import CELLS, with_cell
from seq2see.training.corpus import Corpus, read_corpus
from seq2see.training.feeds import RowFeed
from seq2see.training.reports import Report
from seq2see.training.run import seed_everything
from seq2see.training.trainer import Trainer

METRIC = "perplexity"


@dataclass
class Course:
    """One cell, trained with gradients clipped to a norm (0: not at all).

    through: by the number of updates, the (mean norm, rows) of the gradient at each step back from the end of what was
    read; norms: of the whole gradient at each update, before clipping; seen: the same as the optimiser was given it.
    Both are NaN at an update whose gradient was not finite: the optimiser was given none.
    """

    cell: str
    clip: float
    through: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    norms: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)


def gradient_courses(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    data: str | Path,
    *,
    dev: str | Path | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    updates: int = 100,
    rows: int = 64,
) -> list[Course]:
    """Train the recipe with each cell, clipped (by the recipe's norm, or 1 where it has none) and not, from one seed.

    rows: so many of the dev rows, the longest ones, are asked how far back their last output is felt.
    """
    made = load_recipe(recipe, overrides=overrides)
    _check(made)
    recipes = {cell: with_cell(made, cell) for cell in CELLS}
    corpus = read_corpus(made, data, dev=dev, columns=columns)
    asked = _longest(corpus, rows)
    found = [Course(cell, clip) for cell in CELLS for clip in (made.training.clip or 1.0, 0.0)]
    for course in found:
        _run(_limited(recipes[course.cell], course.clip, updates), corpus, asked, course)
    return found


def _check(recipe: Recipe) -> None:
    """Refuse, before any row is read, what has no way through time."""
    if recipe.data.stream:
        raise UserError("gradients through time are taken of rows, and data.stream makes one text of them")
    if recipe.inputs and not recipe.texts:
        read = ", ".join(f"{name} ({one.kind})" for name, one in recipe.inputs.items())
        raise UserError(
            f"gradients through time are taken at symbols, and this recipe reads none: {read}; "
            "allowed: recipes with an input of text, and language models"
        )
    if recipe.output.numeric:
        raise UserError("gradients through time are those of -log P, and this recipe's model gives numbers")


def _longest(corpus: Corpus, number: int) -> list[Mapping[str, str]]:
    """The rows of dev in which there is most to read: gradients have the longest way there."""
    names = corpus.fields.inputs or [*corpus.fields.all]

    def length(row: Mapping[str, str]) -> int:
        return sum(corpus.fields.all[name].room(row[name]) for name in names)

    return sorted(corpus.dev, key=length, reverse=True)[:number]


def _limited(recipe: Recipe, clip: float, updates: int) -> Recipe:
    limits = {"updates": updates, "epochs": 0, "minutes": 0, "patience": 0, "average": 1, "report_every": 1}
    changes = {**limits, "clip": clip, "tensorboard": False, "metric": METRIC}
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=changes)})


def _run(recipe: Recipe, corpus: Corpus, asked: list[Mapping[str, str]], course: Course) -> None:
    """Train as ever, and watch: the loop reports every norm, a hook before each step of the optimiser what is left."""
    seed_everything(recipe.training.seed)
    bundle = Bundle.create(recipe, corpus.fields)
    course.through[0] = _felt(bundle, asked)
    assert isinstance(corpus.train, Dataset)
    with tempfile.TemporaryDirectory() as folder:
        feed, watch = RowFeed(corpus.train, recipe.training), _Watch(bundle, asked, course)
        trainer = Trainer(bundle, feed, _unjudged, metric=METRIC, folder=Path(folder), listeners=[watch])
        hook = trainer.optimizer.register_step_pre_hook(lambda *_: course.seen.append(_norm(bundle)))
        try:
            trainer.run()
        finally:
            hook.remove()


def _felt(bundle: Bundle, asked: list[Mapping[str, str]]) -> list[tuple[float, int]]:
    return by_steps_back(gradients_through_time(bundle, asked), least=max(1, len(asked) // 4))


def _norm(bundle: Bundle) -> float:
    slopes: list[Tensor] = [one.grad.norm() for one in bundle.network.parameters() if one.grad is not None]
    return float(torch.stack(slopes).norm())


def _unjudged(_bundle: Bundle) -> Report:
    """Nobody asks how good the model is here."""
    return Report(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, dev={METRIC: float("nan")})


class _Watch:
    """Writes norms down as they are reported, and after the last update how far back the loss is felt."""

    def __init__(self, bundle: Bundle, asked: list[Mapping[str, str]], course: Course):
        self.bundle, self.asked, self.course = bundle, asked, course
        self.last = bundle.recipe.training.updates

    def updated(self, **_: object) -> None:
        """Told now and then; reports come at every update here."""

    def reported(self, report: Report, metric: str) -> None:
        course, stepped = self.course, len(self.course.seen) > len(self.course.norms)
        course.norms.append(report.gradient_norm if stepped else math.nan)
        if not stepped:
            course.seen.append(math.nan)
        if report.update == self.last:
            self.course.through[report.update] = _felt(self.bundle, self.asked)

    def said(self, message: str) -> None:
        """What a run says of itself is not what is asked here."""

    def close(self) -> None:
        """Nothing is open."""
