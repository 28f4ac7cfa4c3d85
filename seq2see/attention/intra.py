"""Intra-attention: while a sequence is read, each step looks back at the states of the steps before it."""

from __future__ import annotations

import re

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention.asking import energies_of, keys_of
from seq2see.attention.normalisers import softmax
from seq2see.attention.records import Candidates
from seq2see.attention.scores import build_score, equation_of, scores
from seq2see.attention.tape import Tape
from seq2see.errors import UserError
from seq2see.memory import Layout
from seq2see.products import Product, plain_product


class IntraAttention(nn.Module):
    """c_j = sum_{i<j} a_ji h_i, a_j = softmax over i < j of score(q_j, h_i), q_j = Q_x x_j + Q_h h_{j-1}.

    The query holds the symbol that is being read beside the state before it (as in Cheng, Dong and Lapata 2016): what
    is worth looking back at depends on what has just come. It has the size of the states, so that any score fits.
    A score that nobody asks (static, uniform) has no query.
    """

    def __init__(self, score: str, *, width: int, size: int):
        super().__init__()
        kind = scores[score]
        if kind.ordered or kind.remembers:
            raise UserError(f"encoder.self_attention: {score} goes by where places lie, or by earlier looks")
        self.score = build_score(score, size if kind.asks else 0, size, {"size": size})
        self.Q_x = nn.Linear(width, size, bias=False) if kind.asks else None
        self.Q_h = nn.Linear(size, size, bias=False) if kind.asks else None

    def asking(self, x: Float[Tensor, "batch steps width"]) -> Float[Tensor, "batch steps query"]:
        """Q_x x_j of all steps: the half of the queries that no state enters."""
        return x[..., :0] if self.Q_x is None else self.Q_x(x)

    def write(self, state: Float[Tensor, "batch size"], tape: Tape) -> Float[Tensor, "batch size"]:
        """Let later steps look at a state; its key is computed here, once."""
        return tape.write(state, keys_of(self.score, state[:, None])[:, 0])

    def forward(
        self,
        asked: Float[Tensor, "batch query"],
        state: Float[Tensor, "batch size"],
        tape: Tape,
        *,
        times: Product = plain_product,
    ) -> Float[Tensor, "batch size"]:
        """The context of the next step, from its half of the query and the state written last."""
        if self.Q_h is not None:
            asked = asked + times(state, self.Q_h.weight, f"{id(self)}.Q_h")
        energies = energies_of(self.score, asked[:, None], Candidates(tape.keys(state), Layout()))
        weights = softmax(energies.float()).to(energies.dtype)
        return tape.mix(weights, state).squeeze(1)


def intra_equations(score: str, h: str) -> list[str]:
    """How a sequence of states h_1, h_2, .. looks back at itself: for `show`.

    >>> intra_equations("dot", "h")[1]
    'e_i = q . k_i, with q = Q_x e(x_j) + Q_h h_{j-1} and k_i = h_i'
    """
    energy = re.sub(r"_j\b", "_i", equation_of(score))
    asked = f", with q = Q_x e(x_j) + Q_h {h}_{{j-1}}" if scores[score].asks else ""
    keys = "" if not re.search(r"\bk_i\b", energy) else f" and k_i = {h}_i" if asked else f", with k_i = {h}_i"
    return [
        f"self-attention: c_j = sum_{{i<j}} a_ji {h}_i,  a_ji = exp(e_i) / sum_{{l<j}} exp(e_l);  c_1 = 0",
        f"{energy}{asked}{keys}",
    ]
