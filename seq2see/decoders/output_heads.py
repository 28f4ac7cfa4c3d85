"""Output layers: softmax over a vocabulary, copying from the input, and layers that give numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import cross_entropy, linear, logsigmoid

from seq2see.data.vocabulary import UNK
from seq2see.decoders.records import Ready, Step
from seq2see.deferred_gradients import autocast_to
from seq2see.dropout import dropout
from seq2see.encoders.dense import ACTIVATIONS
from seq2see.memory import Copyable, largest, repeat_rows
from seq2see.packed_weights import fixed_product, product
from seq2see.symbols import Symbol, Symbols, default_symbols


class Head(nn.Module):
    """An output layer: it has symbols (`log_probs`) or gives numbers (`numbers`), and a loss."""

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def symbols(self) -> int:
        """The number of symbols or labels; 0 of a layer that gives numbers."""
        return 0

    def equation(self, features: str, probability: str) -> str:
        """For `show`; features: what it sees; probability: what it models, such as 'P(y | x)'."""
        raise NotImplementedError

    def further(self, ready: Ready) -> Int[Tensor, " batch"]:
        """How many words outside the vocabulary can be copied from each input; their ids follow the vocabulary's."""
        return torch.zeros(ready.rows, dtype=torch.long, device=self.device)

    def words(self, ready: Ready) -> list[list[str]] | None:
        """The words of `further`, input by input, where they are known."""
        return None

    def readable(self, tokens: Int[Tensor, "*rows"]) -> Int[Tensor, "*rows"]:
        """Ids that the decoder's embedding has."""
        return tokens

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        """log P of every symbol, at a step or at all steps of a target."""
        raise TypeError(f"{type(self).__name__} has no symbols")

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        """The numbers of the output."""
        raise TypeError(f"{type(self).__name__} gives no numbers")

    def target_scores(
        self, step: Step, ready: Ready, targets: Tensor, *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
        """log P of each real target, in the order of the mask; of numbers the negative squared error."""
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
        """The sum of the losses of the real targets."""
        raise NotImplementedError

    def consistent_loss(
        self,
        step: Step,
        ready: Ready,
        targets: Tensor,
        *,
        mask: Bool[Tensor, "*rows"],
        consistency: float,
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """(loss + consistency * D, consistency * D for reports), of a batch that has every row twice, all rows once,
        then all rows again; D: how much the two distributions of each target differ (`two_pass_divergence`)."""
        loss = self.loss(step, ready, targets, mask=mask, smoothing=smoothing, weights=weights)
        term = consistency * two_pass_divergence(self.log_probs(step, ready), mask)
        return loss + term, term.detach()


FLOOR = -1e4
"""Of log-probabilities: what is impossible in both passes must not become NaN."""


def two_pass_divergence(
    log_probs: Float[Tensor, "rows *steps symbols"], mask: Bool[Tensor, " rows *steps"]
) -> Float[Tensor, ""]:
    """R-Drop (Liang et al. 2021): sum (KL(p || q) + KL(q || p)) / 2 over real steps, where p and q are the
    distributions of two passes with different dropout: the first half of the rows is one pass, the second half the
    other.

    >>> equal = torch.log_softmax(torch.tensor([[1.0, 2.0], [1.0, 2.0]]), -1)
    >>> two_pass_divergence(equal, torch.ones(2, dtype=torch.bool))
    tensor(0.)
    """
    p, q = log_probs.clamp(min=FLOOR).chunk(2)
    divergence = ((p.exp() - q.exp()) * (p - q)).sum(-1)
    return divergence[mask[: len(p)]].sum() / 2


class SoftmaxHead(Head):
    """log softmax(V f + c), f being the features, or tanh(W_o features + b_o) where there is a readout.

    tied: V is the embedding matrix E of the output's symbols; the readout then has the width of E, and there is none
    where features of that width are `direct`.
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
        self.dropout, self.tied = dropout, tied is not None
        self.W_o = nn.Linear(features, width) if width else None
        if tied is not None:
            self.V = tied
        else:
            self.V = nn.Parameter(torch.empty(symbols, width or features))
            # Glorot's, but for many symbols: they would make rows so short that what is below learns slowly
            bound = sqrt(3.0) * sqrt(2.0 / (min(symbols, self.V.shape[1]) + self.V.shape[1]))
            nn.init.uniform_(self.V, -bound, bound)
        self.c = nn.Parameter(torch.zeros(symbols))

    @property
    def symbols(self) -> int:
        return len(self.c)

    def equation(self, features: str, probability: str) -> str:
        return f"{probability} = {self.softmax_equation(features)}"

    def softmax_equation(self, features: str) -> str:
        """The distribution over the vocabulary, for `show`."""
        readout = features if self.W_o is None else f"tanh(W_o {features} + b_o)"
        return f"softmax({'E' if self.tied else 'V'} {readout} + c)"

    def logits(
        self, features: Float[Tensor, "*rows size"], ready: Ready | None = None
    ) -> Float[Tensor, "*rows symbols"]:
        """ready: with weights that may be packed."""
        multiply = linear if ready is None else ready.linear
        return multiply(self.read_out(features, ready), self.V, self.c)

    def read_out(
        self, features: Float[Tensor, "*rows size"], ready: Ready | None = None
    ) -> Float[Tensor, "*rows width"]:
        """What V is multiplied with."""
        if self.W_o is None:
            return features
        multiply = linear if ready is None else ready.linear
        return dropout(torch.tanh(multiply(features, self.W_o.weight, self.W_o.bias)), self.dropout, self.training)

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        return torch.log_softmax(self.logits(step.features, ready).float(), dim=-1)

    def target_scores(
        self, step: Step, ready: Ready, targets: Int[Tensor, "*rows"], *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
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
        """-sum log P of the real targets; padding is dropped before the product with V."""
        features, chosen = step.features[mask], targets[mask]
        if weights is None:
            return linear_cross_entropy(self.read_out(features), self.V, self.c, chosen, smoothing=smoothing)
        logits = self.logits(features).float()
        return cross_entropy(logits, chosen, weight=weights, label_smoothing=smoothing, reduction="sum")

    def consistent_loss(
        self,
        step: Step,
        ready: Ready,
        targets: Int[Tensor, "*rows"],
        *,
        mask: Bool[Tensor, "*rows"],
        consistency: float,
        smoothing: float = 0.0,
        weights: Float[Tensor, " symbols"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        if weights is not None:
            return super().consistent_loss(
                step, ready, targets, mask=mask, consistency=consistency, smoothing=smoothing, weights=weights
            )
        features = self.read_out(step.features[mask])
        return consistent_cross_entropy(
            features, self.V, self.c, targets[mask], smoothing=smoothing, consistency=consistency
        )


# --- The loss of a softmax

MULTIPLE = 16
"""The weight is padded to a multiple of so many rows."""
BLOCK = 128
"""Rows of logits that one product computes: enough for a fast one, and few enough to stay in the cache."""
IN_CACHE = 2**18
"""Logits that become probabilities at a time: few enough to stay in the cache of one core."""


def linear_cross_entropy(
    features: Float[Tensor, "targets size"],
    weight: Float[Tensor, "symbols size"],
    bias: Float[Tensor, " symbols"],
    targets: Int[Tensor, " targets"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """sum over targets y of -(1 - smoothing) log P(y) - smoothing mean_k log P(k), P = softmax(weight f + bias).

    It is torch's `cross_entropy(linear(features, weight, bias), targets, reduction="sum")` without a second copy of the
    logits. Plain autograd keeps three tensors of (targets, symbols): logits, log-probabilities and their gradient. The
    gradient of the sum is known as soon as the logits are, softmax(V f + c) - 1[y], so it takes their place while they
    are still in the processor's cache. The weight is padded to a multiple of 16 rows: products with an odd number of
    them take up to 1.6 times as long.
    """
    loss: Tensor = _LinearCrossEntropy.apply(features, weight, bias, targets, smoothing, 0.0)[0]
    return loss


def consistent_cross_entropy(
    features: Float[Tensor, "targets size"],
    weight: Float[Tensor, "symbols size"],
    bias: Float[Tensor, " symbols"],
    targets: Int[Tensor, " targets"],
    *,
    smoothing: float = 0.0,
    consistency: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """(`linear_cross_entropy` + consistency * D, consistency * D for reports), D = `two_pass_divergence`, from the same
    logits; the first half of the targets is one pass, the second half the other."""

    def beside(each: Tensor) -> Tensor:
        """The two passes of each target beside each other."""
        return each.view(2, -1, *each.shape[1:]).transpose(0, 1).reshape(each.shape)

    total, term = _LinearCrossEntropy.apply(beside(features), weight, bias, beside(targets), smoothing, consistency)
    return total, term


class _LinearCrossEntropy(torch.autograd.Function):
    """consistency: weight of how much the distributions of each two targets differ, the first and second, the third and
    fourth, ...; 0: none."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        smoothing: float,
        consistency: float,
    ) -> tuple[Tensor, Tensor]:
        symbols = len(weight)
        columns = -(-symbols // MULTIPLE) * MULTIPLE
        rows = autocast_to(features)
        padded, shift = rows.new_empty(columns, weight.shape[1]), rows.new_empty(columns)
        padded[:symbols], padded[symbols:] = weight, 0
        shift[:symbols], shift[symbols:] = bias, -torch.inf  # the columns of padding have the probability 0
        exact = torch.promote_types(bias.dtype, torch.float32)
        by_bias, losses = features.new_zeros(columns, dtype=exact), [features.new_zeros(2, dtype=exact)]
        grads, multiply = rows.new_empty(len(rows), columns), fixed_product(padded, shift)
        few = 2 * max(IN_CACHE // columns // 2, 1)
        for block, *chosen in zip(*(each.split(max(BLOCK, few)) for each in (rows, targets, grads)), strict=True):
            for some, wanted, by_logits in zip(*(each.split(few) for each in (multiply(block), *chosen)), strict=True):
                gradient = by_logits if by_logits.dtype == exact else torch.empty_like(by_logits, dtype=exact)
                losses.append(_losses(some.to(exact), wanted, smoothing, symbols, gradient, consistency))
                by_bias += gradient.sum(0)
                if gradient is not by_logits:
                    by_logits.copy_(gradient)
        ctx.save_for_backward(features, padded, grads, by_bias[:symbols])
        total, term = torch.stack(losses).sum(0).unbind()
        ctx.mark_non_differentiable(term)
        return total, term

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor, _: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        features, padded, grads, by_bias = ctx.saved_tensors
        weight = grads.t() @ (features * scale).to(grads.dtype)
        weight = weight[: len(by_bias)].to(scale.dtype)
        return product(grads, padded.t()).to(features.dtype) * scale, weight, by_bias * scale, None, None, None


def _losses(
    logits: Float[Tensor, "rows columns"],
    targets: Int[Tensor, " rows"],
    smoothing: float,
    symbols: int,
    gradient: Float[Tensor, "rows columns"],
    consistency: float,
) -> Float[Tensor, " 2"]:
    """(the sum of the losses, the part of it that is for consistency); the gradient of the sum with respect to the
    logits is written to `gradient`. Columns behind those of the symbols are minus infinity, and their gradient is 0."""
    at = targets[:, None]
    torch.softmax(logits, dim=1, out=gradient)
    # log sum exp from the likeliest symbol, whose probability is at least 1 / symbols: exact where others underflow
    normaliser = logits.amax(1) - gradient.amax(1).log()
    term = normaliser.new_zeros(())
    if consistency:
        term = _consistency(logits[:, :symbols] - normaliser[:, None], gradient[:, :symbols], consistency)
    wanted = (1 - smoothing) * logits.gather(1, at).squeeze(1)
    if smoothing:
        wanted = wanted + smoothing * logits[:, :symbols].mean(1)
        gradient[:, :symbols] -= smoothing / symbols
    gradient.scatter_add_(1, at, gradient.new_full((), smoothing - 1).expand(at.shape))
    return torch.stack([(normaliser - wanted).sum() + term, term])


def _consistency(
    log_probs: Float[Tensor, "rows symbols"], gradient: Float[Tensor, "rows symbols"], weight: float
) -> Float[Tensor, ""]:
    """weight * sum (p - q) . (log p - log q) / 2 over each two rows p and q; its gradient with respect to their logits,
    weight / 2 (p (d - KL(p || q)) + p - q) with d = log p - log q, and the same for q, is added to `gradient`, which
    has the probabilities."""
    p, q = gradient[::2], gradient[1::2]
    ratio, difference = log_probs[::2] - log_probs[1::2], p - q
    divergence = (difference * ratio).sum()
    forwards, backwards = (p * ratio).sum(1, keepdim=True), (q * ratio).sum(1, keepdim=True)
    difference *= weight / 2
    p *= 1 + weight / 2 * (ratio - forwards)
    p += difference
    q *= 1 - weight / 2 * (ratio - backwards)
    q -= difference
    return weight / 2 * divergence


# --- Copying

LEAST = 1e-30


@dataclass
class _Mixture:
    """The two parts of the mixture, for rows (and steps).

    vocabulary: (rows, symbols), log(g P_vocab); places: (rows, places), (1 - g) a; ids: (rows, places), their symbols.
    """

    vocabulary: Float[Tensor, "*rows symbols"]
    places: Float[Tensor, "*rows places"]
    ids: Int[Tensor, "*rows places"]

    def log_probs(self, further: int) -> Float[Tensor, "*rows all"]:
        """log P of every symbol and of `further` words outside the vocabulary."""
        missing = self.vocabulary.new_full((*self.vocabulary.shape[:-1], further), -torch.inf)
        generated = torch.cat([self.vocabulary, missing], dim=-1)
        copied = torch.zeros_like(generated).scatter_add(-1, self.ids, self.places)
        return torch.logaddexp(generated, copied.clamp(min=LEAST).log())

    def at(self, targets: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
        """log P of one symbol or word of each row, without computing those of all others."""
        symbols = self.vocabulary.shape[-1]
        unknown = targets >= symbols
        generated = self.vocabulary.gather(-1, targets.masked_fill(unknown, 0)[..., None]).squeeze(-1)
        copied = (self.places * (self.ids == targets[..., None])).sum(-1)
        return torch.logaddexp(generated.masked_fill(unknown, -torch.inf), copied.clamp(min=LEAST).log())


class CopyHead(SoftmaxHead):
    """P(y) = g softmax(V f + c)_y + (1 - g) sum_{j: x_j = y} a_tj, with g = sigmoid(w_g' features + b_g).

    source: the input to copy from; a_t are the weights of its look, the mean over heads. Where no place is real, g = 1.
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
        """Words outside the vocabulary have no embedding: they are read as `<unk>`."""
        return tokens.masked_fill(tokens >= self.symbols, UNK)

    def equation(self, features: str, probability: str) -> str:
        copied = f"sum_{{j: x_j = y_t}} a_tj (x: {self.source.partition('.')[0]})"
        gate = f"g = sigmoid(w_g' {features} + b_g)"
        return f"{probability} = g {self.softmax_equation(features)} + (1 - g) {copied};  {gate}"

    def generating(self, step: Step) -> Float[Tensor, "*rows"]:
        """g, the share of P that comes from the vocabulary."""
        return torch.sigmoid(self.w_g(step.features).float()).squeeze(-1)

    def log_probs(self, step: Step, ready: Ready) -> Float[Tensor, "rows *steps symbols"]:
        """log P of every symbol, followed by the further words of the input that has the most of them.

        For the other inputs those that they do not have are minus infinity.
        """
        shape = step.features.shape[:-1]
        further = self.further(ready)
        most = largest(further)
        log_probs = self._mixture(step, ready).log_probs(most)
        limits = repeat_rows(self.symbols + further, shape[0] // max(further.shape[0], 1))
        numbers = torch.arange(self.symbols + most, device=self.device)
        return log_probs.masked_fill(numbers >= limits.view(-1, *[1] * len(shape)), -torch.inf)

    def target_scores(
        self, step: Step, ready: Ready, targets: Int[Tensor, "*rows"], *, mask: Bool[Tensor, "*rows"]
    ) -> Float[Tensor, " real"]:
        return self._mixture(step, ready, mask).at(targets[mask])

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
        """-sum log P of the real targets; label smoothing spreads a share over the symbols of the vocabulary."""
        if weights is not None:
            raise ValueError("class weights are for labels, which are not copied")
        mixture = self._mixture(step, ready, mask)
        true = mixture.at(targets[mask]).sum()
        if not smoothing:
            return -true
        spread = mixture.log_probs(int(self.further(ready).max()))[..., : self.symbols].mean(-1).sum()
        return -(1 - smoothing) * true - smoothing * spread

    consistent_loss = Head.consistent_loss  # SoftmaxHead's is of a softmax alone, without what is copied

    def _copyable(self, ready: Ready) -> Copyable:
        copyable = ready.memory.places[self.source].copyable
        if copyable is None:
            raise ValueError(f"'{self.source}' was encoded without the symbols that can be copied from it")
        return copyable

    def _mixture(self, step: Step, ready: Ready, mask: Bool[Tensor, "*rows"] | None = None) -> _Mixture:
        """Both parts at the real rows (and steps), in single precision; mask None: all are real."""
        features = step.features
        look = step.looks[self.source].dense()
        ids = self._copyable(ready).ids
        ids = repeat_rows(ids, look.shape[0] // max(ids.shape[0], 1))
        ids = ids.view(ids.shape[0], *[1] * (look.dim() - 2), ids.shape[-1]).expand_as(look)
        if mask is not None:
            features, look, ids = features[mask], look[mask], ids[mask]
        weights = look.float()
        gate = self.w_g(features).float()
        copied = torch.sigmoid(-gate) * weights
        # Without any real place the vocabulary gets all, so that P always sums to one.
        empty = weights.sum(-1, keepdim=True) == 0
        generated = torch.log_softmax(self.logits(features).float(), dim=-1)
        return _Mixture(generated + logsigmoid(gate).masked_fill(empty, 0.0), copied, ids)


class NumbersHead(Head):
    """y = f(V u + c), u being the features; the loss of a row is the mean squared error, mean_i (y_i - x_i) ** 2."""

    def __init__(self, features: int, numbers: int, *, output: str = "linear"):
        super().__init__()
        self.output = output
        self.V = nn.Parameter(torch.empty(numbers, features))
        nn.init.xavier_uniform_(self.V)
        self.c = nn.Parameter(torch.zeros(numbers))

    def numbers(self, step: Step) -> Float[Tensor, "rows numbers"]:
        return ACTIVATIONS[self.output](self.linear(step.features)).float()

    def linear(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        """The numbers before the activation f."""
        return linear(features, self.V, self.c)

    def equation(self, features: str, probability: str) -> str:
        numbers = self.linear_equation(features)
        return f"y = {numbers}" if self.output == "linear" else f"y = {self.output}({numbers})"

    def linear_equation(self, features: str) -> str:
        """The numbers before the activation, for `show`."""
        return f"V {features} + c"

    def target_scores(
        self, step: Step, ready: Ready, targets: Float[Tensor, "rows numbers"], *, mask: Bool[Tensor, " rows"]
    ) -> Float[Tensor, " real"]:
        """The negative mean squared error of each row: log P of a Gaussian around y, up to its scale."""
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
        """The sum over rows of their mean squared errors."""
        return -self.target_scores(step, ready, targets, mask=mask).sum()


class PixelsHead(NumbersHead):
    """An image by transposed convolutions: u becomes a small map, and each level doubles its height and width.

    shape: channels, height and width of the image; channels: the number of maps at each level before the image.
    """

    def __init__(
        self, features: int, shape: tuple[int, int, int], channels: Sequence[int], *, output: str, activation: str
    ):
        colours, height, width = shape
        scale = 1 << len(channels)
        small = (channels[0], height // scale, width // scale)
        super().__init__(features, prod(small), output=output)
        self.small, self.activation, self.channels = small, activation, tuple(channels)
        widths = [*channels, colours]
        self.levels = nn.ModuleList(
            nn.ConvTranspose2d(a, b, kernel_size=4, stride=2, padding=1)
            for a, b in zip(channels, widths[1:], strict=True)
        )

    def linear(self, features: Float[Tensor, "rows size"]) -> Float[Tensor, "rows numbers"]:
        images: Tensor = super().linear(features).unflatten(1, self.small)
        for level in cast("list[nn.ConvTranspose2d]", list(self.levels)):
            images = level(ACTIVATIONS[self.activation](images))
        return images.flatten(1)

    def linear_equation(self, features: str) -> str:
        levels = f"{len(self.channels)} levels of {', '.join(map(str, self.channels))} maps"
        return f"transposed convolutions ({levels}) of ({super().linear_equation(features)})"

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | {
            f"levels.{number}.{key}": Symbol(name, f"level {number + 1}")
            for number in range(len(self.levels))
            for key, name in (("weight", "W"), ("bias", "b"))
        }
