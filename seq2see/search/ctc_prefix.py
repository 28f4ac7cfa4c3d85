"""CTC prefix scores: what the places say in their order, joined with the decoder's own step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.data.batches import EOS, SOS
from seq2see.decoders.ctc import BLANK

LEAST, NEVER = -1000.0, -1e6
"""Floors of log P at one place, and behind the last one: sums over places stay numbers, and differences of sums exact
in double precision."""


@dataclass
class Along:
    """How far every hypothesis has come along its input's line, in log-probabilities of double precision.

    line: (inputs, places, symbols), log P(z_j | h_j); behind an input's last place nothing but blanks follow.
    ended, resting: (rows, places), that the first j places say the hypothesis and the last of them is its last symbol,
    or a blank; last: (rows,), that symbol; said: (rows,), that the line begins with the hypothesis at all.
    A row is one of the hypotheses of an input; each input has as many.
    """

    line: Float[Tensor, "inputs places symbols"]
    ended: Float[Tensor, "rows places"]
    resting: Float[Tensor, "rows places"]
    last: Int[Tensor, " rows"]
    said: Float[Tensor, " rows"]

    @classmethod
    def begin(
        cls, log_probs: Float[Tensor, "inputs places symbols"], mask: Bool[Tensor, "inputs places"], *, width: int
    ) -> Along:
        """Nothing is said yet: blanks alone.

        >>> even = torch.full((1, 2, 5), 0.2).log()
        >>> Along.begin(even, torch.ones(1, 2, dtype=torch.bool), width=1).log_probs().exp()[0, [EOS, 4]]
        tensor([0.0400, 0.2400], dtype=torch.float64)
        """
        line = log_probs.double().clamp(min=LEAST).masked_fill(~mask[..., None], NEVER)
        line[..., BLANK] = line[..., BLANK].masked_fill(~mask, 0.0)
        resting = line[..., BLANK].cumsum(1).repeat_interleave(width, 0)
        last = torch.full((len(resting),), SOS, device=line.device)
        return cls(line, torch.full_like(resting, -torch.inf), resting, last, torch.zeros_like(resting[:, 0]))

    def log_probs(self) -> Float[Tensor, "rows symbols"]:
        """log P(y | what is said) of every symbol, `<eos>` included; blanks are not said. Of a hypothesis that the
        line has not places enough for nothing is held: 0 everywhere."""
        line = self._by_row(self.line)
        anew, again = self._before()
        begun = torch.logsumexp(anew[..., None] + line, dim=1)
        repeated = torch.logsumexp(again + self._of(self.last), dim=1)
        begun = begun.scatter(1, self.last[:, None], repeated[:, None])
        begun[:, EOS] = torch.logaddexp(self.ended[:, -1], self.resting[:, -1])
        begun[:, [BLANK, SOS]] = -torch.inf
        return torch.where(self.said.isfinite()[:, None], begun - self.said[:, None], 0.0)

    def read(self, tokens: Int[Tensor, " rows"]) -> Along:
        """Every hypothesis goes on with its symbol (`<sos>`: with none)."""
        if bool((tokens == SOS).all()):
            return self
        anew, again = self._before()
        before = torch.where((tokens == self.last)[:, None], again, anew)
        here, blank = self._of(tokens), self._by_row(self.line[..., BLANK])
        ended = _recurrence(here, before)
        resting = _recurrence(blank, _later(ended))
        return replace(self, ended=ended, resting=resting, last=tokens, said=torch.logsumexp(before + here, dim=1))

    def select(self, rows: Int[Tensor, " chosen"]) -> Along:
        """Go on from these hypotheses."""
        ended, resting = self.ended[rows], self.resting[rows]
        return replace(self, ended=ended, resting=resting, last=self.last[rows], said=self.said[rows])

    def compact(self, kept: Int[Tensor, " inputs"]) -> Along:
        """Lines of these inputs alone; their hypotheses are selected apart."""
        return replace(self, line=self.line[kept])

    def _before(self) -> tuple[Float[Tensor, "rows places"], Float[Tensor, "rows places"]]:
        """That all is said before place j, so that a symbol can begin there: any other one, and the same one again,
        which needs a blank in between."""
        first = torch.where(self.last == SOS, 0.0, -torch.inf)
        return _later(torch.logaddexp(self.ended, self.resting), first), _later(self.resting, first)

    def _of(self, tokens: Int[Tensor, " rows"]) -> Float[Tensor, "rows places"]:
        """log P of each row's symbol at every place."""
        line = self._by_row(self.line)
        return line.gather(2, tokens[:, None, None].expand(-1, line.shape[1], 1)).squeeze(2)

    def _by_row(self, values: Float[Tensor, "inputs *_"]) -> Float[Tensor, "rows *_"]:
        return values.repeat_interleave(len(self.last) // len(values), 0)


def _later(values: Float[Tensor, "rows places"], first: Float[Tensor, " rows"] | None = None) -> Tensor:
    """Each value one place further on; `first` (nothing: impossible) comes to stand at the first place."""
    first = first if first is not None else torch.full_like(values[:, 0], -torch.inf)
    return torch.cat([first.to(values)[:, None], values[:, :-1]], dim=1)


def _recurrence(
    stays: Float[Tensor, "rows places"], comes: Float[Tensor, "rows places"]
) -> Float[Tensor, "rows places"]:
    """r_j = p_j (r_{j-1} + c_j) without a loop over places, all in logarithms: r_j = P_j sum_{i<=j} c_i / P_{i-1}, with
    P_j the product of p up to j.

    >>> stays, comes = torch.tensor([[0.5, 0.25]]).log().double(), torch.tensor([[1.0, 0.5]]).log().double()
    >>> _recurrence(stays, comes).exp()
    tensor([[0.5000, 0.2500]], dtype=torch.float64)
    """
    so_far = stays.cumsum(1)
    return so_far + torch.logcumsumexp(comes - (so_far - stays), dim=1)
