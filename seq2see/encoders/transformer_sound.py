"""A sound read by self-attention: a few neighbouring frames are a place."""

from __future__ import annotations

import torch  # noqa: F401 - for the example
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import pad

from seq2see.data.sound import Frames
from seq2see.encoders.base import Encoded
from seq2see.encoders.entrance import Placing
from seq2see.encoders.transformer_body import TransformerBody
from seq2see.memory import Layout
from seq2see.recipe.schema import TransformerEncoderSettings


class SoundTransformer(TransformerBody):
    """x_j = W_p [the `stack` frames of place j] + b_p + p_j, then layers of self-attention.

    Frames are too many and too alike to be looked at one by one: what a layer costs grows with their square.

    >>> encoder = SoundTransformer(TransformerEncoderSettings(size=8, feedforward=16, stack=4), width=3)
    >>> encoder(torch.zeros(1, 9, 3), torch.ones(1, 9, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    frames: nn.Identity
    W_p: nn.Linear
    placing: Placing

    def __init__(self, settings: TransformerEncoderSettings, *, width: int):
        stack = settings.stack or 1
        placing = Placing(
            settings.size,
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
            key="encoder",
            limit="longest",
        )
        joined = nn.Linear(width * stack, settings.size)
        super().__init__(settings, frames=nn.Identity(), W_p=joined, placing=placing)
        self.stack = stack

    @property
    def vectors(self) -> nn.Module:
        return self.frames

    def read(self, column: Frames, *, maps: bool = False) -> Encoded:
        return self(column.values, column.mask, column.names, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        frames: Float[Tensor, "batch frames width"],
        mask: Bool[Tensor, "batch frames"],
        names: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """names: of the real frames; a place has that of its first."""
        joined, real = stacked(self.frames(frames), mask, self.stack)
        tokens = None if names is None else [row[:: self.stack] for row in names]
        return self.climbed(self.placing(self.W_p(joined)), real, Layout("frames"), tokens, maps=maps)


def stacked(
    frames: Float[Tensor, "batch frames width"], mask: Bool[Tensor, "batch frames"], stack: int
) -> tuple[Float[Tensor, "batch places joined"], Bool[Tensor, "batch places"]]:
    """So many neighbours joined, real where the first one is; those that the last place lacks are zeros.

    Masked frames count as zeros, so that a row does not depend on how much padding its batch gives it.

    >>> stacked(torch.arange(4.0).view(1, 4, 1), torch.ones(1, 4, dtype=torch.bool), 3)[0]
    tensor([[[0., 1., 2.],
             [3., 0., 0.]]])
    """
    lacking = -frames.shape[1] % stack
    frames, mask = pad(frames * mask[..., None], (0, 0, 0, lacking)), pad(mask, (0, lacking))
    return frames.unflatten(1, (-1, stack)).flatten(2), mask[:, ::stack]
