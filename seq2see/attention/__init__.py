"""Attention: how a query looks at places; each part works alone on plain tensors."""

from __future__ import annotations

from seq2see.attention.attention import Attention, Look, Prepared
from seq2see.attention.normalisers import masked_softmax
from seq2see.attention.scores import Score, build_score, register, scores

__all__ = ["Attention", "Look", "Prepared", "Score", "build_score", "masked_softmax", "register", "scores"]
