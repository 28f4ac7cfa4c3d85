"""Inputs with one of their places left out.

For text that is the input without the symbol, not the symbol replaced by another: whatever is put in its place would
be an input of its own. What a place of another kind of column is without it is said by a function of its own here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from seq2see.data.batches import Sequences
from seq2see.errors import UserError


@singledispatch
def without(column: Any, places: Int[Tensor, " rows"]) -> Any:
    """A column of equal rows, each without the place of that number."""
    raise UserError(f"the places of such an input ({type(column).__name__}) cannot be left out one by one")


@without.register
def _(column: Sequences, places: Tensor) -> Sequences:
    rows, length = column.ids.shape
    if length < 2 or not bool(column.mask.all()):
        raise ValueError("equal rows of two symbols or more expected, with no padding")
    kept = torch.arange(length, device=column.ids.device) != places[:, None]
    symbols = None
    if column.symbols is not None:
        chosen = zip(column.symbols, places.tolist(), strict=True)
        symbols = [[*row[:place], *row[place + 1 :]] for row, place in chosen]
    copyable = column.copyable
    if copyable is not None:
        copyable = replace(copyable, ids=copyable.ids[kept].view(rows, -1))
    return Sequences(column.ids[kept].view(rows, -1), column.mask[kept].view(rows, -1), symbols, copyable)
