"""A trained model with its vocabularies (`Bundle`), and what is done with it: predict, score, evaluate, explain."""

from __future__ import annotations
