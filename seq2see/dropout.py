"""Dropout: of single numbers, of the same numbers at all steps of a sequence, of recurrent weights, of symbols.

Masks come from random bits, which on a CPU is much faster than torch's dropout, which draws number by number.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

DROPOUTS = ("dropout", "variational", "recurrent_dropout", "weight_drop", "symbol_dropout")
"""Keys of recipes that change no weight and no prediction: a model that is trained further may have others."""
LEVELS = 2**16
"""A number is kept or dropped by 16 random bits: its probability is exact to 1 / 65,536."""


def dropout(
    x: Float[Tensor, "*shape"], share: float, training: bool, *, alike: SequenceDropout | None = None, name: str = ""
) -> Float[Tensor, "*shape"]:
    """Set this share of the numbers to 0 and scale the others by 1 / (1 - share), while training.

    alike: drop the same numbers at all steps of x (rows, [steps,] size), those that this pass drops by that name.
    """
    if not training or not share:
        return x
    if alike is not None:
        return alike(x, share, name)
    if share >= 1 or x.device.type != "cpu":
        return functional.dropout(x, share)
    dropped: Tensor = _Dropout.apply(x, round(share * LEVELS))
    return dropped


class SequenceDropout:
    """What one pass over a batch drops alike at all its steps. Masks are drawn when they are first used, and kept by
    name for the pass: never on a module. All of this is for training alone.

    >>> dropped, x = SequenceDropout(), torch.ones(2, 5, 8)
    >>> bool((dropped(x, 0.5, "x") == dropped(x[:, :1], 0.5, "x")).all())
    True
    """

    def __init__(self) -> None:
        self._masks: dict[tuple[str, int, int], Tensor] = {}
        self._weights: dict[str, Tensor] = {}

    def __call__(
        self, x: Float[Tensor, "rows *steps size"], share: float, name: str
    ) -> Float[Tensor, "rows *steps size"]:
        """Dropout with one mask for each row, the same at all steps (variational or locked dropout)."""
        mask = self.mask(x, share, name)
        if mask is None:
            return x
        return x * (mask if x.dim() == mask.dim() else mask[:, None])

    def mask(
        self, like: Float[Tensor, "rows *steps size"], share: float, name: str
    ) -> Float[Tensor, "rows size"] | None:
        """0 for what is dropped of each row, 1 / (1 - share) for what is kept; None of a share of 0."""
        if not share:
            return None
        key = name, len(like), like.shape[-1]
        if key not in self._masks:
            self._masks[key] = dropout(like.new_ones(key[1:]), share, True)
        return self._masks[key]

    def weight(self, weight: Float[Tensor, "out width"], share: float, name: str) -> Float[Tensor, "out width"]:
        """The weight with a share of its numbers dropped, the same ones for all rows (weight drop, DropConnect)."""
        if not share:
            return weight
        if name not in self._weights:
            self._weights[name] = dropout(weight, share, True)
        return self._weights[name]


def replace_symbols(
    ids: Int[Tensor, "*rows"], share: float, training: bool, *, by: int, first: int
) -> Int[Tensor, "*rows"]:
    """This share of the symbols replaced by another one, while training; those below `first` are spared."""
    if not training or not share:
        return ids
    chosen = torch.rand(ids.shape, device=ids.device) < share
    return torch.where(chosen & (ids >= first), by, ids)


def _kept(x: Tensor, level: int) -> Bool[Tensor, "*shape"]:
    """True with probability 1 - level / LEVELS; drawn by torch's generator."""
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    return (bits.view(torch.int16)[: x.numel()] >= level - LEVELS // 2).view(x.shape)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, level: int) -> Tensor:
        kept = _kept(x, level).to(x.dtype)  # as numbers: two products with them take longer than the conversion
        ctx.save_for_backward(kept)
        ctx.scale = LEVELS / max(LEVELS - level, 1)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (grad * kept).mul_(ctx.scale), None
