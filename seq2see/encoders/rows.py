"""Maps of pictures row by row: which columns are real, which comes first, and a network that reads along the rows."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2see.encoders.layers import Read, RecurrentLayers


def cells_that_are_real(rows: int, columns: int, real: Int[Tensor, " batch"]) -> Bool[Tensor, "batch places"]:
    """Cells over padding alone are no places."""
    line = torch.arange(columns, device=real.device) < real[:, None]
    return line.repeat(1, rows)


def from_the_right(
    found: Float[Tensor, "batch size rows columns"], real: Int[Tensor, " batch"]
) -> Float[Tensor, "batch size rows columns"]:
    """Maps whose real columns are in the opposite order; padding stays behind them.

    >>> from_the_right(torch.tensor([[[[1.0, 2.0, 3.0, 0.0]]]]), torch.tensor([3])).flatten()
    tensor([3., 2., 1., 0.])
    """
    at = torch.arange(found.shape[-1], device=found.device)
    order = torch.where(at < real[:, None], real[:, None] - 1 - at, at)
    return found.gather(3, order[:, None, None].expand(found.shape))


def along_rows(
    layers: RecurrentLayers, states: Float[Tensor, "batch places size"], mask: Bool[Tensor, "batch places"], rows: int
) -> Float[Tensor, "batch places joined"]:
    """Each row of places read by itself, all by the same network; padding gives zeros."""
    lines, real = (one.unflatten(1, (rows, -1)).flatten(0, 1) for one in (states, mask))
    read: Read = layers(lines, real)
    ended = read.states * real[..., None]
    joined: Tensor = ended.unflatten(0, (-1, rows)).flatten(1, 2)
    return joined
