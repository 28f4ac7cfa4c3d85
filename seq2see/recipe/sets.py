"""Sets: what follows where places lie in no order, and what has no meaning there."""

from __future__ import annotations

from typing import Any

from seq2see.modalities.set import SetInput
from seq2see.modalities.text import TextOutput
from seq2see.recipe.schema import Recipe
from seq2see.settings.attention import SCORES, CoverageSettings
from seq2see.settings.encoders import DeepSetsEncoderSettings, TransformerEncoderSettings

RHO = 2
"""Layers of rho where the summary is used and nothing is said."""


def completed(recipe: Recipe) -> Recipe:
    """Encoders made complete where they are silent: no positions in sets, and no rho behind a summary nobody uses.

    An encoder that reads other inputs too is left to these, and the set gets settings of its own.
    """
    for path, names in recipe.read_by.items():
        sets = [name for name in names if isinstance(recipe.inputs[name], SetInput)]
        settings = recipe.encoder_of(names[0])
        if isinstance(settings, DeepSetsEncoderSettings) and settings.summary_layers is None:
            layers = RHO if _summarised(recipe, names) else 0
            recipe = recipe.with_encoder(path, settings.model_copy(update={"summary_layers": layers}))
        if sets and isinstance(settings, TransformerEncoderSettings) and "positions" not in settings.model_fields_set:
            free = settings.model_copy(update={"positions": "none"})
            for changed in [path] if sets == names else [f"inputs.{name}.encoder" for name in sets]:
                recipe = recipe.with_encoder(changed, free)
    return recipe


def _summarised(recipe: Recipe, names: list[str]) -> bool:
    return bool({*recipe.started_by, *recipe.fed_every_step}.intersection(names))


def ordered(recipe: Recipe) -> list[str]:
    """'path: what is wrong' of every setting that would make the order of a set felt."""
    found = []
    for name, given in recipe.inputs.items():
        if isinstance(given, SetInput):
            found += _input(recipe, name, given)
    attention = recipe.attention
    for name in recipe.looked_at:
        if recipe.view_of(name)[1] != "set":
            continue
        if attention.scope != "global":
            found.append(
                f"attention.scope: {attention.scope} is a window of neighbours, and '{name}' is read as a set, "
                "which has none; allowed: global"
            )
        if attention.goes_by_order:
            found.append(f"attention.score: {_refused(recipe, name)}")
    return found


def _input(recipe: Recipe, name: str, given: SetInput) -> list[str]:
    found = []
    settings, path = recipe.encoder_of(name), recipe.encoder_path(name)
    if isinstance(settings, TransformerEncoderSettings) and settings.positions != "none":
        found.append(
            f"{path}.positions: {settings.positions} would give the elements of '{name}' an order, and a set has none; "
            "allowed: none"
        )
    if given.max_length:
        found.append(
            f"inputs.{name}.max_length: {given.max_length} would cut a set by the order it was written in; allowed: 0"
        )
    return found


def _refused(recipe: Recipe, name: str) -> str:
    settings = recipe.attention
    free = [score for score, one in SCORES.items() if not one.ordered]
    also = ", or attention.kernel 1" if isinstance(settings, CoverageSettings) and not recipe.output.one_step else ""
    return (
        f"{settings.score} goes by where a place lies, and '{name}' is read as a set, which has no order; "
        f"allowed: {', '.join([*free, 'none'])}{also}"
    )


def unlike(recipe: Recipe) -> list[str]:
    """Vocabularies that are shared by columns whose elements are told apart in different ways."""
    fields: dict[str, Any] = {f"inputs.{name}": given for name, given in recipe.texts.items()}
    fields |= {"output": recipe.output} if isinstance(recipe.output, TextOutput) else {}
    found = []
    for path, given in fields.items():
        if given.share not in recipe.inputs:
            continue
        here, there = _separator(given), _separator(recipe.inputs[given.share])
        if here != there:
            found.append(
                f"{path}.share: the separator is {_said(here)} here and {_said(there)} in {given.share}: must be the "
                "same"
            )
    return found


def _separator(given: Any) -> str | None:
    return given.separator if isinstance(given, SetInput) else None


def _said(separator: str | None) -> str:
    return "not given" if separator is None else repr(separator)
