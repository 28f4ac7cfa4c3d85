"""The best outputs found so far, for each input of the batch."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.search.history import Endings


class Pool:
    """Keeps the `best` highest scores of each input, best first, and where each output ended; -inf: nothing there."""

    def __init__(self, rows: int, *, best: int, device: torch.device):
        self.scores: Float[Tensor, "batch best"] = torch.full((rows, best), -torch.inf, device=device)
        self._steps = torch.zeros((rows, best), dtype=torch.long, device=device)
        self._candidates = torch.zeros((rows, best), dtype=torch.long, device=device)

    def add(self, inputs: Int[Tensor, " inputs"], scores: Float[Tensor, "inputs candidates"], *, step: int) -> None:
        """Candidates of this step whose score is not -inf have ended."""
        numbers = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
        merged = torch.cat([self.scores[inputs], scores], 1).topk(self.scores.shape[1], dim=1)
        self.scores[inputs] = merged.values
        self._steps[inputs] = _merge(self._steps[inputs], torch.full_like(numbers, step), merged.indices)
        self._candidates[inputs] = _merge(self._candidates[inputs], numbers, merged.indices)

    def endings(self, *, finished: bool) -> Endings:
        """Where all that is kept ended."""
        there = self.scores > -torch.inf
        inputs = torch.arange(len(there), device=there.device)[:, None].expand_as(there)[there]
        return Endings(inputs, self._steps[there], self._candidates[there], torch.full_like(inputs, finished).bool())


def _merge(old: Tensor, new: Tensor, order: Tensor) -> Tensor:
    return torch.cat([old, new], 1).gather(1, order)
