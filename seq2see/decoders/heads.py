"""Output layers: P(y_t | ...) = softmax(V s_t + c). Tied weights and large-vocabulary losses live here."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear

from seq2see.decoders.records import Ready, Step


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
