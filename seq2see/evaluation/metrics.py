"""Metrics by name: the front door of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from seq2see.errors import UserError, nearest
from seq2see.evaluation import labels, ngrams, strings  # noqa: F401 - importing them registers their metrics
from seq2see.evaluation.base import METRICS, Metric, Rows, Unit
from seq2see.recipe.measures import OUTPUTS, listed

Kind = Literal["text", "label", "vector", "image"]
_LOWERCASE, _PLAIN = "_lc", "_plain"


def lookup(name: str) -> Metric:
    """The metric of that name.

    `_lc` after the name of a text metric leaves case out, `_plain` punctuation too, on both sides; `exact@5` looks at
    five hypotheses.

    >>> lookup("bleu_lc").lowercase, lookup("cer").higher_is_better
    (True, False)
    """
    suffix = next((one for one in (_LOWERCASE, _PLAIN) if name.endswith(one)), "")
    base = name.removesuffix(suffix)
    kind = _known(name, "exact@n" if base.startswith("exact@") else base)
    if suffix and (kind.needs != "text" or not kind.cased):
        raise UserError(f"unknown metric '{name}': '{base}' does not look at letters, so it has no {suffix} form")
    return kind(base, lowercase=suffix == _LOWERCASE, plain=suffix == _PLAIN)


def _known(name: str, base: str) -> type[Metric]:
    if base not in METRICS:
        raise UserError(f"unknown metric '{name}'{nearest(base, METRICS)}; allowed: {listed(METRICS)}")
    return METRICS[base]


def higher_is_better(name: str) -> bool:
    """Whether a larger value of the metric is a better one."""
    return lookup(name).higher_is_better


def check(names: Sequence[str], kind: Kind) -> None:
    """Refuse names that are unknown, given twice, or not for this kind of output."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise UserError(f"metric '{name}' is asked for twice")
        if lookup(name).needs not in OUTPUTS[kind]:
            fitting = listed(other for other in METRICS if METRICS[other].needs in OUTPUTS[kind])
            raise UserError(f"metric '{name}' is not for an output of kind '{kind}'; allowed: {fitting}")


def default_metrics(kind: Kind, tokens: Unit | None = None, *, inputs: bool = True) -> list[str]:
    """What is measured where a recipe does not say, the leading one first; a language model has no inputs.

    >>> default_metrics("text", "symbol"), default_metrics("text", "word"), default_metrics("label")
    (['exact', 'cer'], ['bleu', 'chrf'], ['accuracy', 'macro_f1'])
    """
    if kind == "label":
        return ["accuracy", "macro_f1"]
    if kind != "text":
        return ["mse"]
    if not inputs:
        return ["perplexity"]
    return ["exact", "cer"] if tokens in ("character", "symbol") else ["bleu", "chrf"]


def measure(names: Sequence[str], rows: Rows) -> dict[str, float]:
    """Each metric over all rows, in the order asked for."""
    asked = [(name, lookup(name)) for name in names]
    return {name: metric.score(metric.view(rows)) for name, metric in asked}


def compute(
    names: Sequence[str],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    inputs: Sequence[str] | None = None,
    unit: Unit = "word",
    lowercase: bool = False,
    alternatives: Sequence[Sequence[str]] | None = None,
    targets: Sequence[Sequence[str]] | None = None,
    log_probabilities: Sequence[float] | None = None,
) -> dict[str, float]:
    """`measure` for those who have lists at hand and no `Rows` (which explains the arguments).

    Rates are fractions; BLEU, chrF and ROUGE go to 100.

    >>> compute(["exact", "cer"], ["ab", "cd"], [["ab", "abc"], ["ce"]], unit="character")
    {'exact': 0.5, 'cer': 0.25}
    """
    rows = Rows(
        predictions,
        references,
        inputs=inputs,
        unit=unit,
        alternatives=alternatives,
        targets=targets,
        log_probabilities=log_probabilities,
    )
    return measure(names, rows.lowercased() if lowercase else rows)
