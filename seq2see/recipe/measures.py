"""The metrics and baselines of a recipe: which it has, and which fit its output.

A metric that does not fit is refused with the recipe, not after hours of training when the first report is due. Names
that are not registered may belong to a plug-in that is loaded later; they are looked up when a run begins.
"""

from __future__ import annotations

from seq2see.evaluation import METRICS, baselines_for, default_metrics, metrics_for, registered_name
from seq2see.recipe.schema import Recipe
from seq2see.settings.columns import TextSettings

PERPLEXITY = "perplexity"
"""The metric that needs no predictions: the only one of a language model, and every model can be selected by it."""
AER = "aer"
"""The metric of attention, not of outputs: it needs a column of links."""


def measures_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first: those it names, or the default ones of its output."""
    if recipe.evaluation.metrics:
        return recipe.evaluation.metrics
    tokens = recipe.output.tokens if isinstance(recipe.output, TextSettings) else None
    return default_metrics(recipe.output.measured_as, tokens, inputs=bool(recipe.inputs))


def allowed_metrics(recipe: Recipe) -> list[str]:
    """The metrics that fit this recipe's output."""
    links = recipe.loss.alignment.column is not None
    return metrics_for(recipe.output.measured_as, inputs=bool(recipe.inputs), links=links)


def allowed_baselines(recipe: Recipe) -> list[str]:
    """The baselines that fit this recipe."""
    output = recipe.output
    return baselines_for(
        output.measured_as, inputs=bool(recipe.inputs), text=bool(recipe.texts), continued=output.continues
    )


def also_measured(recipe: Recipe) -> list[str]:
    """Further metrics that a model can be selected by: perplexity, where outputs have a probability."""
    return [] if recipe.output.numeric else [PERPLEXITY]


def fits(name: str, recipe: Recipe) -> bool:
    """Whether a metric can be taken of this recipe's model; one that is not known here may be of a plug-in."""
    registered = registered_name(name)
    return registered not in METRICS or registered in allowed_metrics(recipe)
