"""CTC prefix scores of hypotheses, which a search combines with the decoder's probabilities (Watanabe et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.data.batches import EOS, SOS
from seq2see.decoders.ctc import BLANK

LEAST, NEVER = -1000.0, -1e6
"""Floors of log P at one place, and after the last one: sums over places stay finite, and their differences exact in
double precision."""


@dataclass
class CtcPrefixScorer:
    """The CTC forward variables of every hypothesis, as log-probabilities in double precision.

    frames: (inputs, places, symbols), log P(z_j | h_j); after an input's last place all are blanks.
    symbol, blank: (rows, places), that the first j places give the hypothesis and place j its last symbol, or a blank;
    last: (rows,), the last symbol; prefix: (rows,), that the output begins with the hypothesis.
    A row is a hypothesis; all inputs have the same number of them.
    """

    frames: Float[Tensor, "inputs places symbols"]
    symbol: Float[Tensor, "rows places"]
    blank: Float[Tensor, "rows places"]
    last: Int[Tensor, " rows"]
    prefix: Float[Tensor, " rows"]

    @classmethod
    def begin(
        cls, log_probs: Float[Tensor, "inputs places symbols"], mask: Bool[Tensor, "inputs places"], *, width: int
    ) -> CtcPrefixScorer:
        """The scorer of empty hypotheses, `width` for each input.

        >>> even = torch.full((1, 2, 5), 0.2).log()
        >>> CtcPrefixScorer.begin(even, torch.ones(1, 2, dtype=torch.bool), width=1).log_probs().exp()[0, [EOS, 4]]
        tensor([0.0400, 0.2400], dtype=torch.float64)
        """
        frames = log_probs.double().clamp(min=LEAST).masked_fill(~mask[..., None], NEVER)
        frames[..., BLANK] = frames[..., BLANK].masked_fill(~mask, 0.0)
        blank = frames[..., BLANK].cumsum(1).repeat_interleave(width, 0)
        last = torch.full((len(blank),), SOS, device=frames.device)
        return cls(frames, torch.full_like(blank, -torch.inf), blank, last, torch.zeros_like(blank[:, 0]))

    def log_probs(self) -> Float[Tensor, "rows symbols"]:
        """log P(y | hypothesis) of every symbol, `<eos>` included.

        Zeros for a hypothesis that is too long for the places of its input.
        """
        frames = self._by_row(self.frames)
        other, same = self._before()
        extended = torch.logsumexp(other[..., None] + frames, dim=1)
        repeated = torch.logsumexp(same + self._frames_of(self.last), dim=1)
        extended = extended.scatter(1, self.last[:, None], repeated[:, None])
        extended[:, EOS] = torch.logaddexp(self.symbol[:, -1], self.blank[:, -1])
        extended[:, [BLANK, SOS]] = -torch.inf
        return torch.where(self.prefix.isfinite()[:, None], extended - self.prefix[:, None], 0.0)

    def read(self, tokens: Int[Tensor, " rows"]) -> CtcPrefixScorer:
        """Extend every hypothesis by its symbol (`<sos>`: by none)."""
        if bool((tokens == SOS).all()):
            return self
        other, same = self._before()
        before = torch.where((tokens == self.last)[:, None], same, other)
        here, blanks = self._frames_of(tokens), self._by_row(self.frames[..., BLANK])
        symbol = _recurrence(here, before)
        blank = _recurrence(blanks, _shifted(symbol))
        return replace(self, symbol=symbol, blank=blank, last=tokens, prefix=torch.logsumexp(before + here, dim=1))

    def select(self, rows: Int[Tensor, " chosen"]) -> CtcPrefixScorer:
        """Continue with these hypotheses."""
        symbol, blank = self.symbol[rows], self.blank[rows]
        return replace(self, symbol=symbol, blank=blank, last=self.last[rows], prefix=self.prefix[rows])

    def compact(self, kept: Int[Tensor, " inputs"]) -> CtcPrefixScorer:
        """Continue with these inputs; their hypotheses are selected by `select`."""
        return replace(self, frames=self.frames[kept])

    def _before(self) -> tuple[Float[Tensor, "rows places"], Float[Tensor, "rows places"]]:
        """That the hypothesis is complete before place j, so that a symbol can begin there.

        First for any other symbol than the last one, then for the same one again, which needs a blank in between.
        """
        first = torch.where(self.last == SOS, 0.0, -torch.inf)
        return _shifted(torch.logaddexp(self.symbol, self.blank), first), _shifted(self.blank, first)

    def _frames_of(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, "rows places"]:
        """log P of each row's symbol at every place."""
        frames = self._by_row(self.frames)
        return frames.gather(2, tokens[:, None, None].expand(-1, frames.shape[1], 1)).squeeze(2)

    def _by_row(self, values: Float[Tensor, "inputs *_"]) -> Float[Tensor, "rows *_"]:
        return values.repeat_interleave(len(self.last) // len(values), 0)


def _shifted(values: Float[Tensor, "rows places"], first: Float[Tensor, " rows"] | None = None) -> Tensor:
    """Each value one place later; first: what the first place gets, None: minus infinity."""
    first = first if first is not None else torch.full_like(values[:, 0], -torch.inf)
    return torch.cat([first.to(values)[:, None], values[:, :-1]], dim=1)


def _recurrence(p: Float[Tensor, "rows places"], c: Float[Tensor, "rows places"]) -> Float[Tensor, "rows places"]:
    """r_j = p_j (r_{j-1} + c_j) in logarithms, without a loop over places.

    r_j = P_j sum_{i<=j} c_i / P_{i-1}, with P_j the product of p up to j.

    >>> p, c = torch.tensor([[0.5, 0.25]]).log().double(), torch.tensor([[1.0, 0.5]]).log().double()
    >>> _recurrence(p, c).exp()
    tensor([[0.5000, 0.2500]], dtype=torch.float64)
    """
    product = p.cumsum(1)
    return product + torch.logcumsumexp(c - (product - p), dim=1)
