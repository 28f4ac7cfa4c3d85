"""CTC prefix scores of hypotheses, which a search combines with the decoder's probabilities (Watanabe et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from seq2see.data.vocabulary import BLANK, EOS, SOS

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

    frames: Float[ndarray, "inputs places symbols"]
    symbol: Float[ndarray, "rows places"]
    blank: Float[ndarray, "rows places"]
    last: Int[ndarray, " rows"]
    prefix: Float[ndarray, " rows"]

    @classmethod
    def begin(
        cls, log_probs: Float[ndarray, "inputs places symbols"], mask: Bool[ndarray, "inputs places"], *, width: int
    ) -> CtcPrefixScorer:
        """The scorer of empty hypotheses, `width` for each input.

        >>> even = np.log(np.full((1, 2, 5), 0.2))
        >>> np.exp(CtcPrefixScorer.begin(even, np.ones((1, 2), dtype=bool), width=1).log_probs()[0, [EOS, 4]])
        array([0.04, 0.24])
        """
        frames = np.where(mask[..., None], np.maximum(log_probs.astype(np.float64), LEAST), NEVER)
        frames[..., BLANK] = np.where(mask, frames[..., BLANK], 0.0)
        blank = frames[..., BLANK].cumsum(1).repeat(width, 0)
        last = np.full(len(blank), SOS)
        return cls(frames, np.full_like(blank, -np.inf), blank, last, np.zeros_like(blank[:, 0]))

    def log_probs(self) -> Float[ndarray, "rows symbols"]:
        """log P(y | hypothesis) of every symbol, `<eos>` included.

        Zeros for a hypothesis that is too long for the places of its input.
        """
        frames = self._by_row(self.frames)
        other, same = self._before()
        extended = _logsumexp(other[..., None] + frames)
        extended[np.arange(len(extended)), self.last] = _logsumexp(same + self._frames_of(self.last))
        extended[:, EOS] = np.logaddexp(self.symbol[:, -1], self.blank[:, -1])
        extended[:, [BLANK, SOS]] = -np.inf
        possible = np.isfinite(self.prefix)
        return np.where(possible[:, None], extended - np.where(possible, self.prefix, 0.0)[:, None], 0.0)

    def read(self, tokens: Int[ndarray, " rows"]) -> CtcPrefixScorer:
        """Extend every hypothesis by its symbol (`<sos>`: by none)."""
        if (tokens == SOS).all():
            return self
        other, same = self._before()
        before = np.where((tokens == self.last)[:, None], same, other)
        here, blanks = self._frames_of(tokens), self._by_row(self.frames[..., BLANK])
        symbol = _recurrence(here, before)
        blank = _recurrence(blanks, _shifted(symbol))
        return replace(self, symbol=symbol, blank=blank, last=tokens, prefix=_logsumexp(before + here))

    def select(self, rows: Int[ndarray, " chosen"]) -> CtcPrefixScorer:
        """Continue with these hypotheses."""
        symbol, blank = self.symbol[rows], self.blank[rows]
        return replace(self, symbol=symbol, blank=blank, last=self.last[rows], prefix=self.prefix[rows])

    def compact(self, kept: Int[ndarray, " inputs"]) -> CtcPrefixScorer:
        """Continue with these inputs; their hypotheses are selected by `select`."""
        return replace(self, frames=self.frames[kept])

    def _before(self) -> tuple[Float[ndarray, "rows places"], Float[ndarray, "rows places"]]:
        """That the hypothesis is complete before place j, so that a symbol can begin there.

        First for any other symbol than the last one, then for the same one again, which needs a blank in between.
        """
        first = np.where(self.last == SOS, 0.0, -np.inf)
        return _shifted(np.logaddexp(self.symbol, self.blank), first), _shifted(self.blank, first)

    def _frames_of(self, tokens: Int[ndarray, " rows"]) -> Float[ndarray, "rows places"]:
        """log P of each row's symbol at every place."""
        frames = self._by_row(self.frames)
        return frames[np.arange(len(tokens)), :, tokens]

    def _by_row(self, values: Float[ndarray, "inputs *_"]) -> Float[ndarray, "rows *_"]:
        return values.repeat(len(self.last) // len(values), 0)


def _shifted(values: Float[ndarray, "rows places"], first: Float[ndarray, " rows"] | None = None) -> ndarray:
    """Each value one place later; first: what the first place gets, None: minus infinity."""
    first = first if first is not None else np.full_like(values[:, 0], -np.inf)
    return np.concatenate([first[:, None], values[:, :-1]], axis=1)


def _logsumexp(values: Float[ndarray, "rows places *_"]) -> Float[ndarray, "rows *_"]:
    """log sum exp over places; minus infinity where all are."""
    largest = values.max(1)
    base = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(base + np.log(np.exp(values - base[:, None]).sum(1)))


def _recurrence(p: Float[ndarray, "rows places"], c: Float[ndarray, "rows places"]) -> Float[ndarray, "rows places"]:
    """r_j = p_j (r_{j-1} + c_j) in logarithms, without a loop over places.

    r_j = P_j sum_{i<=j} c_i / P_{i-1}, with P_j the product of p up to j.

    >>> np.exp(_recurrence(np.log([[0.5, 0.25]]), np.log([[1.0, 0.5]])))
    array([[0.5 , 0.25]])
    """
    product = p.cumsum(1)
    return np.asarray(product + np.logaddexp.accumulate(c - (product - p), axis=1))
