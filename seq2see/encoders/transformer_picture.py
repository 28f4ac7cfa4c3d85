"""A picture read by self-attention: patches of its pixels are the places (Dosovitskiy et al. 2021)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn
from torch.nn.functional import dropout, pad

from seq2see.data.image import Pictures
from seq2see.encoders.base import Encoded
from seq2see.encoders.entrance import sinusoids
from seq2see.encoders.rows import cells_that_are_real, from_the_right
from seq2see.encoders.transformer_body import TransformerBody
from seq2see.errors import UserError
from seq2see.memory import Layout
from seq2see.recipe.schema import TransformerEncoderSettings


class PictureTransformer(TransformerBody):
    """x_rc = W_p [the pixels of the patch in row r, column c] + b_p + p_rc, then layers of self-attention.

    >>> settings = TransformerEncoderSettings(size=8, feedforward=16, patch=8)
    >>> PictureTransformer(settings, channels=1)(torch.zeros(2, 1, 16, 24), torch.tensor([24, 9])).places.mask.sum(1)
    tensor([6, 4])
    """

    patches: nn.Identity
    W_p: nn.Linear
    placing: GridPlacing

    def __init__(self, settings: TransformerEncoderSettings, *, channels: int):
        down, across = settings.pixels or (1, 1)
        placing = GridPlacing(
            settings.size, positions=settings.positions, longest=settings.longest, dropout=settings.dropout
        )
        cut = nn.Linear(channels * down * across, settings.size)
        super().__init__(settings, patches=nn.Identity(), W_p=cut, placing=placing)
        self.pixels = down, across

    @property
    def vectors(self) -> nn.Module:
        return self.patches

    def read(self, column: Pictures, *, maps: bool = False) -> Encoded:
        assert column.pixels is not None
        return self(column.pixels, column.widths, leftward=column.leftward, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        pixels: Num[Tensor, "batch channels height width"],
        widths: Int[Tensor, " batch"] | None = None,
        *,
        leftward: bool = False,
        maps: bool = False,
    ) -> Encoded:
        """pixels: from 0 to 255; widths: real pixels across; leftward: the rightmost real column is the first."""
        if widths is None:
            widths = torch.full((len(pixels),), pixels.shape[-1], device=pixels.device)
        cut: Float[Tensor, "batch numbers rows columns"] = self.patches(patches(pixels, widths, self.pixels))
        real = (widths + self.pixels[1] - 1) // self.pixels[1]
        if leftward:
            cut = from_the_right(cut, real)
        rows, columns = cut.shape[-2:]
        mask = cells_that_are_real(rows, columns, real)
        states = self.placing(self.W_p(cut.permute(0, 2, 3, 1))).flatten(1, 2)
        return self.climbed(states, mask, Layout("grid", (rows, columns), leftward), maps=maps)


class GridPlacing(nn.Module):
    """x_rc = v_rc + p_rc: sines and cosines of r in one half of p_rc, of c in the other, or a learned vector of each
    row added to one of each column."""

    def __init__(self, size: int, *, positions: str, longest: int, dropout: float):
        super().__init__()
        self.size, self.positions, self.longest, self.dropout = size, positions, longest, dropout
        if positions == "rotary":
            raise UserError("encoder.positions: rotary goes along a line; allowed: sinusoidal, learned, none")
        if positions == "learned":
            self.P_r = nn.Parameter(torch.randn(longest, size) / size**0.5)
            self.P_c = nn.Parameter(torch.randn(longest, size) / size**0.5)

    def forward(self, vectors: Float[Tensor, "batch rows columns size"]) -> Float[Tensor, "batch rows columns size"]:
        if self.positions != "none":
            vectors = vectors + self._where(*vectors.shape[1:3], like=vectors)
        return dropout(vectors, self.dropout, self.training)

    def _where(self, rows: int, columns: int, *, like: Tensor) -> Float[Tensor, "rows columns size"]:
        if self.positions == "learned":
            if max(rows, columns) > self.longest:
                raise UserError(
                    f"encoder.longest: {self.longest} learned positions, and the picture has {rows} x {columns} "
                    "places; raise it, or use sinusoidal positions, which have no end"
                )
            return self.P_r[:rows, None] + self.P_c[:columns]
        half = self.size // 2
        down = sinusoids(torch.arange(rows, device=like.device), half)[:, None].expand(-1, columns, -1)
        across = sinusoids(torch.arange(columns, device=like.device), self.size - half).expand(rows, -1, -1)
        return torch.cat([down, across], dim=-1).to(like.dtype)


def patches(
    pixels: Num[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"], patch: tuple[int, int]
) -> Float[Tensor, "batch numbers rows columns"]:
    """The numbers of each patch, from -1 to 1. What is not in the picture, on its right or below it, is 0: a picture
    does not depend on how wide the others of its batch are.

    >>> patches(torch.tensor([[[[0, 255, 0]]]]), torch.tensor([3]), (1, 2))[0, :, 0]
    tensor([[-1., -1.],
            [ 1.,  0.]])
    """
    down, across = patch
    height, width = pixels.shape[-2:]
    inside = torch.arange(width, device=pixels.device) < widths[:, None, None, None]
    values = pad((pixels / 127.5 - 1) * inside, (0, -width % across, 0, -height % down))
    cut: Tensor = values.unflatten(3, (-1, across)).unflatten(2, (-1, down))
    return cut.permute(0, 1, 3, 5, 2, 4).flatten(1, 3)
