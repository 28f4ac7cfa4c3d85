"""Gradients of the three cells, with and without clipping: how far back they reach, and what the optimiser is given."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.data.batches import Labels, Sequences
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.faithful import embedded
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.cells import with_cell
from seq2see.settings.base import CELLS
from seq2see.training.dataset import Corpus, read_corpus
from seq2see.training.feeds import RowFeed
from seq2see.training.reports import Report
from seq2see.training.run import seed_everything
from seq2see.training.trainer import Trainer

# ---------------- How far back a loss is felt

Norms = Float[np.ndarray, " places"]


def gradients_through_time(bundle: Bundle, rows: Sequence[Mapping[str, str]]) -> list[Norms]:
    """For each row |d -log P(y_T) / d e(x_j)|, from the first symbol that was read to the last.

    The symbols are those of the first input that is text; a language model's are the ones it has written before.
    Gradients are taken at the embeddings, where what a step is told enters it: the way from there to the loss leads
    through all later steps, and nothing else does where the decoder looks at no place.
    """
    network = bundle.network
    network.eval()
    batch = bundle.fields.batch(rows, target=True).to(bundle.device)
    name = next(iter(bundle.recipe.texts), None)
    if name is None and bundle.recipe.inputs:
        raise UserError("gradients through time are taken at symbols, and this model reads none")
    with embedded(network, name) if name else _own(network.decoder) as vectors:
        step, ready = network.forward_batch(batch)
        target = batch.target
        if not isinstance(target, Sequences | Labels):
            raise UserError("gradients through time are those of -log P, and this model gives numbers")
        mask = torch.ones_like(target.ids, dtype=torch.bool) if isinstance(target, Labels) else target.mask
        given = network.head.target_scores(step, ready, target.ids, mask=mask)
    last = mask.view(len(rows), -1).sum(1).cumsum(0) - 1
    (slopes,) = torch.autograd.grad(-given[last].sum(), vectors)
    if slopes.ndim != 3 or len(slopes) != len(rows):
        raise UserError(f"'{name}' is a document, whose sentences are read each for itself: there is no one way back")
    real = batch.inputs[name].mask if name else mask
    norms: Tensor = slopes.norm(dim=-1)
    return [np.asarray(one[keep].double().cpu().numpy()) for one, keep in zip(norms, real, strict=True)]


def by_steps_back(norms: Sequence[Norms], *, least: int = 1) -> list[tuple[float, int]]:
    """(mean, rows) of the norms so many steps before the last symbol, from 0 on, as far as `least` rows reach.

    >>> by_steps_back([np.array([1.0, 4.0]), np.array([2.0])])
    [(3.0, 2), (1.0, 1)]
    """
    found: list[tuple[float, int]] = []
    for back in range(max(map(len, norms))):
        held = [float(row[-1 - back]) for row in norms if len(row) > back]
        if len(held) < least:
            break
        found.append((float(np.mean(held)), len(held)))
    return found


@contextmanager
def _own(decoder: nn.Module) -> Iterator[list[Tensor]]:
    """The vectors e(y) that a decoder reads, where gradients end."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, vectors: Tensor) -> Tensor:
        kept.append(vectors.detach().requires_grad_())
        return kept[-1]

    module = getattr(decoder, "embedding", None)
    if not isinstance(module, nn.Module):
        raise UserError("the decoder has no embedding that gradients could be taken of")
    hook = module.register_forward_hook(keep)
    try:
        yield kept
    finally:
        hook.remove()


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
        return sum(corpus.fields.all[name].read(row[name]).length for name in names)

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

    def on_update(self, status: object) -> None:
        """Told now and then; reports come at every update here."""

    def on_report(self, report: Report, metric: str) -> None:
        course, stepped = self.course, len(self.course.seen) > len(self.course.norms)
        course.norms.append(report.gradient_norm if stepped else math.nan)
        if not stepped:
            course.seen.append(math.nan)
        if report.update == self.last:
            self.course.through[report.update] = _felt(self.bundle, self.asked)

    def on_message(self, message: str) -> None:
        """What a run says of itself is not what is asked here."""

    def close(self) -> None:
        """Nothing is open."""
