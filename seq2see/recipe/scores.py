"""The scores a recipe may name and the settings each has: known without torch, held to the classes by a test."""

from __future__ import annotations

from collections.abc import Iterable

from seq2see.recipe.schema import AttentionSettings, Recipe

SCORES: dict[str, frozenset[str]] = {
    "dot": frozenset(),
    "scaled-dot": frozenset(),
    "cosine": frozenset({"learned_temperature"}),
    "general": frozenset(),
    "additive": frozenset({"size"}),
    "concat": frozenset({"size"}),
    "deep": frozenset({"size", "layers"}),
    "location": frozenset({"positions"}),
    "coverage": frozenset({"size", "filters", "kernel"}),
    "static": frozenset({"size"}),
    "uniform": frozenset(),
}

BUILT_IN = frozenset(SCORES)
"""Those that come with the package; plug-ins declare others."""

ORDERED = {"location", "coverage"}
"""Scores that go by where a place lies."""


LOOKING_BACK = {"coverage"}
"""Scores that go by where was looked before: at the only step of a label nothing was."""


def declare(name: str, options: Iterable[str], *, ordered: bool = False) -> None:
    """Let recipes name a score: called where a class is registered, so that a score of one's own can be asked for.

    options: what its constructor takes beyond the sizes. Those that are keys of `attention` are set there; the others
    are the score's alone, and set under `attention.options`. ordered: it goes by where a place lies.
    """
    SCORES[name] = frozenset(options)
    (ORDERED.add if ordered else ORDERED.discard)(name)


def goes_by_order(settings: AttentionSettings) -> bool:
    """Whether the score goes by where a place lies. What coverage sees through one place is that place alone."""
    return settings.score in ORDERED and not (settings.score == "coverage" and settings.kernel == 1)


def reading_scores() -> list[str]:
    """The scores by which an encoder may look back at its own states while it reads: where they lie is not known."""
    return [name for name in SCORES if name not in ORDERED]


def own_options(name: str) -> list[str]:
    """The options of a score that no key of a recipe stands for.

    >>> own_options("deep")
    []
    """
    return sorted(SCORES[name] - AttentionSettings.model_fields.keys())


def with_plugins(recipe: Recipe) -> bool:
    """Whether some part of the model is of a class that a plug-in brought."""
    encoders = [recipe.encoder_of(name) for name in recipe.inputs]
    scores = {recipe.attention.score, *(getattr(one, "self_attention", "none") for one in encoders)}
    own = recipe.decoder.own is not None or any(one.own is not None for one in encoders)
    return own or not scores <= BUILT_IN | {"none"}
