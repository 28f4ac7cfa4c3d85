"""Attention: scores, scopes, normalisers, choices and heads; each part works alone on plain tensors."""

from __future__ import annotations

from seq2see.attention.attention import Attention, Pooling
from seq2see.attention.build import AttentionSettings, build_attention
from seq2see.attention.choices import Choice, Hard, Soft, StraightThrough, choices
from seq2see.attention.heads import MultiHead, TwoLevelMultiHead
from seq2see.attention.normalisers import Normaliser, entmax15, masked_softmax, normalisers, sparsemax
from seq2see.attention.records import Candidates, Look, LookEquations, Prepared
from seq2see.attention.scopes import Global, LocalMonotonic, LocalPredicted, Scope, scopes
from seq2see.attention.scores import Score, build_score, register, scores
from seq2see.attention.self_attention import HeadNumbers, IntraAttention, SelfAttention
from seq2see.attention.two_level import TwoLevelAttention

__all__ = [
    "Attention",
    "AttentionSettings",
    "Candidates",
    "Choice",
    "Global",
    "Hard",
    "HeadNumbers",
    "IntraAttention",
    "LocalMonotonic",
    "LocalPredicted",
    "Look",
    "LookEquations",
    "MultiHead",
    "Normaliser",
    "Pooling",
    "Prepared",
    "Scope",
    "Score",
    "SelfAttention",
    "Soft",
    "StraightThrough",
    "TwoLevelAttention",
    "TwoLevelMultiHead",
    "build_attention",
    "build_score",
    "choices",
    "entmax15",
    "masked_softmax",
    "normalisers",
    "register",
    "scopes",
    "scores",
    "sparsemax",
]
