"""The output that is most like all others that were found: of many ways to say it the one they agree on.

A caption that shares its phrases with most of the beam is right more often than the likeliest one, which may stand
alone (minimum Bayes risk, Kumar and Byrne 2004; consensus captions, Devlin et al. 2015).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from seq2see.search.hypothesis import Hypothesis

LONGEST = 4
"""Symbols of the longest phrases that are compared."""

Phrases = list[Counter[tuple[int, ...]]]


def by_agreement(hypotheses: Sequence[Hypothesis], temperature: float) -> list[Hypothesis]:
    """Finished ones before unfinished ones, each by its mean likeness to all, weighed by P ** (1 / temperature)."""
    if not hypotheses:
        return []
    phrases = [phrases_of(one.ids) for one in hypotheses]
    best = max(one.log_probability for one in hypotheses)
    weights = [math.exp((one.log_probability - best) / temperature) for one in hypotheses]
    agreement = [
        sum(weight * likeness(mine, other) for weight, other in zip(weights, phrases, strict=True)) for mine in phrases
    ]
    order = sorted(
        range(len(hypotheses)),
        key=lambda number: (hypotheses[number].finished, agreement[number], hypotheses[number].score),
        reverse=True,
    )
    return [hypotheses[number] for number in order]


def likeness(one: Phrases, other: Phrases) -> float:
    """The mean over lengths of F1 of the phrases that both have.

    >>> likeness(phrases_of([4, 5]), phrases_of([4, 5])), likeness(phrases_of([4]), phrases_of([5]))
    (1.0, 0.0)
    """
    shares = [
        2 * (mine & theirs).total() / (mine.total() + theirs.total())
        for mine, theirs in zip(one, other, strict=True)
        if mine or theirs
    ]
    return sum(shares) / len(shares) if shares else 1.0


def phrases_of(ids: Sequence[int]) -> Phrases:
    """How often each phrase of 1, 2, .. symbols occurs; `<eos>` is one of them, so that endings count too."""
    return [Counter(zip(*(ids[start:] for start in range(length)), strict=False)) for length in range(1, LONGEST + 1)]
