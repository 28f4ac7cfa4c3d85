"""Search: greedy, beam and sampling, labels and numbers; each works alone on models and plain tensors."""

from __future__ import annotations

from seq2see.search.hypotheses import Hypothesis
from seq2see.search.models import ModelStepper, Source, TargetScore, evaluating, score_targets, search
from seq2see.search.one_step import classify, reconstruct
from seq2see.search.options import SearchOptions

__all__ = [
    "Hypothesis",
    "ModelStepper",
    "SearchOptions",
    "Source",
    "TargetScore",
    "classify",
    "evaluating",
    "reconstruct",
    "score_targets",
    "search",
]
