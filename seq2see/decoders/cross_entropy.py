"""The softmax cross entropy of an output layer, fused: -sum log softmax(V f + c)_y without a second copy of the logits.

Plain autograd keeps three tensors of (targets, symbols): logits, log-probabilities and their gradient. The gradient of
the sum is known as soon as the logits are, softmax(V f + c) - 1[y], so it takes their place while they are still in the
processor's cache. V is padded to a multiple of 16 rows: products with an odd number of them take up to 1.6 times as
long.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2see.deferred_gradients import autocast_to

BLOCK = 256
"""Rows of logits that are computed at a time: enough for a fast product, few enough to stay in the cache."""
MULTIPLE = 16


def linear_cross_entropy(
    features: Float[Tensor, "targets size"],
    weight: Float[Tensor, "symbols size"],
    bias: Float[Tensor, " symbols"],
    targets: Int[Tensor, " targets"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """sum over targets y of -(1 - smoothing) log P(y) - smoothing mean_k log P(k), P = softmax(weight f + bias).

    What torch's `cross_entropy(linear(features, weight, bias), targets, reduction="sum")` gives.
    """
    loss: Tensor = _LinearCrossEntropy.apply(features, weight, bias, targets, smoothing)
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        symbols = len(weight)
        columns = -(-symbols // MULTIPLE) * MULTIPLE
        rows = autocast_to(features)
        padded = rows.new_zeros(columns, weight.shape[1])
        padded[:symbols] = weight
        grads = rows.new_empty(len(rows), columns) if any(ctx.needs_input_grad) else None
        losses = [features.new_zeros((), dtype=torch.promote_types(bias.dtype, torch.float32))]
        for first in range(0, len(rows), BLOCK):
            part = slice(first, first + BLOCK)
            logits = (rows[part] @ padded.t())[:, :symbols] + bias
            loss, gradient = _losses(logits, targets[part], smoothing)
            losses.append(loss)
            if grads is not None:
                grads[part, :symbols] = gradient
                grads[part, symbols:] = 0
        ctx.symbols = symbols
        ctx.save_for_backward(features, padded, grads)
        return torch.stack(losses).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        features, padded, grads = ctx.saved_tensors
        scaled = (features * scale).to(grads.dtype)
        weight = (grads.t() @ scaled)[: ctx.symbols]
        bias = grads.sum(0, dtype=scale.dtype)[: ctx.symbols] * scale
        return (grads @ padded).to(features.dtype) * scale, weight.to(scale.dtype), bias, None, None


def _losses(
    logits: Float[Tensor, "rows symbols"], targets: Int[Tensor, " rows"], smoothing: float
) -> tuple[Float[Tensor, ""], Float[Tensor, "rows symbols"]]:
    """The sum of the losses, and its gradient with respect to the logits."""
    symbols = logits.shape[1]
    at = targets[:, None]
    gradient = torch.softmax(logits, dim=1)
    # log sum exp from the likeliest symbol, whose probability is at least 1 / symbols: exact where others underflow
    normaliser = logits.amax(1) - gradient.amax(1).log()
    wanted = (1 - smoothing) * logits.gather(1, at).squeeze(1)
    if smoothing:
        wanted = wanted + smoothing * logits.mean(1)
        gradient -= smoothing / symbols
    gradient.scatter_add_(1, at, gradient.new_full((), smoothing - 1).expand(at.shape))
    return (normaliser - wanted).sum(), gradient
