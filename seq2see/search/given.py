"""The probability of outputs that are given, all steps at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.model import EncoderDecoder
from seq2see.search.stepper import LEAST, at_rest


@dataclass
class Given:
    """log_probs: one for each token of the given output, `<eos>` included, or the one of its label."""

    log_probs: list[float]

    @property
    def total(self) -> float:
        return sum(self.log_probs)


def score_given(model: EncoderDecoder, batch: Batch, *, device: torch.device | str | None = None) -> list[Given]:
    """log P of each row's target, token by token: what a search would report, had it chosen these tokens."""
    if not batch.rows:
        return []
    with at_rest([model]):
        batch = batch if device is None else batch.to(device)
        step, ready = model.taught(batch)
        ids, real = _targets(batch)
        chosen = model.head.given(step, ready, ids, mask=real).clamp(min=LEAST)
        return [Given(row.double().tolist()) for row in chosen.split(real.view(len(batch.rows), -1).sum(1).tolist())]


def _targets(batch: Batch) -> tuple[Int[Tensor, "*shape"], Bool[Tensor, "*shape"]]:
    """Ids and which of them are real; a label is one target for each row."""
    if isinstance(batch.target, Sequences):
        return batch.target.ids, batch.target.mask
    if isinstance(batch.target, Labels):
        ids = batch.target.ids
        return ids, torch.ones_like(ids, dtype=torch.bool)
    raise ValueError("a batch without targets has nothing to score")
