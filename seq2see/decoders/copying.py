"""The output layer that can also point: a word is written from the vocabulary, or copied from where the decoder looks.

See, Liu and Manning (2017): P(y) = g P_vocab(y) + (1 - g) sum_{j: x_j = y} a_tj. A copied word need not be in the
vocabulary: ids from its end on stand for the input's own further words (see `Copyable`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from seq2see.data.batches import UNK
from seq2see.decoders.heads import SoftmaxHead
from seq2see.decoders.records import Ready, Step
from seq2see.memory import Copyable

LEAST = 1e-30


@dataclass
class _Parts:
    """The two sources of a mixture, for so many rows (and steps): log g P_vocab, and (1 - g) a over the places.

    vocabulary: (rows, symbols), log; places: (rows, places); ids: (rows, places), what stands there.
    """

    vocabulary: Float[Tensor, "*rows symbols"]
    places: Float[Tensor, "*rows places"]
    ids: Int[Tensor, "*rows places"]

    def everywhere(self, further: int) -> Float[Tensor, "*rows all"]:
        """log P of every symbol and of `further` words beyond them."""
        spoken = pad(self.vocabulary, (0, further), value=-torch.inf)
        copied = torch.zeros_like(spoken).scatter_add(-1, self.ids, self.places)
        return torch.logaddexp(spoken, copied.clamp(min=LEAST).log())

    def at(self, targets: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
        """log P of one symbol or word of each row, without a vector over all of them."""
        symbols = self.vocabulary.shape[-1]
        beyond = targets >= symbols
        spoken = self.vocabulary.gather(-1, targets.masked_fill(beyond, 0)[..., None]).squeeze(-1)
        copied = (self.places * (self.ids == targets[..., None])).sum(-1)
        return torch.logaddexp(spoken.masked_fill(beyond, -torch.inf), copied.clamp(min=LEAST).log())


class CopyHead(SoftmaxHead):
    """P(y) = g softmax(V f + c)_y + (1 - g) sum_{j: x_j = y} a_tj, with g = sigmoid(w_g' features + b_g).

    source: the input that is copied from, whose look (of several heads the mean) is a_t. Where there is no place to
    look at, all is written from the vocabulary.
    """

    def __init__(
        self,
        features: int,
        symbols: int,
        *,
        source: str,
        readout: int = 0,
        tied: nn.Parameter | None = None,
        dropout: float = 0.0,
        direct: bool = False,
    ):
        super().__init__(features, symbols, readout=readout, tied=tied, dropout=dropout, direct=direct)
        self.source = source
        self.w_g = nn.Linear(features, 1)

    def further(self, ready: Ready) -> Int[Tensor, " batch"]:
        return self._copyable(ready).further(self.symbols)

    def words(self, ready: Ready) -> list[list[str]] | None:
        return self._copyable(ready).words

    def readable(self, tokens: Int[Tensor, "*rows"]) -> Int[Tensor, "*rows"]:
        """Words beyond the vocabulary have no embedding: they are read as `<unk>`."""
        return tokens.masked_fill(tokens >= self.symbols, UNK)

    def generating(self, step: Step) -> Float[Tensor, "*rows"]:
        """g, the share of P that comes from the vocabulary."""
        return torch.sigmoid(self.w_g(step.features).float()).squeeze(-1)

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        """log P of every symbol, and behind them of as many further words as the input with the most of them has.

        An input with fewer of them cannot write the rest: minus infinity.
        """
        shape = step.features.shape[:-1]
        everywhere = torch.ones(shape, dtype=torch.bool, device=self.device)
        further = self.further(ready)
        most = int(further.max())
        found = self._parts(step, ready, everywhere).everywhere(most).view(*shape, -1)
        limits = (self.symbols + further).repeat_interleave(shape[0] // max(len(further), 1))
        numbers = torch.arange(self.symbols + most, device=self.device)
        return found.masked_fill(numbers >= limits.view(-1, *[1] * len(shape)), -torch.inf)

    def given(
        self, step: Step, ready: Ready, targets: Int[Tensor, "*rows"], *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
        return self._parts(step, ready, mask).at(targets[mask])

    def loss(
        self,
        step: Step,
        ready: Ready,
        targets: Int[Tensor, "*rows"],
        *,
        mask: Bool[Tensor, "*rows"],
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> Float[Tensor, ""]:
        """-sum log P of the real targets; smoothed, a share of the target is spread over the vocabulary's symbols."""
        if weights is not None:
            raise ValueError("classes have weights, and labels are not copied")
        parts = self._parts(step, ready, mask)
        true = parts.at(targets[mask]).sum()
        if not smoothing:
            return -true
        spread = parts.everywhere(int(self.further(ready).max()))[..., : self.symbols].mean(-1).sum()
        return -(1 - smoothing) * true - smoothing * spread

    def _copyable(self, ready: Ready) -> Copyable:
        found = ready.memory.places[self.source].copyable
        if found is None:
            raise ValueError(f"'{self.source}' was read without what can be copied from it")
        return found

    def _parts(self, step: Step, ready: Ready, mask: Bool[Tensor, "*rows"]) -> _Parts:
        """Both sources at the real rows (and steps) alone, in single precision."""
        features = step.features[mask]
        look = step.looks[self.source].dense()
        ids = self._copyable(ready).ids
        ids = ids.repeat_interleave(len(look) // max(len(ids), 1), 0)
        ids = ids.view(len(ids), *[1] * (look.dim() - 2), -1).expand_as(look)[mask]
        pointed = look[mask].float()
        gate = self.w_g(features).float()
        copied = torch.sigmoid(-gate) * pointed
        # What no place takes (there may be none) stays with the vocabulary, so that P always sums to one.
        empty = pointed.sum(-1, keepdim=True) == 0
        spoken = torch.log_softmax(self.logits(features).float(), dim=-1)
        return _Parts(spoken + logsigmoid(gate).masked_fill(empty, 0.0), copied, ids)
