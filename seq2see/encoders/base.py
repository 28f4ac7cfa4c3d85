"""What every encoder gives: places and a summary."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.memory import Places
from seq2see.registry import Registry


class Encoder(nn.Module):
    """Reads an input; `size` is the width of its places, `summary_size` that of its summary."""

    size: int
    summary_size: int


encoders: Registry[type[Encoder]] = Registry("encoder")


@dataclass
class Encoded:
    """places to look at, and the whole input as one vector: summary (batch, size)."""

    places: Places
    summary: Float[Tensor, "batch size"]
