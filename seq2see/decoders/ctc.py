"""Connectionist temporal classification (CTC) as an auxiliary loss: the output read off the places in their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
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

    @torch.no_grad()
    def where(
        self, places: Places, targets: Int[Tensor, "batch steps"], *, mask: Bool[Tensor, "batch steps"]
    ) -> Bool[Tensor, "batch steps places"]:
        """The places at which the likeliest z has each symbol, and their neighbours to both sides; of a grid all rows
        of these columns. None for rows with too few places. targets, mask: as for `loss`."""
        log_probs, real = self.log_probs(places)
        lengths = real.sum(1)
        enough = (lengths >= needed_places(targets, mask)) & (mask.sum(1) > 0)
        found = torch.zeros(*targets.shape, real.shape[1], dtype=torch.bool)
        for row in enough.nonzero().flatten().tolist():
            symbols = targets[row][mask[row]].cpu().numpy()
            path = likeliest_path(log_probs[row, : int(lengths[row])].cpu().numpy(), symbols)
            line = np.flatnonzero(path >= 0)
            for beside in (-1, 0, 1):
                found[row, path[line], (line + beside).clip(0, len(path) - 1)] = True
        found = found.to(real.device)
        rows = places.mask.shape[1] // real.shape[1]
        return found.repeat(1, 1, rows) & places.mask[:, None]


def likeliest_path(
    log_probs: Float[NDArray[np.float32], "line symbols"], target: Int[NDArray[np.int64], " steps"]
) -> Int[NDArray[np.int64], " line"]:
    """The step of the target that the likeliest z has at each place, -1 for a blank (Viterbi).

    >>> certain = np.log(np.array([[0.1, 0.8, 0.1], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32))
    >>> likeliest_path(certain, np.array([1, 2])).tolist()
    [0, -1, 1]
    """
    states = np.full(2 * len(target) + 1, BLANK)
    states[1::2] = target
    emitted = log_probs[:, states]
    skips = np.zeros(len(states), dtype=bool)  # a state that may follow the one two before it, over a blank
    skips[3::2] = target[1:] != target[:-1]
    scores = np.full(len(states), -np.inf, dtype=np.float64)
    scores[:2] = emitted[0, :2]
    moves = np.zeros(emitted.shape, dtype=np.int8)
    ways = np.full((3, len(states)), -np.inf)
    for place in range(1, len(emitted)):
        ways[0] = scores
        ways[1, 1:] = scores[:-1]
        ways[2, 2:] = np.where(skips[2:], scores[:-2], -np.inf)
        moves[place] = ways.argmax(0)
        scores = ways.max(0) + emitted[place]
    state = len(states) - 1 - int(scores[-2] > scores[-1])
    path = np.empty(len(emitted), dtype=np.int64)
    for place in range(len(emitted) - 1, -1, -1):
        path[place] = state // 2 if state % 2 else -1
        state -= int(moves[place, state])
    return path


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
