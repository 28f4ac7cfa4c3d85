"""The output read off the places themselves, one after the other, with blanks between: an auxiliary to the decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from seq2see.errors import UserError
from seq2see.memory import Places, View

BLANK = 0
"""`<pad>` is never written, so its id is free to say: nothing here."""


@dataclass
class Along:
    """total: -sum log P over the rows whose places are enough for their target; left_out: the number of the others."""

    total: Float[Tensor, ""]
    left_out: int


class CtcHead(nn.Module):
    """P(y | h) = sum over z of prod_j P(z_j | h_j), P(z_j | h_j) = softmax(W_z h_j + b_z), over all z of a symbol or
    blank for each place that give y once repetitions are merged and blanks dropped (Graves et al. 2006).

    Of a grid the columns are read, each the mean of its rows.
    """

    def __init__(self, view: View, symbols: int):
        super().__init__()
        if view.layout not in ("tokens", "frames", "grid"):
            raise UserError(f"loss.ctc: places that lie as {view.layout} are not one after the other; allowed: 0")
        self.W_z = nn.Linear(view.size, symbols)

    def log_probs(self, places: Places) -> tuple[Float[Tensor, "batch line symbols"], Bool[Tensor, "batch line"]]:
        """log P(z_j | h_j) of every symbol, blank first, and which places of the line are real."""
        states, mask = as_sequence(places)
        return torch.log_softmax(self.W_z(states).float(), dim=-1), mask

    def loss(self, places: Places, targets: Int[Tensor, "batch steps"], *, mask: Bool[Tensor, "batch steps"]) -> Along:
        """targets: symbols without `<eos>`; mask: the real ones, which come first."""
        log_probs, real = self.log_probs(places)
        lengths, wanted = real.sum(1), mask.sum(1)
        enough = (lengths >= needed(targets, mask)) & (lengths > 0)
        if not bool(enough.any()):
            return Along(log_probs.sum() * 0, len(enough))
        total = ctc_loss(
            log_probs[enough].transpose(0, 1),
            targets[enough],
            lengths[enough],
            wanted[enough],
            blank=BLANK,
            reduction="sum",
        )
        return Along(total, int((~enough).sum()))


def needed(targets: Int[Tensor, "batch steps"], mask: Bool[Tensor, "batch steps"]) -> Int[Tensor, " batch"]:
    """Places a target takes at least: one for each symbol, and a blank between equal neighbours.

    >>> needed(torch.tensor([[5, 5, 6]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([4])
    """
    twice = (targets[:, 1:] == targets[:, :-1]) & mask[:, 1:]
    return mask.sum(1) + twice.sum(1)


def as_sequence(places: Places) -> tuple[Float[Tensor, "batch line size"], Bool[Tensor, "batch line"]]:
    """States one after the other, real ones first: as they are, or the mean of each column of a grid."""
    if places.layout.kind != "grid":
        return places.states, places.mask
    rows = places.layout.shape[0]
    states, mask = places.states.unflatten(1, (rows, -1)), places.mask.unflatten(1, (rows, -1))
    total = (states * mask[..., None]).sum(1)
    return total / mask.sum(1).clamp(min=1)[..., None], mask.any(1)
