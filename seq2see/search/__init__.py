"""Search: what a model says of its inputs, by the likeliest symbol, a beam or the dice; built of small parts."""

from __future__ import annotations

from seq2see.search.hypotheses import Hypothesis
from seq2see.search.one_step import classify, reconstruct
from seq2see.search.options import SearchOptions
from seq2see.search.run import Given, score_targets, search
from seq2see.search.stepper import Source, Stepper, evaluating

__all__ = [
    "Given",
    "Hypothesis",
    "SearchOptions",
    "Source",
    "Stepper",
    "classify",
    "evaluating",
    "reconstruct",
    "score_targets",
    "search",
]
