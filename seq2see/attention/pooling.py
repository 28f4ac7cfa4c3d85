"""Several vectors as one, by an attention that nobody asks: it goes by what the places hold."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2see.attention.attention import Attention
from seq2see.attention.scores import Static
from seq2see.memory import Places


class Pooling(nn.Module):
    """s = sum_j a_j h_j, a = softmax_j(u . tanh(W h_j + b)): the look of hierarchical attention.

    It is the score `static`, which is additive without its query term.
    """

    def __init__(self, size: int, *, hidden: int):
        super().__init__()
        self.look = Attention(Static(0, size, hidden))

    def forward(
        self, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"]
    ) -> tuple[Float[Tensor, "batch size"], Float[Tensor, "batch places"]]:
        """The pooled vector of each row, zeros where nothing is real, and the weights."""
        nobody = states.new_zeros(len(states), 1, 0)
        look = self.look(nobody, self.look.prepare(Places(states, mask)))
        return look.context.squeeze(1), look.weights.squeeze(1)
