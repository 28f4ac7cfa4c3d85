"""Output heads: softmax over a vocabulary, copying from the input, and heads that give numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear, logsigmoid, pad

from seq2see.data.batches import UNK
from seq2see.decoders.records import Ready, Step
from seq2see.encoders.dense import ACTIVATIONS
from seq2see.memory import Copyable

# ---------------- Output layers


class Head(nn.Module):
    """What an output is made of, and how far it is from the right one.

    A head either has symbols (`log_probs`) or gives numbers (`numbers`); both have a loss.
    """

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def symbols(self) -> int:
        """How many symbols or labels there are."""
        return 0

    def further(self, ready: Ready) -> Int[Tensor, " batch"]:
        """How many words beyond the vocabulary each input makes writable: their ids follow its last."""
        return torch.zeros(ready.rows, dtype=torch.long, device=self.device)

    def words(self, ready: Ready) -> list[list[str]] | None:
        """Those words, input by input, where anybody knows them."""
        return None

    def readable(self, tokens: Int[Tensor, "*rows"]) -> Int[Tensor, "*rows"]:
        """Ids as a decoder reads them."""
        return tokens

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        """log P of every symbol, at a step or at each step of a whole target."""
        raise TypeError(f"{type(self).__name__} has no symbols")

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        """The numbers themselves."""
        raise TypeError(f"{type(self).__name__} gives no numbers")

    def given(
        self, step: Step, ready: Ready, targets: Tensor, *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
        """How well each real target is met, in the order of the mask: log P, or what stands for it."""
        raise NotImplementedError

    def loss(
        self,
        step: Step,
        ready: Ready,
        targets: Tensor,
        *,
        mask: Bool[Tensor, "*rows"],
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> Float[Tensor, ""]:
        """The sum over the real targets of what is to be made small."""
        raise NotImplementedError


class SoftmaxHead(Head):
    """log softmax(V f + c), with f the features, or tanh(W_o features + b_o) where a readout size is given.

    tied: V is the embedding matrix E of the output's symbols; the readout then has E's width, or there is none where
    features of that width are `direct`.
    """

    def __init__(
        self,
        features: int,
        symbols: int,
        *,
        readout: int = 0,
        tied: nn.Parameter | None = None,
        dropout: float = 0.0,
        direct: bool = False,
    ):
        super().__init__()
        width = tied.shape[1] if tied is not None else readout
        if tied is not None and direct and width == features:
            width = 0
        self.dropout = dropout
        self.W_o = nn.Linear(features, width) if width else None
        if tied is not None:
            self.V = tied
        else:
            self.V = nn.Parameter(torch.empty(symbols, width or features))
            nn.init.xavier_uniform_(self.V)
        self.c = nn.Parameter(torch.zeros(symbols))

    @property
    def symbols(self) -> int:
        """How many symbols or labels there are."""
        return len(self.c)

    def logits(self, features: Float[Tensor, "*rows size"]) -> Float[Tensor, "*rows symbols"]:
        if self.W_o is not None:
            features = dropout(torch.tanh(self.W_o(features)), self.dropout, self.training)
        return linear(features, self.V, self.c)

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        """log P of every symbol, at a step or at each step of a whole target."""
        return torch.log_softmax(self.logits(step.features).float(), dim=-1)

    def given(
        self, step: Step, ready: Ready, targets: Int[Tensor, "*rows"], *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
        """log P of each real target, in the order of the mask."""
        log_probs = torch.log_softmax(self.logits(step.features[mask]).float(), dim=-1)
        return log_probs.gather(1, targets[mask][:, None]).squeeze(1)

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
        """-sum log P of the real targets; padding is dropped before the large product, not after it."""
        return cross_entropy(
            self.logits(step.features[mask]).float(),
            targets[mask],
            weight=weights,
            label_smoothing=smoothing,
            reduction="sum",
        )


# ---------------- The output layer that can also point

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


# ---------------- Output layers without symbols


class NumbersHead(Head):
    """y = f(V u + c), u being the features; the loss of a row is the mean of (y_i - x_i) ** 2."""

    def __init__(self, features: int, numbers: int, *, output: str = "linear"):
        super().__init__()
        self.output = output
        self.V = nn.Parameter(torch.empty(numbers, features))
        nn.init.xavier_uniform_(self.V)
        self.c = nn.Parameter(torch.zeros(numbers))

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        return ACTIVATIONS[self.output](self.made(step.features)).float()

    def made(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        """The numbers before f."""
        return linear(features, self.V, self.c)

    def given(
        self, step: Step, ready: Ready, targets: Float[Tensor, "rows numbers"], *, mask: Bool[Tensor, " rows"]
    ) -> Float[Tensor, " real"]:
        """-(mean squared error) of each row: log P of a Gaussian around y, but for its scale."""
        return -(self.numbers(step) - targets).square().mean(-1)[mask]

    def loss(
        self,
        step: Step,
        ready: Ready,
        targets: Float[Tensor, "rows numbers"],
        *,
        mask: Bool[Tensor, " rows"],
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> Float[Tensor, ""]:
        """The sum over rows of their mean squared error."""
        return -self.given(step, ready, targets, mask=mask).sum()


class PixelsHead(NumbersHead):
    """A picture by transposed convolutions: u becomes a small map, each level doubles its height and width.

    shape: channels, height and width of the picture; channels: maps of each level before the picture itself.
    """

    def __init__(
        self, features: int, shape: tuple[int, int, int], channels: Sequence[int], *, output: str, activation: str
    ):
        colours, height, width = shape
        scale = 1 << len(channels)
        small = (channels[0], height // scale, width // scale)
        super().__init__(features, prod(small), output=output)
        self.small, self.activation = small, activation
        widths = [*channels, colours]
        self.levels = nn.ModuleList(
            nn.ConvTranspose2d(a, b, kernel_size=4, stride=2, padding=1)
            for a, b in zip(channels, widths[1:], strict=True)
        )

    def made(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        pictures: Tensor = super().made(features).unflatten(1, self.small)
        for level in cast("list[nn.ConvTranspose2d]", list(self.levels)):
            pictures = level(ACTIVATIONS[self.activation](pictures))
        return pictures.flatten(1)
