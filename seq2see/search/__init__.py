"""Search: greedy, beam and sampling, labels and numbers; each works alone on models and plain tensors."""

from __future__ import annotations

from seq2see.search.hypotheses import Hypothesis
from seq2see.search.one_step import classify, reconstruct
from seq2see.search.options import SearchOptions
from seq2see.search.run import TargetScore, score_targets, search
from seq2see.search.stepper import Source, Stepper, evaluating

__all__ = [
    "Hypothesis",
    "SearchOptions",
    "Source",
    "Stepper",
    "TargetScore",
    "classify",
    "evaluating",
    "reconstruct",
    "score_targets",
    "search",
]
