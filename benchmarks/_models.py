"""A model and a batch of the size of the shipped grapheme-to-phoneme recipe, on random symbols."""

from __future__ import annotations

import torch
from torch import Tensor

from seq2see.data.batches import Batch, Sequences
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe

SYMBOLS = 45


def model(*overrides: str, recipe: str = "grapheme-to-phoneme") -> EncoderDecoder:
    torch.manual_seed(1)
    return EncoderDecoder(load_recipe(recipe, overrides=list(overrides)), Sizes({"source": SYMBOLS}, SYMBOLS))


def batch(rows: int = 70, places: int = 9, steps: int = 8) -> Batch:
    torch.manual_seed(2)
    return Batch({"source": _symbols(rows, places)}, _symbols(rows, steps), list(range(rows)))


def _symbols(rows: int, length: int) -> Sequences:
    ids: Tensor = torch.randint(4, SYMBOLS, (rows, length))
    return Sequences(ids, torch.ones_like(ids, dtype=torch.bool))
