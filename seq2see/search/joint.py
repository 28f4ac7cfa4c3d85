"""Where an ensemble looked: the mean of its models' looks, for the inputs they cut into the same places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from seq2see.decoders import Ready
from seq2see.memory import Layout, Places


@dataclass
class JointPlaces:
    """What can be looked at under one input name, by all models together.

    mask: (batch, places), True where a place is real; agreed: (batch,), True where all models that look at the input
    see the same places in it (models with tokens of their own may not), so that a mean of their looks has a meaning;
    layout, tokens: how the places lie, and what stands there, as far as the encoder knows; parent: the larger place
    that holds each;
    lower: the looks of that name are those of a layer below the last one, which tell how an output came about but do
    not count as where the decoder looked.
    """

    mask: Bool[Tensor, "batch places"]
    agreed: Bool[Tensor, " batch"]
    layout: Layout
    tokens: list[list[str]] | None = None
    lower: bool = False
    parent: Int[Tensor, "batch places"] | None = None

    def layout_of(self, row: int) -> dict[str, Any]:
        """How the real places of a row lie; `parts`: how many of them each larger place holds, where there are any."""
        real = self.mask[row]
        told = self.layout.to_dict(int(real.sum()))
        return told if self.parent is None else told | {"parts": self.parent[row, real].bincount().tolist()}


def joint_places(readies: Sequence[Ready]) -> dict[str, JointPlaces]:
    """The places of every input that any of the models looks at. Decided row by row: the rest of a batch has no say."""
    every = [ready.by_layer() for ready in readies]
    names = dict.fromkeys(name for looks in every for name in looks)
    found = {name: _one_input([looks[name].places for looks in every if name in looks]) for name in names}
    for name, joint in found.items():
        joint.lower = not any(name in ready.looks for ready in readies)
    return found


def _one_input(seen: Sequence[Places]) -> JointPlaces:
    masks = _same_width([places.mask for places in seen])
    agreed = torch.stack([(mask == masks[0]).all(-1) for mask in masks]).all(0)
    told = [places.tokens for places in seen if places.tokens is not None]
    if len(told) > 1:
        same = [all(row == other for other in rest) for row, *rest in zip(*told, strict=True)]
        agreed = agreed & torch.tensor(same, device=agreed.device)
    return JointPlaces(masks[0], agreed, seen[0].layout, told[0] if told else None, parent=seen[0].parent)


def joint_looks(looks: Sequence[Mapping[str, Tensor]]) -> dict[str, Float[Tensor, "rows *heads places"]]:
    """{name: (rows, places)}: the mean over the models that look at that input."""
    if len(looks) == 1:
        return dict(looks[0])
    names = dict.fromkeys(name for one in looks for name in one)
    return {name: torch.stack(_same_width([one[name] for one in looks if name in one])).mean(0) for name in names}


def fitted(weights: Float[Tensor, "rows _"], places: int) -> Float[Tensor, "rows places"]:
    """The same weights for so many places: padding added or taken away behind the real ones."""
    return pad(weights, (0, places - weights.shape[-1]))


def _same_width(parts: list[Tensor]) -> list[Tensor]:
    width = max(part.shape[-1] for part in parts)
    return [part if part.shape[-1] == width else pad(part, (0, width - part.shape[-1])) for part in parts]
