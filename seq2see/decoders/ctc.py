"""Connectionist temporal classification (CTC) as an auxiliary loss: the output read off the places in their order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from seq2see.attention.scopes import WINDOWED
from seq2see.data.vocabulary import BLANK
from seq2see.errors import UserError
from seq2see.memory import Places, View


@dataclass
class CtcLoss:
    """total: -sum log P over the rows with enough places for their target; left_out: the number of other rows."""

    total: Float[Tensor, ""]
    left_out: int


class CtcHead(nn.Module):
    """P(y | h) = sum over z of prod_j P(z_j | h_j), P(z_j | h_j) = softmax(W_z h_j + b_z).

    z runs over all sequences of a symbol or blank for each place that give y once repetitions are merged and blanks
    dropped (Graves et al. 2006). Of a grid the columns are read, each the mean of its rows.
    """

    def __init__(self, view: View, symbols: int):
        super().__init__()
        if view.layout not in WINDOWED:
            raise UserError(f"loss.ctc: places laid out as {view.layout} do not follow one another; allowed: 0")
        self.W_z = nn.Linear(view.size, symbols)

    def log_probs(self, places: Places) -> tuple[Float[Tensor, "batch line symbols"], Bool[Tensor, "batch line"]]:
        """log P(z_j | h_j) of every symbol, blank first, and which places of the sequence are real."""
        states, mask = as_sequence(places)
        return torch.log_softmax(self.W_z(states).float(), dim=-1), mask

    def loss(
        self, places: Places, targets: Int[Tensor, "batch steps"], *, mask: Bool[Tensor, "batch steps"]
    ) -> CtcLoss:
        """targets: symbols without `<eos>`; mask: the real ones, which come first."""
        log_probs, real = self.log_probs(places)
        lengths, target_lengths = real.sum(1), mask.sum(1)
        enough = (lengths >= needed_places(targets, mask)) & (lengths > 0)
        if not bool(enough.any()):
            return CtcLoss(log_probs.sum() * 0, len(enough))
        total = ctc_loss(
            log_probs[enough].transpose(0, 1),
            targets[enough],
            lengths[enough],
            target_lengths[enough],
            blank=BLANK,
            reduction="sum",
        )
        return CtcLoss(total, int((~enough).sum()))


def needed_places(targets: Int[Tensor, "batch steps"], mask: Bool[Tensor, "batch steps"]) -> Int[Tensor, " batch"]:
    """The least number of places for a target: one for each symbol, and a blank between equal neighbours.

    >>> needed_places(torch.tensor([[5, 5, 6]]), torch.ones(1, 3, dtype=torch.bool))
    tensor([4])
    """
    twice = (targets[:, 1:] == targets[:, :-1]) & mask[:, 1:]
    return mask.sum(1) + twice.sum(1)


def as_sequence(places: Places) -> tuple[Float[Tensor, "batch line size"], Bool[Tensor, "batch line"]]:
    """States in a sequence, real ones first: the places themselves, or the mean of each column of a grid."""
    if places.layout.kind != "grid":
        return places.states, places.mask
    rows = places.layout.shape[0]
    states, mask = places.states.unflatten(1, (rows, -1)), places.mask.unflatten(1, (rows, -1))
    total = (states * mask[..., None]).sum(1)
    return total / mask.sum(1).clamp(min=1)[..., None], mask.any(1)
