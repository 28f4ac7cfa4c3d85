"""What every encoder gives: places and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.memory import Places
from seq2see.registry import Registry


@dataclass
class Encoded:
    """places to look at, and the whole input as one vector: summary (batch, size)."""

    places: Places
    summary: Float[Tensor, "batch size"]


class Encoder(nn.Module):
    """Reads an input; `size` is the width of its places, `summary_size` that of its summary.

    `forward` takes plain tensors, whichever a kind needs; `read` takes them out of a column of a batch. So the model
    knows nothing of what an input is made of.
    """

    size: int
    summary_size: int

    def read(self, column: Any) -> Encoded:
        raise NotImplementedError


encoders: Registry[type[Encoder]] = Registry("encoder")
