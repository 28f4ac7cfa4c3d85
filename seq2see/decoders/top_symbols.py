"""The likeliest symbols of a softmax output layer, with their log-probabilities.

A prediction wants a dozen of some thousand symbols. The product of few rows with V takes as long as reading V takes, so
V is first read in half precision. That product finds the candidates: every symbol that can be among the likeliest,
given the largest error of the rounding. A second product gives their logits in single precision, and what they change
in the sum of the softmax is corrected. So the symbols are those of single precision; what remains of the error is in
the unlikely symbols' share of that sum, about 1e-5 of a log-probability: as much as single precision is off itself.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.decoders.output_heads import SoftmaxHead
from seq2see.decoders.records import Ready

FEW_ROWS = 8
"""Rows up to which the product is faster in half precision: with more, computing takes longer than reading."""
SPARE = 8
"""Candidates beyond the number that is asked for."""
DEEP = 16
"""How many symbols share a column of the table of maxima, see `largest`."""

Top = tuple[Int[Tensor, "rows number"], Float[Tensor, "rows number"]]
"""Ids and log-probabilities, best first."""


def top_symbols(head: SoftmaxHead, read: Float[Tensor, "rows width"], ready: Ready, number: int) -> Top:
    """The `number` likeliest symbols of each row, or all where there are fewer; read: what V is multiplied with."""
    number = min(number, head.symbols)
    if len(read) <= FEW_ROWS and number + SPARE < head.symbols:
        found = _in_two_passes(head, read, ready, number)
        if found is not None:
            return found
    logits = ready.linear(read, head.V, head.c)
    return largest(torch.log_softmax(logits, dim=-1, out=logits), number)


def _in_two_passes(head: SoftmaxHead, read: Float[Tensor, "rows width"], ready: Ready, number: int) -> Top | None:
    """None where the candidates cannot be told, or V cannot be rounded."""
    rounded = None if ready.packed is None else ready.packed.rounded(head.V)
    if rounded is None:
        return None
    logits = rounded.linear(read, head.c)
    rough = torch.log_softmax(logits, dim=-1)
    candidates = rough.topk(number + SPARE)
    # of so few numbers NumPy's operations cost a fraction of torch's
    ids, first, x = candidates.indices.numpy(), candidates.values.numpy(), read.numpy()
    margin = 2 * rounded.error * np.sqrt(np.einsum("rw,rw->r", x, x))
    if not (first[:, -1] < first[:, number - 1] - margin).all():
        return None
    V, c = head.V.detach().numpy(), head.c.detach().numpy()
    normaliser = (logits[:, :1] - rough[:, :1]).numpy()
    exact = np.einsum("rnw,rw->rn", V[ids], x) + c[ids] - normaliser
    change = np.exp(first) * np.expm1(exact - first)
    log_probs = exact - np.log1p(change.sum(1, keepdims=True))
    order = np.argsort(-log_probs, axis=1)[:, :number]
    rows = np.arange(len(ids))[:, None]
    return torch.from_numpy(ids[rows, order]), torch.from_numpy(log_probs[rows, order])


def largest(log_probs: Float[Tensor, "rows symbols"], number: int) -> Top:
    """The likeliest symbols, found as `seq2see.search.top.likeliest` does it, on all threads."""
    rows, symbols = log_probs.shape
    columns = symbols // DEEP
    if rows <= FEW_ROWS or columns <= 2 * number:
        best = log_probs.topk(number)
        return best.indices, best.values
    table = log_probs[:, : columns * DEEP].view(rows, DEEP, columns)
    best_columns = table.amax(1).topk(number, sorted=False).indices
    ids = (best_columns[:, :, None] + torch.arange(0, columns * DEEP, columns)).flatten(1)
    rest = torch.arange(columns * DEEP, symbols).expand(rows, -1)
    ids = torch.cat([ids, rest], dim=1)
    best = log_probs.gather(1, ids).topk(number)
    return ids.gather(1, best.indices), best.values
