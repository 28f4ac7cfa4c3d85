"""How far back a loss is felt: the gradient of the last output's loss at each symbol that was read before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.data.batches import Labels, Sequences
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.faithful import embedded

Norms = Float[np.ndarray, " places"]


def gradients_through_time(bundle: Bundle, rows: Sequence[Mapping[str, str]]) -> list[Norms]:
    """For each row |d -log P(y_T) / d e(x_j)|, from the first symbol that was read to the last.

    The symbols are those of the first input that is text; a language model's are the ones it has written before.
    Gradients are taken at the embeddings, where what a step is told enters it: the way from there to the loss leads
    through all later steps, and nothing else does where the decoder looks at no place.
    """
    network = bundle.network
    network.eval()
    batch = bundle.fields.batch(rows, target=True).to(bundle.device)
    name = next(iter(bundle.recipe.texts), None)
    if name is None and bundle.recipe.inputs:
        raise UserError("gradients through time are taken at symbols, and this model reads none")
    with embedded(network, name) if name else _own(network.decoder) as vectors:
        step, ready = network.taught(batch)
        target = batch.target
        if not isinstance(target, Sequences | Labels):
            raise UserError("gradients through time are those of -log P, and this model gives numbers")
        mask = torch.ones_like(target.ids, dtype=torch.bool) if isinstance(target, Labels) else target.mask
        given = network.head.given(step, ready, target.ids, mask=mask)
    last = mask.view(len(rows), -1).sum(1).cumsum(0) - 1
    (slopes,) = torch.autograd.grad(-given[last].sum(), vectors)
    if slopes.ndim != 3 or len(slopes) != len(rows):
        raise UserError(f"'{name}' is a document, whose sentences are read each for itself: there is no one way back")
    real = batch.inputs[name].mask if name else mask
    norms: Tensor = slopes.norm(dim=-1)
    return [np.asarray(one[keep].double().cpu().numpy()) for one, keep in zip(norms, real, strict=True)]


def by_steps_back(norms: Sequence[Norms], *, least: int = 1) -> list[tuple[float, int]]:
    """(mean, rows) of the norms so many steps before the last symbol, from 0 on, as far as `least` rows reach.

    >>> by_steps_back([np.array([1.0, 4.0]), np.array([2.0])])
    [(3.0, 2), (1.0, 1)]
    """
    found: list[tuple[float, int]] = []
    for back in range(max(map(len, norms))):
        held = [float(row[-1 - back]) for row in norms if len(row) > back]
        if len(held) < least:
            break
        found.append((float(np.mean(held)), len(held)))
    return found


@contextmanager
def _own(decoder: nn.Module) -> Iterator[list[Tensor]]:
    """The vectors e(y) that a decoder reads, where gradients end."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _given: object, vectors: Tensor) -> Tensor:
        kept.append(vectors.detach().requires_grad_())
        return kept[-1]

    module = getattr(decoder, "embedding", None)
    if not isinstance(module, nn.Module):
        raise UserError("the decoder has no embedding that gradients could be taken of")
    hook = module.register_forward_hook(keep)
    try:
        yield kept
    finally:
        hook.remove()
