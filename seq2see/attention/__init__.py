"""Attention: how a query looks at places; each part works alone on plain tensors."""

from __future__ import annotations

from seq2see.attention import scores as _coverage  # noqa: F401  registers its score
from seq2see.attention.attention import Attention, Pooling
from seq2see.attention.build import build_attention
from seq2see.attention.heads import MultiHead, TwoLevelMultiHead
from seq2see.attention.normalisers import NORMALISERS, entmax15, masked_softmax, sparsemax
from seq2see.attention.records import Candidates, Look, Prepared
from seq2see.attention.scores import Score, build_score, register, scores
from seq2see.attention.self_attention import IntraAttention, SelfAttention, intra_equations
from seq2see.attention.two_level import TwoLevelAttention
from seq2see.deferred_gradients import DeferredCache

__all__ = [
    "NORMALISERS",
    "Attention",
    "Candidates",
    "DeferredCache",
    "IntraAttention",
    "Look",
    "MultiHead",
    "Pooling",
    "Prepared",
    "Score",
    "SelfAttention",
    "TwoLevelAttention",
    "TwoLevelMultiHead",
    "build_attention",
    "build_score",
    "entmax15",
    "intra_equations",
    "masked_softmax",
    "register",
    "scores",
    "sparsemax",
]
