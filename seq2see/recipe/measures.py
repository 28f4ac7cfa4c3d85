"""Metrics and trivial models a recipe may name, and what each is taken of: known here, held to the classes by a test.

A metric that cannot be taken would be missed only after hours of training, when the first report is due. Names that are
not in these tables may be of a user's own making; they are looked up when a run begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from seq2see.recipe.schema import Recipe
from seq2see.settings.base import TextSettings

Taken = Literal["label", "text", "any", "numbers"]
OUTPUTS: dict[str, tuple[Taken, ...]] = {
    "text": ("text", "any"),
    "label": ("label", "any"),
    "vector": ("numbers",),
    "image": ("numbers",),
}
"""What can be taken of each kind of output; any: of whatever has a probability."""

METRICS: dict[str, Taken] = {
    "accuracy": "label",
    "macro_f1": "label",
    "perplexity": "any",
    "aer": "text",
    "mse": "numbers",
    **dict.fromkeys(("exact", "exact@n", "cer", "wer", "crr", "wrr", "em", "f1", "token_accuracy", "recall"), "text"),
    **dict.fromkeys(("bleu", "bleu1", "bleu2", "bleu3", "bleu4", "chrf", "rouge1", "rouge2", "rougeL"), "text"),
    **dict.fromkeys(("cider", "distinct1", "distinct2"), "text"),
}
BASELINES: dict[str, Taken] = {
    "copy": "any",
    "lead": "any",
    "majority": "label",
    "bag-of-words": "label",
    "frequent": "any",
    "unigram": "text",
    "mean": "numbers",
}
READING = ("copy", "lead", "bag-of-words")
"""Trivial models that need an input of words."""

LANGUAGE_MODEL = "perplexity"
"""The one metric that needs no output of the model's own: all that can be taken of a model that has nothing to answer,
and what every model can be picked by."""


LOOKS = "aer"
"""The one metric of looks, not outputs: taken where the recipe names a column of links."""


LANGUAGE_BASELINE = "unigram"
"""The one trivial model that gives probabilities instead of outputs."""


def measures_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first: those it names, or those that fit its output."""
    if recipe.evaluation.metrics:
        return recipe.evaluation.metrics
    if recipe.output.kind == "label":
        return ["accuracy", "macro_f1"]
    if not isinstance(recipe.output, TextSettings):
        return ["mse"]
    if not recipe.inputs:
        return [LANGUAGE_MODEL]
    return ["exact", "cer"] if recipe.output.tokens in ("character", "symbol") else ["bleu", "chrf"]


def allowed(recipe: Recipe) -> list[str]:
    """The metrics that can be taken of this recipe's model."""
    if not recipe.inputs and recipe.output.kind == "text":
        return [LANGUAGE_MODEL]
    fitting = [name for name, taken in METRICS.items() if taken in OUTPUTS[recipe.output.kind]]
    return [name for name in fitting if name != LOOKS or recipe.loss.alignment.column is not None]


FORMS = "of texts also with _lc (capitals do not count) or _plain (nor does punctuation) behind it, as in bleu_plain"


def listed(names: Iterable[str]) -> str:
    """Names of metrics for a message, and the further forms that those of texts have."""
    known = list(names)
    texts = any(METRICS.get(name) == "text" for name in known)
    return f"{', '.join(known)}{f'; {FORMS}' if texts else ''}"


def baselines(recipe: Recipe) -> list[str]:
    """The trivial models that can stand beside this recipe's model."""
    if not recipe.inputs and recipe.output.kind == "text":
        return [LANGUAGE_BASELINE]
    fitting = [name for name, taken in BASELINES.items() if taken in OUTPUTS[recipe.output.kind]]
    return [name for name in fitting if recipe.texts or name not in READING]


def also_measured(recipe: Recipe) -> list[str]:
    """What a model can be picked by beside the metrics it is given: perplexity, where outputs have a probability."""
    return [] if recipe.output.numeric else [LANGUAGE_MODEL]


def unfit(recipe: Recipe) -> dict[str, str]:
    """{path: what is wrong} where a metric or a trivial model does not fit what the model gives."""
    found: dict[str, str] = {}
    names = measures_of(recipe)
    wrong = [name for name in names if not _fits(name, recipe)]
    if wrong:
        found["evaluation.metrics"] = _cannot(wrong, recipe)
    metric = recipe.training.metric
    if metric is not None and not _fits(metric, recipe):
        found["training.metric"] = _cannot([metric], recipe)
    elif metric is not None and metric not in (taken := [*names, *also_measured(recipe)]):
        listed = ", ".join(dict.fromkeys(taken))
        found["training.metric"] = f"'{metric}' is not among what is measured; add it to evaluation.metrics ({listed})"
    baseline = recipe.evaluation.baseline
    if baseline not in (None, "none", *baselines(recipe)):
        known = ", ".join([*baselines(recipe), "none"])
        found["evaluation.baseline"] = f"'{baseline}' is no trivial model of {_output(recipe)}; allowed: {known}"
    return found


def _fits(name: str, recipe: Recipe) -> bool:
    plain = name.removesuffix("_lc").removesuffix("_plain")
    plain = "exact@n" if plain.startswith("exact@") else plain
    return plain not in METRICS or plain in allowed(recipe)


def _cannot(names: list[str], recipe: Recipe) -> str:
    said = ", ".join(f"'{name}'" for name in names)
    return f"{said} cannot be taken of {_output(recipe)}; allowed: {listed(allowed(recipe))}"


def _output(recipe: Recipe) -> str:
    return recipe.output.said if recipe.inputs or recipe.output.kind != "text" else "a language model"
