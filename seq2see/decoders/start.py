"""s_0: copied from a summary, through a dense layer, or learned where nothing conditions the decoder."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.errors import UserError


def joined_size(sizes: list[int], join: str) -> int:
    """Size of several summaries joined as the recipe says."""
    if join == "compare":
        if len(sizes) != 2 or sizes[0] != sizes[1]:
            raise UserError(f"decoder.join compare needs two inputs of one summary size, got sizes {sizes}")
        return 4 * sizes[0]
    return sum(sizes)


def join_summaries(summaries: list[Float[Tensor, "batch _"]], join: str) -> Float[Tensor, "batch _"]:
    """[u; v; ...], or [u; v; |u - v|; u * v]."""
    if join == "compare":
        u, v = summaries
        return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
    return summaries[0] if len(summaries) == 1 else torch.cat(summaries, dim=-1)


class Start(nn.Module):
    """The first state: `parts` vectors of `size` (layers times what a cell carries).

    copy: every layer's output starts as the summary, what else a cell carries as zeros.
    """

    def __init__(self, sizes: Mapping[str, int], *, size: int, layers: int, states: int, by: str, join: str):
        super().__init__()
        self.names = tuple(sizes)
        self.size, self.layers, self.states, self.join = size, layers, states, join
        self.copied = bool(sizes) and by == "copy"
        if not sizes:
            # Not zero: as a first query it would give every place the same energy, and W_q no gradient.
            self.s_0 = nn.Parameter(0.1 * torch.randn(layers * states * size))
            return
        width = joined_size(list(sizes.values()), join)
        if self.copied and width != size:
            raise UserError(
                f"decoder.start_by copy needs decoder.size equal to the summary's size {width}, got {size}; "
                f"set decoder.size={width} or decoder.start_by=dense"
            )
        if not self.copied:
            self.W_start = nn.Linear(width, layers * states * size)

    def forward(self, summaries: Mapping[str, Tensor], rows: int) -> list[tuple[Tensor, ...]]:
        """Per layer the first cell state, each part (rows, size)."""
        if not self.names:
            flat = self.s_0.expand(rows, -1)
        else:
            summary = join_summaries([summaries[name] for name in self.names], self.join)
            if self.copied:
                rest = (torch.zeros_like(summary),) * (self.states - 1)
                return [(summary, *rest) for _ in range(self.layers)]
            flat = torch.tanh(self.W_start(summary)).float()
        parts = flat.view(rows, self.layers, self.states, self.size)
        return [tuple(parts[:, layer, part] for part in range(self.states)) for layer in range(self.layers)]
