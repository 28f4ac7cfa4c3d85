"""Gradient norms through time, with and without clipping, for the plain cell, GRU and LSTM."""

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

from seq2see.cells import cells
from seq2see.data.batches import Labels, Sequences
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.faithful import embedding_leaves
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.dataset import Corpus, read_corpus
from seq2see.training.feeds import RowFeed
from seq2see.training.reports import Report
from seq2see.training.run import seed_everything
from seq2see.training.trainer import Trainer

Norms = Float[np.ndarray, " places"]


def gradients_through_time(bundle: Bundle, rows: Sequence[Mapping[str, str]]) -> list[Norms]:
    """For each row |d -log P(y_T) / d e(x_j)|, from the first symbol that was read to the last.

    The symbols are those of the first text input, or of a language model the earlier symbols of the output. Gradients
    are those of the embeddings: without attention, the only path from there to the loss leads through all later steps.
    """
    network = bundle.network
    network.eval()
    batch = bundle.fields.batch(rows, target=True).to(bundle.device)
    name = next(iter(bundle.recipe.texts), None)
    if name is None and bundle.recipe.inputs:
        raise UserError("gradients through time are taken at symbols, and this model reads none")
    with embedding_leaves(network, name) if name else _decoder_embeddings(network.decoder) as vectors:
        step, ready = network.forward_batch(batch)
        target = batch.target
        if not isinstance(target, Sequences | Labels):
            raise UserError("gradients through time are those of -log P, and this model gives numbers")
        mask = torch.ones_like(target.ids, dtype=torch.bool) if isinstance(target, Labels) else target.mask
        log_probs = network.head.target_scores(step, ready, target.ids, mask=mask)
    last = mask.view(len(rows), -1).sum(1).cumsum(0) - 1
    (slopes,) = torch.autograd.grad(-log_probs[last].sum(), vectors)
    if slopes.ndim != 3 or len(slopes) != len(rows):
        raise UserError(f"'{name}' is a document, whose sentences are encoded separately: there is no single path back")
    real = batch.inputs[name].mask if name else mask
    norms: Tensor = slopes.norm(dim=-1)
    return [np.asarray(row[keep].double().cpu().numpy()) for row, keep in zip(norms, real, strict=True)]


def by_steps_back(norms: Sequence[Norms], *, least: int = 1) -> list[tuple[float, int]]:
    """(mean norm, rows) at 0, 1, 2, ... steps before the last symbol, as long as there are `least` rows.

    >>> by_steps_back([np.array([1.0, 4.0]), np.array([2.0])])
    [(3.0, 2), (1.0, 1)]
    """
    means: list[tuple[float, int]] = []
    for back in range(max(map(len, norms))):
        values = [float(row[-1 - back]) for row in norms if len(row) > back]
        if len(values) < least:
            break
        means.append((float(np.mean(values)), len(values)))
    return means


