"""Single steps of the common recurrent decoders, for predictions.

`FusedSteps` computes what `RecurrentDecoder.step` and the readout of `SoftmaxHead` do in about half the operations:
weights that multiply the same vector are one matrix, packed once per model, there are no records between the parts, and
only states, keys and values follow the hypotheses. It runs what the fused loop of training runs (`loop_kind`) under a
plain softmax; everything else goes through the parts themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.attention import Attention
from seq2see.attention.normalisers import HIDDEN
from seq2see.attention.scores import Additive
from seq2see.cell_loops import CellLoop, GruLoop, LstmLoop
from seq2see.cells import GRU, CellState
from seq2see.decoders.base import Decoder
from seq2see.decoders.fused_loop import LoopKind
from seq2see.decoders.output_heads import Head, SoftmaxHead
from seq2see.decoders.records import Ready
from seq2see.decoders.recurrent import RecurrentDecoder
from seq2see.packed_weights import Multiplier, PackedWeights

FEW_INPUTS, FEW_PLACES = 8, 32
"""When W_c is multiplied with places instead of contexts: see `FusedSteps.begin`."""


class FusedSteps:
    """The hypotheses of one search, `width` of each input in a run."""

    def __init__(
        self, decoder: RecurrentDecoder, kind: LoopKind, head: SoftmaxHead, ready: Ready, packed: PackedWeights
    ):
        """packed: the weights of decoder and head; ready: of as many inputs as are searched."""
        ((self.name, attention),) = decoder.looking.over.items()
        score, cell = cast(Attention, attention).score, decoder.first
        self._decoder, self._kind, self._head, self._ready, self._packed = decoder, kind, head, ready, packed
        self._cell: CellLoop = GruLoop(None) if isinstance(cell, GRU) else LstmLoop()
        self._v: Tensor | None = None
        by_state: list[Tensor] = [cell.U]
        if isinstance(score, Additive):
            self._v, by_state = 2 * score.v.weight[0], [cell.U, score.W_q.weight]
        self._gates, bias = len(cell.U), cell.U.new_zeros(sum(map(len, by_state)))
        if isinstance(cell, GRU):
            bias[self._gates - cell.size : self._gates] = cell.b_U
        self._multiply_state = packed.multiplier(by_state, bias)
        self._by_symbol: list[Tensor] = [cell.W["y"]]
        self._by_context: list[Tensor] = [cell.W["c"]] if decoder.feeds else []
        self._multiply_output: Multiplier | None = None
        biases: list[Tensor] = [cell.b]
        if head.W_o is not None and decoder.whole_output and not kind.current:
            # W_o [s; c; e] is the sum of three products, two of which are further rows of W_c c and W_y e
            sizes = [cell.size, decoder.looking.size, decoder.embedding.size]
            by_output, by_context, by_symbol = head.W_o.weight.split(sizes, dim=1)
            self._multiply_output = packed.multiplier([by_output])
            self._by_context, self._by_symbol = [cell.W["c"], by_context], [cell.W["y"], by_symbol]
            biases = [cell.b, head.W_o.bias]
        self._bias, E = torch.cat(biases), decoder.embedding.weight
        self._table = None if E is None else packed.table(E, self._by_symbol, biases)
        self._multiply_context = packed.multiplier(self._by_context) if self._by_context else None
        self._start, self._every = ready.start[0], ready.every
        prepared = ready.looks[self.name]
        # batches of small products are several times as fast where the places of an input lie together
        self._keys, self._values = (part.contiguous() for part in (prepared.keys, prepared.values))
        self._keys = self._keys if self._v is None else 2 * self._keys
        self._padding = None if prepared.mask.all() else ~prepared.mask[:, None]
        self._has_empty = not prepared.mask.any(1).all()
        self._fed: Tensor | None = None

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input, which are one until the first step."""
        self._width, self._is_wide = width, width == 1
        self._state: CellState = self._start
        output, (batch, places, size), decoder = self._start[0], self._values.shape, self._decoder
        # where a look follows the step, the next one needs its context and U s
        current, fed = self._kind.current, decoder.feeds
        self._product = self._multiply_state(output) if current else None
        self._context = output.new_zeros(batch, size) if current and fed else None
        # W_c c_t = sum_j a_tj W_c h_j: with several hypotheses there are fewer places than contexts; with few inputs
        # reading W_c once instead of at every step saves as much
        if not current and places <= FEW_PLACES * width and (width > 1 or batch <= FEW_INPUTS):
            self._fed = self._packed.joint(self._values, self._by_context)

    def step(
        self, token: Int[Tensor, " rows"], forced: Float[Tensor, "rows places"] | None = None
    ) -> tuple[Float[Tensor, "_ width"], Float[Tensor, "_ places"]]:
        """Read one symbol and attend to the input: what V is multiplied with, and the look, of each row; at the first
        step one row of each input, whose hypotheses are all the same.

        forced: attention weights that replace the model's own where they are not NaN.
        """
        if not self._is_wide:
            token, forced = token[:: self._width], None if forced is None else forced[:: self._width]
        projected = self._project(token)
        product, context, gates = self._product, self._context, self._gates
        if self._every is not None:
            projected[:, :gates] += self._every.repeat_interleave(len(token) // len(self._every), 0)
        if product is None:
            product = self._multiply_state(self._state[0])
            weights = self._look(product[:, gates:], forced)
            context = None if self._fed is not None and self._multiply_output else self._mean(weights, self._values)
        if self._fed is not None:
            projected += self._mean(weights, self._fed)
        elif context is not None and self._multiply_context is not None:
            projected += self._multiply_context(context)
        self._state, _ = self._cell.forward(projected[:, :gates], product[:, :gates], self._state)
        output = self._state[0]
        if self._product is not None:
            self._product = self._multiply_state(output)
            weights = self._look(self._product[:, gates:], forced)
            context = self._mean(weights, self._values)
            self._context = context if self._by_context else None
        if not self._is_wide:
            self._is_wide = True
            self.select(torch.arange(len(token)).repeat_interleave(self._width), None)
        if self._multiply_output is not None:
            read = self._multiply_output(output).add_(projected[:, gates:]).tanh_()
        else:
            features = self._decoder.features_of(output, context, self._decoder.embedding(token))
            read = self._head.read_out(features, self._ready)
        return read, weights.flatten(0, 1)

    def _project(self, token: Int[Tensor, " rows"]) -> Float[Tensor, "rows _"]:
        """The products of e(y) with all its weights, and the biases; of many rows each symbol is multiplied once."""
        if self._table is not None:
            return self._table.index_select(0, token)
        if len(token) <= FEW_INPUTS:
            return self._packed.joint(self._decoder.embedding(token), self._by_symbol, self._bias)
        symbols, rows = torch.unique(token, return_inverse=True)
        return self._packed.joint(self._decoder.embedding(symbols), self._by_symbol, self._bias)[rows]

    def select(self, rows: Int[Tensor, " chosen"], inputs: Int[Tensor, " inputs"] | None) -> None:
        """Continue with these hypotheses, of these inputs (None: of all)."""
        self._state = tuple(part.index_select(0, rows) for part in self._state)
        self._product, self._context = _selected((self._product, self._context), rows)
        if inputs is not None:
            self._keys, self._values = self._keys.index_select(0, inputs), self._values.index_select(0, inputs)
            self._fed, self._padding, self._every = _selected((self._fed, self._padding, self._every), inputs)

    def _look(
        self, query: Float[Tensor, "rows _"], forced: Float[Tensor, "rows places"] | None
    ) -> Float[Tensor, "batch width places"]:
        """The weights of each row; query: W_q s, where the score has W_q."""
        batch, places, size = self._keys.shape
        if self._v is not None:
            # v' tanh(a) = 2 v' logistic(2 a) - a constant, which softmax does not see: torch's logistic is much faster
            hidden = torch.add(self._keys[:, None], query.view(batch, -1, 1, size), alpha=2).sigmoid_()
            energies = torch.mv(hidden.view(-1, size), self._v).view(batch, -1, places)
        else:
            queries = self._state[0].view(batch, -1, size)
            energies = torch.bmm(queries, self._keys.transpose(1, 2)).mul_(self._kind.scale)
        if self._kind.temperature != 1:
            energies /= self._kind.temperature
        if self._padding is not None:
            energies.masked_fill_(self._padding, HIDDEN)
        weights = torch.softmax(energies, dim=-1)
        if self._padding is not None and self._has_empty:
            weights = weights.masked_fill(self._padding, 0.0)
        if forced is not None:
            own = forced.view(weights.shape)
            weights = torch.where(own.isnan(), weights, own)
        return weights

    def _mean(
        self, weights: Float[Tensor, "batch width places"], values: Float[Tensor, "batch places size"]
    ) -> Float[Tensor, "rows size"]:
        return torch.bmm(weights, values).flatten(0, 1)


def _selected(parts: Sequence[Tensor | None], rows: Int[Tensor, " chosen"]) -> list[Tensor | None]:
    """These rows of each; `index_select` takes a fifth of the time of indexing."""
    return [None if part is None else part.index_select(0, rows) for part in parts]


def fused_steps(decoder: Decoder, head: Head, ready: Ready, packed: PackedWeights | None) -> FusedSteps | None:
    """The steps of a search with these parts of a model; None where they have to go through the parts themselves."""
    if packed is None or type(decoder) is not RecurrentDecoder or type(head) is not SoftmaxHead:
        return None
    if decoder.loop is None:
        return None
    tensors = [*ready.start[0], ready.looks[next(iter(ready.looks))].keys]
    if any(part.dtype != torch.float32 or part.device.type != "cpu" for part in tensors) or not tensors[-1].shape[1]:
        return None
    return FusedSteps(decoder, decoder.loop, head, ready, packed)
