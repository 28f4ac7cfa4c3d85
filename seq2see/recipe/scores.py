"""The scores a recipe may name and the settings each has: known without torch, held to the classes by a test."""

from __future__ import annotations

from collections.abc import Iterable

SCORES: dict[str, frozenset[str]] = {
    "dot": frozenset(),
    "scaled-dot": frozenset(),
    "cosine": frozenset({"temperature"}),
    "general": frozenset(),
    "additive": frozenset({"size"}),
    "concat": frozenset({"size"}),
    "deep": frozenset({"size", "layers"}),
    "location": frozenset({"positions"}),
    "static": frozenset({"size"}),
    "uniform": frozenset(),
}


def declare(name: str, options: Iterable[str]) -> None:
    """Let recipes name a score: called where a class is registered, so that a score of one's own can be asked for."""
    SCORES[name] = frozenset(options)
