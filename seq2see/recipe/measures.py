"""The metrics and baselines of a recipe: which it has, and which fit its output.

A metric that does not fit is refused with the recipe, not after hours of training when the first report is due. Names
that are not registered may belong to a plug-in that is loaded later; they are looked up when a run begins.
"""

from __future__ import annotations

from seq2see.evaluation import METRICS, baselines_for, default_metrics, list_names, metrics_for, registered_name
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import TextSettings

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
    return baselines_for(recipe.output.measured_as, inputs=bool(recipe.inputs), text=bool(recipe.texts))


def also_measured(recipe: Recipe) -> list[str]:
    """Further metrics that a model can be selected by: perplexity, where outputs have a probability."""
    return [] if recipe.output.numeric else [PERPLEXITY]


def unfit(recipe: Recipe) -> dict[str, str]:
    """{path: problem} for metrics and a baseline that do not fit the output."""
    problems: dict[str, str] = {}
    names = measures_of(recipe)
    wrong = [name for name in names if not _fits(name, recipe)]
    if wrong:
        problems["evaluation.metrics"] = _cannot(wrong, recipe)
    metric = recipe.training.metric
    if metric is not None and not _fits(metric, recipe):
        problems["training.metric"] = _cannot([metric], recipe)
    elif metric is not None and metric not in (measured := [*names, *also_measured(recipe)]):
        known = ", ".join(dict.fromkeys(measured))
        problems["training.metric"] = (
            f"'{metric}' is not among what is measured; add it to evaluation.metrics ({known})"
        )
    baseline = recipe.evaluation.baseline
    if baseline not in (None, "none", *allowed_baselines(recipe)):
        known = ", ".join([*allowed_baselines(recipe), "none"])
        problems["evaluation.baseline"] = f"'{baseline}' is no trivial model of {_output(recipe)}; allowed: {known}"
    return problems


def _fits(name: str, recipe: Recipe) -> bool:
    registered = registered_name(name)
    return registered not in METRICS or registered in allowed_metrics(recipe)


def _cannot(names: list[str], recipe: Recipe) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"{listed} cannot be taken of {_output(recipe)}; allowed: {list_names(allowed_metrics(recipe))}"


def _output(recipe: Recipe) -> str:
    return recipe.output.said if recipe.inputs or recipe.output.one_step else "a language model"
