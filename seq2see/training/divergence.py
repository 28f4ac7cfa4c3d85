"""Updates whose loss or gradient is no number: passed over one by one, and the end of a run that has nothing else."""

from __future__ import annotations

import math
from pathlib import Path

from torch import nn

from seq2see.errors import UserError
from seq2see.recipe.schema import AlignmentSettings, LossSettings, TrainingSettings
from seq2see.training.checkpoints import Standing
from seq2see.training.losses import Loss

MOST_IN_A_ROW = 20
"""A single update without a finite gradient is bad luck (a rare row); so many on end are weights that are lost."""

LARGEST_WEIGHT = 1e12
"""Far above any weight that was learned, and far enough below the largest number for sums of products."""


def culprit(loss: Loss, settings: LossSettings) -> str:
    """What of a loss is not finite: terms by their keys, -log P of the outputs, or nothing but the gradient."""
    wrong = [name for name, value in loss.terms.items() if not math.isfinite(value)]
    if wrong:
        return " and ".join(_term(name, settings) for name in wrong)
    if not math.isfinite(float(loss.total.detach())):
        return "-log P of the outputs"
    largest = max(loss.terms, key=lambda name: abs(loss.terms[name]), default=None)
    if largest is None or abs(loss.terms[largest]) < abs(float(loss.total.detach())) / 2:
        return "the gradient"
    return f"the gradient, most of which is of {_term(largest, settings)},"


def _term(name: str, settings: LossSettings) -> str:
    given = getattr(settings, name, None)
    weight = given.weight if isinstance(given, AlignmentSettings) else given
    return "the term of hard attention's draws" if weight is None else f"the term loss.{name} (weight {weight:g})"


def check_learned(standing: Standing, what: str) -> None:
    """A run that ends without a single step leaves the weights it began with: no model, whatever is measured of it."""
    if standing.finished and standing.updates and standing.passed_over >= standing.updates:
        raise UserError(
            f"nothing was learned: in {_all(standing.updates)} {what} was not finite, and no step was taken; there is "
            "no model"
        )


def _all(updates: int) -> str:
    return "the only update" if updates == 1 else f"all {updates:,} updates"


def passed_over(settings: TrainingSettings, standing: Standing, folder: Path, what: str) -> str | None:
    """Count an update in which no step was taken; what to say of it, or a UserError where there were too many on end.

    Only the first of several on end is told of.
    """
    standing.passed_over += 1
    standing.on_end += 1
    if standing.on_end >= MOST_IN_A_ROW:
        happened = f"{what} was not finite in {standing.on_end} updates on end, the last of them"
        raise UserError(_diverged(f"{happened} update {standing.updates + 1:,}", settings, standing, folder))
    if standing.on_end > 1:
        return None
    so_far = f" ({standing.passed_over:,} so far)" if standing.passed_over > 1 else ""
    return f"update {standing.updates + 1:,}: the loss or its gradient is not finite, no step was taken{so_far}"


def check_weights(network: nn.Module, settings: TrainingSettings, standing: Standing, folder: Path) -> None:
    """Weights that are no numbers, or that no product can be taken with, never recover: there is nothing to measure."""
    if not all(bool((parameter.abs() < LARGEST_WEIGHT).all()) for parameter in network.parameters()):
        happened = (
            f"after update {standing.updates:,} there are weights that are not finite, or above {LARGEST_WEIGHT:g}"
        )
        raise UserError(_diverged(happened, settings, standing, folder))


def _diverged(happened: str, settings: TrainingSettings, standing: Standing, folder: Path) -> str:
    clip = f"training.clip {settings.clip:g}" if settings.clip else "no clipping (training.clip 0)"
    advice = f"try training.learning_rate={settings.learning_rate / 10:g}"
    if not settings.clip or settings.clip > 1:
        advice += " or training.clip=1"
    kept = (
        f"the best model so far, of update {standing.best_update:,}, is kept in {folder}"
        if standing.best is not None
        else "there was no report before, so there is no model yet"
    )
    return (
        f"the run diverges: {happened}, with training.learning_rate {settings.learning_rate:g} and {clip}; "
        f"{advice}; {kept}"
    )
