"""A network that makes maps of pictures: one to train, or one that has learned before."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from seq2see.recipe.backbones import FILED, SMALL
from seq2see.recipe.basics import MOST_LAYERS, Settings, Size


class BackboneSettings(Settings):
    """A convolutional network that makes a map of a picture."""

    backbone: Annotated[str, Field(min_length=1)] = Field(
        "small",
        description="small (trained with the rest), efficientnet-lite0, -lite1 and -lite2 (pre-trained, extra "
        "`images`), resnet18, resnet34, resnet50, vgg16 (with `weights`), timm:NAME or torchvision:NAME (extras of "
        "these names)",
    )
    weights: str | None = Field(
        None,
        description="file of the backbone's weights, a state-dict as torch saves it or .safetensors; not given: those "
        "it was published with, and for resnet and vgg16 none: it begins at random",
    )
    tuned: bool = Field(
        False,
        description="all but small: go on learning (means and deviations that pre-trained weights have seen stay); "
        "false: frozen, its maps are kept on disk",
    )
    channels: list[Size] = Field(
        [32, 64, 128, 256],
        min_length=1,
        max_length=MOST_LAYERS,
        description="small: maps of each level; a level halves height and width",
    )
    pooled: list[Literal["both", "height"]] = Field(
        [],
        max_length=MOST_LAYERS,
        description="small: what each level halves; not given: both; height keeps the places of a line apart",
    )

    @property
    def frozen(self) -> bool:
        """Whether its backbone's maps never change, so that they need to be computed once only."""
        return self.backbone != SMALL and not self.tuned

    @property
    def pretrained(self) -> bool:
        """Whether its backbone has learned something before."""
        return self.weights is not None or self.backbone not in (SMALL, *FILED)