@contextmanager
def _decoder_embeddings(decoder: nn.Module) -> Iterator[list[Tensor]]:
    """The embeddings e(y) that a decoder reads, as leaves of the gradient."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, vectors: Tensor) -> Tensor:
        kept.append(vectors.detach().requires_grad_())
        return kept[-1]

    module = getattr(decoder, "embedding", None)
    if not isinstance(module, nn.Module):
        raise UserError("the decoder has no embedding to take gradients of")
    hook = module.register_forward_hook(keep)
    try:
        yield kept
    finally:
        hook.remove()


METRIC = "perplexity"


@dataclass
class GradientRun:
    """One cell, trained with gradients clipped to a norm (0: not at all).

    through: by the number of updates, the (mean norm, rows) of the gradient at each step back from the last symbol;
    norms: of the whole gradient at each update, before clipping; seen: the same after clipping. Both are NaN at an
    update whose gradient was not finite.
    """

    cell: str
    clip: float
    through: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    norms: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)


def gradient_runs(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    data: str | Path,
    *,
    dev: str | Path | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    updates: int = 100,
    rows: int = 64,
) -> list[GradientRun]:
    """Train the recipe with each cell, clipped (by the recipe's norm, or 1 where it has none) and not, from one seed.

    rows: the number of dev rows, the longest ones, of which gradients through time are taken.
    """
    base = load_recipe(recipe, overrides=overrides)
    _check(base)
    recipes = {cell: with_cell(base, cell) for cell in cells}
    corpus = read_corpus(base, data, dev=dev, columns=columns)
    longest = _longest(corpus, rows)
    runs = [GradientRun(cell, clip) for cell in cells for clip in (base.training.clip or 1.0, 0.0)]
    for run in runs:
        _train(_limited(recipes[run.cell], run.clip, updates), corpus, longest, run)
    return runs


def _check(recipe: Recipe) -> None:
    """Refuse recipes without gradients through time, before any row is read."""
    if recipe.data.stream:
        raise UserError("gradients through time are taken of rows, and data.stream makes one text of them")
    if recipe.inputs and not recipe.texts:
        read = ", ".join(f"{name} ({column.kind})" for name, column in recipe.inputs.items())
        raise UserError(
            f"gradients through time are taken at symbols, and this recipe reads none: {read}; "
            "allowed: recipes with an input of text, and language models"
        )
    if recipe.output.numeric:
        raise UserError("gradients through time are those of -log P, and this recipe's model gives numbers")


def with_cell(recipe: Recipe, cell: str) -> Recipe:
    """The recipe with that cell in every recurrent part; options that the cell does not have are dropped.

    >>> with_cell(load_recipe("translation"), "lstm").decoder.cell
    'lstm'
    """
    settings = recipe.to_dict()
    parts = [column.get("encoder") or settings.get("encoder") or {} for column in settings["inputs"].values()]
    parts += [part["recurrent"] for part in parts if isinstance(part.get("recurrent"), dict)]
    parts += [] if recipe.decoder.own else [settings["decoder"]]
    recurrent = [part for part in parts if "cell" in part]
    if not recurrent:
        raise UserError("the recipe has no recurrent cell: neither its encoders nor its decoder read step by step")
    for part in recurrent:
        for option in cells.settings[part["cell"]].model_fields:
            if option not in cells.settings[cell].model_fields:
                part.pop(option, None)
        part["cell"] = cell
    return load_recipe(settings)


def _longest(corpus: Corpus, number: int) -> list[Mapping[str, str]]:
    """The longest rows of dev."""
    names = corpus.fields.inputs or [*corpus.fields.all]

    def length(row: Mapping[str, str]) -> int:
        return sum(corpus.fields.all[name].read(row[name]).length for name in names)

    return sorted(corpus.dev, key=length, reverse=True)[:number]


def _limited(recipe: Recipe, clip: float, updates: int) -> Recipe:
    limits = {"updates": updates, "epochs": 0, "minutes": 0, "patience": 0, "average": 1, "report_every": 1}
    changes = {**limits, "clip": clip, "tensorboard": False, "metric": METRIC}
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=changes)})


def _train(recipe: Recipe, corpus: Corpus, rows: list[Mapping[str, str]], run: GradientRun) -> None:
    """Train, and record norms: the trainer reports them before clipping, a hook of the optimiser after it."""
    seed_everything(recipe.training.seed)
    bundle = Bundle.create(recipe, corpus.fields)
    run.through[0] = _through_time(bundle, rows)
    assert isinstance(corpus.train, Dataset)
    with tempfile.TemporaryDirectory() as folder:
        feed, listener = RowFeed(corpus.train, recipe.training), _NormListener(bundle, rows, run)
        trainer = Trainer(bundle, feed, _no_evaluation, metric=METRIC, folder=Path(folder), listeners=[listener])
        hook = trainer.optimizer.register_step_pre_hook(lambda *_: run.seen.append(_norm(bundle)))
        try:
            trainer.run()
        finally:
            hook.remove()


def _through_time(bundle: Bundle, rows: list[Mapping[str, str]]) -> list[tuple[float, int]]:
    return by_steps_back(gradients_through_time(bundle, rows), least=max(1, len(rows) // 4))


def _norm(bundle: Bundle) -> float:
    gradients = [parameter.grad for parameter in bundle.network.parameters() if parameter.grad is not None]
    return float(torch.stack([gradient.norm() for gradient in gradients]).norm())


def _no_evaluation(_bundle: Bundle) -> Report:
    """A report without metrics, which are not needed here."""
    return Report(0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, dev={METRIC: float("nan")})


class _NormListener:
    """Records norms as they are reported, and after the last update the gradients through time."""

    def __init__(self, bundle: Bundle, rows: list[Mapping[str, str]], run: GradientRun):
        self.bundle, self.rows, self.run = bundle, rows, run
        self.last = bundle.recipe.training.updates

    def on_update(self, status: object) -> None:
        """Reports come at every update here."""

    def on_report(self, report: Report, metric: str) -> None:
        run, stepped = self.run, len(self.run.seen) > len(self.run.norms)
        run.norms.append(report.gradient_norm if stepped else math.nan)
        if not stepped:
            run.seen.append(math.nan)
        if report.update == self.last:
            run.through[report.update] = _through_time(self.bundle, self.rows)

    def on_message(self, message: str) -> None:
        """Messages of the run are not shown."""

    def close(self) -> None:
        """Nothing to close."""
