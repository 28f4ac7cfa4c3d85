"""The scores a recipe may name and the settings each has: known without torch, held to the classes by a test."""

from __future__ import annotations

from collections.abc import Iterable

from seq2see.recipe.schema import AttentionSettings

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

BEYOND_CONTENT: set[str] = {"location", "coverage"}
"""Those that go by where places lie, or by earlier looks: no scores for states that are still being written."""


def declare(name: str, options: Iterable[str], *, content: bool = True) -> None:
    """Let recipes name a score: called where a class is registered, so that a score of one's own can be asked for.

    options: what its constructor takes beyond the sizes. Those that are keys of `attention` are set there; the others
    are the score's alone, and set under `attention.options`. content: it goes by what places hold and by nothing else.
    """
    SCORES[name] = frozenset(options)
    if content:
        BEYOND_CONTENT.discard(name)
    else:
        BEYOND_CONTENT.add(name)


def reading_scores() -> list[str]:
    """The scores by which an encoder may look back at its own states while it reads."""
    return [name for name in SCORES if name not in BEYOND_CONTENT]


def own_options(name: str) -> list[str]:
    """The options of a score that no key of a recipe stands for.

    >>> own_options("deep")
    []
    """
    return sorted(SCORES[name] - AttentionSettings.model_fields.keys())
