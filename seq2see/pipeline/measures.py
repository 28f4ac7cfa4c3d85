"""Which metrics a model is given: asked before a run begins, and again by whoever measures."""

from __future__ import annotations

from collections.abc import Sequence

from seq2see.errors import UserError
from seq2see.evaluation import check
from seq2see.recipe import Recipe
from seq2see.recipe.measures import AER, PERPLEXITY, allowed_metrics, also_measured, measures_of


def check_metrics(names: Sequence[str], recipe: Recipe, *, key: str = "metrics") -> None:
    """Refuse names that are unknown, given twice, or of metrics that cannot be taken; key: where the names stand."""
    try:
        check(names, recipe.output.measured_as)
    except UserError as error:
        raise UserError(f"{key}: {error}") from None
    if AER in names and recipe.loss.alignment.column is None:
        raise UserError(
            f"{key}: metric '{AER}' needs to know which word comes from which, and the recipe names no column of "
            "links; set loss.alignment.column (and loss.alignment.weight=0 to measure without learning from it)"
        )
    unasked = [name for name in names if name != PERPLEXITY] if not recipe.inputs else []
    if unasked:
        raise UserError(
            f"{key}: metric '{unasked[0]}' cannot be taken of a language model, which answers no input; "
            f"allowed: {', '.join(allowed_metrics(recipe))}"
        )


def metrics_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first."""
    names = measures_of(recipe)
    check_metrics(names, recipe, key="evaluation.metrics")
    return names


def followed(recipe: Recipe) -> tuple[list[str], str]:
    """(metrics of a run's reports, the one that picks the best model)."""
    names, chosen = metrics_of(recipe), recipe.training.metric
    if chosen is None:
        return names, names[0]
    check_metrics([chosen], recipe, key="training.metric")
    if chosen not in [*names, *also_measured(recipe)]:
        raise UserError(
            f"training.metric: '{chosen}' is not among evaluation.metrics ({', '.join(names)}); add it there"
        )
    return (names if chosen in names else [*names, chosen]), chosen
