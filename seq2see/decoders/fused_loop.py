"""The loop over time of the common recurrent decoders as one function, with its gradient written by hand.

Step by step autograd records some forty operations for every symbol of a target. Here the same computation needs half
of them and keeps no graph; U s and W_q s are one product, and the gradients of all weights, and of the places, are one
large product each after the loop. `RecurrentDecoder.teach` uses it for a GRU or LSTM of one layer with soft attention
to all places of one input by one of the scores below; everything else goes step by step through the parts themselves.

Inside, tensors are (steps, batch, ...), and "state k" is the state after k steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from seq2see.attention import Attention, Prepared
from seq2see.attention.choices import Soft
from seq2see.attention.normalisers import Softmax, masked_softmax
from seq2see.attention.scopes import Global
from seq2see.attention.scores import Additive, Dot, General, ScaledDot
from seq2see.cell_loops import cell_loop
from seq2see.cells import GRU, LSTM, Cell, CellState
from seq2see.deferred_gradients import autocast_to
from seq2see.packed_weights import fixed_product

# --- Scores: the energies of one query for each row, forwards and backwards


class ScoreLoop(Protocol):
    """Energies (batch, places) of a query and their gradient; gradients of keys and weights are collected."""

    keys: Tensor

    def forward(self, query: Tensor) -> tuple[Tensor, Tensor]:
        """The energies, and what `backward` needs."""

    def backward(self, grad: Tensor, saved: Tensor) -> Tensor:
        """The gradient of the query."""

    def gradients(self) -> tuple[Tensor, Tensor | None]:
        """Those of the keys, and of v where there is one, summed over all steps of `backward`."""


class AdditiveLoop:
    """e_j = v' tanh(q + k_j), q being W_q s, up to a constant that softmax does not see.

    It is computed as 2 v' f_j, f_j = logistic(2 q + 2 k_j) = (1 + tanh(q + k_j)) / 2, since torch's logistic is several
    times as fast as its tanh. The derivative of tanh is 4 f (1 - f). Gradients of energies sum to zero over places, so
    that the constant adds nothing to that of v either.

    The f_j of a step are computed again on the way back: kept for all steps they would be by far the most that a batch
    needs, and fresh memory for them costs more than the logistic does.
    """

    def __init__(self, keys: Float[Tensor, "batch places size"], v: Float[Tensor, " size"]):
        self.keys, self.v, self._doubled, self._hidden = keys, v, 2 * keys, torch.empty_like(keys)
        self._by_keys, self._by_v = torch.zeros_like(keys), torch.zeros_like(v)

    def forward(self, query: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self._activate(query)
        return torch.mv(hidden.flatten(0, 1), 2 * self.v).view(hidden.shape[:2]), query.contiguous()

    def backward(self, grad: Tensor, saved: Tensor) -> Tensor:
        hidden = self._activate(saved)
        self._by_v.addmv_(hidden.flatten(0, 1).t(), grad.flatten())
        slopes = hidden.addcmul_(hidden, hidden, value=-1)
        self._by_keys.addcmul_(grad[..., None], slopes)
        return torch.bmm(grad[:, None], slopes).squeeze(1).mul_(4 * self.v)

    def _activate(self, query: Tensor) -> Tensor:
        """f of all places, in memory that the next call uses again."""
        return torch.add(self._doubled, query[:, None], alpha=2, out=self._hidden).sigmoid_()

    def gradients(self) -> tuple[Tensor, Tensor | None]:
        return self._by_keys * (4 * self.v), 2 * self._by_v


@dataclass
class DotLoop:
    """e_j = scale q . k_j, q being s"""

    keys: Float[Tensor, "batch places size"]
    scale: float = 1.0
    grads: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    def forward(self, query: Tensor) -> tuple[Tensor, Tensor]:
        return torch.bmm(query[:, None], self.keys.transpose(1, 2)).squeeze(1) * self.scale, query

    def backward(self, grad: Tensor, saved: Tensor) -> Tensor:
        grad = grad * self.scale
        self.grads.append((grad, saved))
        return torch.bmm(grad[:, None], self.keys).squeeze(1)

    def gradients(self) -> tuple[Tensor, Tensor | None]:
        grads, queries = (torch.stack(parts, dim=1) for parts in zip(*self.grads, strict=True))
        return torch.bmm(grads.transpose(1, 2), queries), None


# --- The whole loop


@dataclass
class LoopKind:
    """What the loop needs to know beside its tensors. current: a look follows the step, and enters the next one."""

    cell: type[GRU] | type[LSTM]
    current: bool
    scale: float = 1.0
    temperature: float = 1.0


def loop_kind(cells: list[Cell], attentions: Sequence[object], *, current: bool) -> LoopKind | None:
    """Of a decoder with these cells and attentions to its inputs; None where the loop cannot run it."""
    if len(cells) != 1 or len(attentions) != 1 or type(attentions[0]) is not Attention:
        return None
    cell, attention = cells[0], attentions[0]
    score = attention.score
    if type(attention.scope) is not Global or type(attention.normalise) is not Softmax:
        return None
    if type(attention.choice) is not Soft or type(score) not in (Additive, Dot, General, ScaledDot):
        return None
    scale = score.scale if isinstance(score, ScaledDot) else 1.0
    if type(cell) is LSTM:
        return LoopKind(LSTM, current, scale, attention.temperature)
    if type(cell) is GRU and cell.loops:
        return LoopKind(GRU, current, scale, attention.temperature)
    return None


@dataclass
class LoopOutput:
    """outputs: (batch, steps, size); contexts: (batch, steps, value); weights: (batch, steps, places); state: the
    last."""

    outputs: Float[Tensor, "batch steps size"]
    contexts: Float[Tensor, "batch steps value"]
    weights: Float[Tensor, "batch steps places"]
    state: CellState


def run_loop(
    kind: LoopKind,
    cell: Cell,
    attention: Attention,
    prepared: Prepared,
    projected: Float[Tensor, "batch steps gates"],
    start: CellState,
    context: Float[Tensor, "batch value"] | None = None,
    *,
    U: Float[Tensor, "gates size"] | None = None,
    dropped: Float[Tensor, "batch size"] | None = None,
) -> LoopOutput:
    """All steps; projected: W_y y_t + b (and what enters every step); context: the one before the first step, where
    looks follow steps; U: that of the cell with what is dropped of it; dropped: what s is multiplied with before U
    multiplies it, the same at all steps."""
    score = attention.score
    W_q, v = (score.W_q.weight, score.v.weight) if isinstance(score, Additive) else (None, None)
    low = autocast_to(cell.U[:0]).dtype
    with torch.autocast(cell.U.device.type, enabled=False):  # only products with weights are at low precision
        outputs, contexts, weights, *last = _Loop.apply(
            kind,
            low,
            prepared.mask,
            projected,
            prepared.keys,
            prepared.values,
            cell.W["c"],
            cell.U if U is None else U,
            cell.b_U if isinstance(cell, GRU) else None,
            W_q,
            v,
            context,
            dropped,
            *start,
        )
    return LoopOutput(outputs.transpose(0, 1), contexts.transpose(0, 1), weights.transpose(0, 1), tuple(last))


@dataclass
class _Looks:
    """Looks of one query for each row, forwards and backwards."""

    score: ScoreLoop
    values: Float[Tensor, "batch places value"]
    mask: Bool[Tensor, "batch places"]
    temperature: float

    def forward(self, query: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(context, weights, what `backward` needs)"""
        energies, saved = self.score.forward(query)
        weights = masked_softmax((energies / self.temperature)[:, None], self.mask)
        return torch.bmm(weights, self.values).squeeze(1), weights.squeeze(1), saved

    def backward(self, context: Tensor, by_weight: Tensor, weights: Tensor, saved: Tensor) -> Tensor:
        """The gradient of the query, from those of the context and of the weights."""
        grad = torch.bmm(context[:, None], self.values.transpose(1, 2)).squeeze(1) + by_weight
        grad = weights * (grad - (weights * grad).sum(1, keepdim=True))
        return self.score.backward(grad / self.temperature, saved)


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kind: LoopKind,
        low: torch.dtype,
        mask: Bool[Tensor, "batch places"],
        projected: Tensor,
        keys: Tensor,
        values: Tensor,
        W_c: Tensor,
        U: Tensor,
        b_U: Tensor | None,
        W_q: Tensor | None,
        v: Tensor | None,
        context: Tensor | None,
        dropped: Tensor | None,
        *start: Tensor,
    ) -> tuple[Tensor, ...]:
        gates, exact = len(U), start[0].dtype
        joint = (U if W_q is None else torch.cat([U, W_q])).to(low)  # U s and W_q s are one product
        W_c = W_c.to(low)
        by_state, by_context = _by_state(joint, gates, dropped), fixed_product(W_c)
        cell = cell_loop(b_U)
        looks = _looks(kind, keys.to(exact), v, values.to(exact), mask)
        state: CellState = start
        product = by_state(state[0])
        fed = context
        outputs, contexts, weights, entered, kept = [start[0]], [], [], [], list[tuple[Tensor, ...]]()
        for projection in projected.transpose(0, 1).to(exact, memory_format=torch.contiguous_format):
            if not kind.current:
                fed, weight, seen = looks.forward(_query(product, state[0], gates))
            assert fed is not None
            entered.append(fed)
            state, saved = cell.forward(by_context(fed).add_(projection), product[:, :gates], state)
            product = by_state(state[0])
            if kind.current:
                fed, weight, seen = looks.forward(_query(product, state[0], gates))
            outputs.append(state[0])
            contexts.append(fed)
            weights.append(weight)
            kept.append((weight, seen, *saved))
        ctx.kind, ctx.gates, ctx.steps, ctx.has_context = kind, gates, len(kept), context is not None
        ctx.types = projected.dtype, keys.dtype, values.dtype
        read = torch.cat(entered).to(low), torch.cat(outputs).to(low)
        shared = mask, looks.values, looks.score.keys, joint, W_c, *read, b_U, v, dropped
        ctx.save_for_backward(*shared, *(part for step in kept for part in step))
        last = (part.clone() for part in state)  # no output may be kept by its own graph
        return torch.stack(outputs[1:]), torch.stack(contexts), torch.stack(weights), *last

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, by_output: Tensor, by_context: Tensor, by_weight: Tensor, *state: Tensor
    ) -> tuple[Tensor | None, ...]:
        kind, gates, number = ctx.kind, ctx.gates, ctx.steps
        mask, values, keys, joint, W_c, entered, outputs, b_U, v, dropped, *kept = ctx.saved_tensors
        exact, batch, each = by_output.dtype, len(mask), len(kept) // number
        steps = [kept[first : first + each] for first in range(0, len(kept), each)]
        cell, looks = cell_loop(b_U), _looks(kind, keys, v, values, mask)
        # gradients that only products read are kept at their precision
        inputs = joint.new_empty(number, batch, gates)
        products, queries = (joint.new_empty(number + 1, batch, size) for size in (gates, len(joint) - gates))
        products[-1], queries[0 if kind.current else -1] = 0, 0  # no step uses these
        contexts = by_context.clone()
        through_U, through_q, through_c = (fixed_product(each.t()) for each in (joint[:gates], joint[gates:], W_c))

        def through_product(at: int) -> Tensor:
            """The gradient of a state that comes through U s."""
            return through_U(products[at]) if dropped is None else through_U(products[at]) * dropped

        def through(output: Tensor, at: int, query: Tensor) -> Tensor:
            """The gradient of a state: what it had, and what comes through its query and through U s and W_q s."""
            if len(joint) > gates:
                queries[at] = query
                query = through_q(queries[at])
            return output + query + through_product(at)

        for step in reversed(range(number)):
            weights, seen, *saved = steps[step]
            if kind.current:  # the look follows the step: its query is state step + 1
                query = looks.backward(contexts[step], by_weight[step], weights, seen)
                state = (through(state[0], step + 1, query), *state[1:])
            state = (state[0] + by_output[step], *state[1:])
            state = cell.backward(state, tuple(saved), inputs[step], products[step])
            fed = through_c(inputs[step])
            if not kind.current:
                contexts[step] += fed
                query = looks.backward(contexts[step], by_weight[step], weights, seen)
                state = (through(state[0], step, query), *state[1:])
            elif step:
                contexts[step - 1] += fed
        if kind.current:
            state = (state[0] + through_product(0), *state[1:])
        # what all steps share: one product each
        states = outputs
        if dropped is not None:
            states = (outputs.view(number + 1, batch, -1) * dropped).flatten(0, 1).to(outputs.dtype)
        by_W_c, by_U, by_W_q = (
            (grads.flatten(0, 1).t() @ each).to(exact)
            for grads, each in ((inputs, entered), (products, states), (queries, outputs))
        )
        by_keys, by_v = looks.score.gradients()
        weights = torch.stack([step[0] for step in steps], dim=2)
        by_values = torch.bmm(weights, contexts.transpose(0, 1))
        types = iter(ctx.types)
        return (
            None,
            None,
            None,
            inputs.transpose(0, 1).to(next(types)),
            by_keys.to(next(types)),
            by_values.to(next(types)),
            by_W_c,
            by_U,
            products[:, :, 2 * gates // 3 :].sum((0, 1), dtype=exact) if kind.cell is GRU else None,
            by_W_q if len(joint) > gates else None,
            None if by_v is None else by_v[None],
            fed.to(exact) if ctx.has_context else None,
            None,
            *state,
        )


def _by_state(joint: Tensor, gates: int, dropped: Tensor | None) -> Callable[[Tensor], Tensor]:
    """s -> [U s; W_q s], joint being [U; W_q]; U multiplies what is not dropped of s, W_q all of it."""
    if dropped is None:
        return fixed_product(joint)
    by_U, by_W_q = fixed_product(joint[:gates]), fixed_product(joint[gates:])
    if len(joint) == gates:
        return lambda s: by_U(s * dropped)
    return lambda s: torch.cat([by_U(s * dropped), by_W_q(s)], dim=1)


def _query(product: Tensor, output: Tensor, gates: int) -> Tensor:
    """W_q s, which stands behind U s; s itself for a score without W_q."""
    return product[:, gates:] if product.shape[1] > gates else output


def _looks(kind: LoopKind, keys: Tensor, v: Tensor | None, values: Tensor, mask: Tensor) -> _Looks:
    score = DotLoop(keys, kind.scale) if v is None else AdditiveLoop(keys, v[0])
    return _Looks(score, values, mask, kind.temperature)
