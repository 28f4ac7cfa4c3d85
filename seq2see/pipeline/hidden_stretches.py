"""Sounds taken apart into the places that are looked at: the frames of one of them are made to say nothing.

They become the mean of the sound's energies, as under the time masks that a model is trained with
(`augment.time_masks`), after the sound was normalised: nothing else of it changes. Silence would be something to hear,
a pause or an end; and to silence samples before they are normalised would change every other frame as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2see.data.sound import CELL, Frames
from seq2see.pipeline.occlusion import Apart, apart


@dataclass
class Stretches:
    """Places are stretches of neighbouring frames; their vectors are the frames as the encoder reads them, joined."""

    column: Frames
    count: int

    @property
    def room(self) -> int:
        return max(self.column.values.shape[1] // CELL, 1)

    def without(self, places: Int[Tensor, " rows"]) -> Frames:
        values = self.column.values
        hidden = self._place_of_frame() == places[:, None]
        means = values.mean((1, 2), keepdim=True)
        return replace(self.column, values=torch.where(hidden[..., None], means, values))

    def by_place(self, vectors: Float[Tensor, "rows frames size"]) -> Float[Tensor, "rows places"]:
        squares = vectors.square().sum(-1)
        found: Tensor = squares.new_zeros(len(squares), self.count).index_add_(1, self._place_of_frame(), squares)
        return found.sqrt()

    def _place_of_frame(self) -> Int[Tensor, " frames"]:
        mask = self.column.mask
        if not bool(mask.all()):
            raise ValueError("equal sounds expected, with no padding")
        frames = torch.arange(mask.shape[1], device=mask.device)
        every = frames_for_each(mask.shape[1], self.count)
        return frames // every if every else frames * self.count // len(frames)


def frames_for_each(frames: int, places: int) -> int:
    """How many frames each of so many places stands for, where neighbours were joined in pairs, or in stacks of any
    size; the last place may have fewer. 0 where that cannot have been: an encoder of one's own then shares them out
    evenly.

    >>> [frames_for_each(99, places) for places in (99, 50, 25, 33, 30)]
    [1, 2, 4, 3, 0]
    """
    every = 1
    while -(-frames // every) > places:
        every *= 2
    found = (number for number in (every, -(-frames // places)) if -(-frames // number) == places)
    return next(found, 0)


@apart.register
def _(column: Frames, part: str = "", shape: Sequence[int] = (), changes: bool = False) -> Apart:
    return Stretches(column, shape[0])
