"""How a video is read: what is seen of each frame, and what reads the frames over time."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from seq2see.recipe.backbone_settings import BackboneSettings
from seq2see.recipe.basics import MOST_LAYERS, CellSettings, Positions, Share, Size
from seq2see.recipe.readers import Reader, View


class VideoEncoderSettings(CellSettings, BackboneSettings, Reader):
    """h_1 .. h_M: networks make maps of each frame, what is in it and what moves, another reads them over time."""

    reads: ClassVar[tuple[str, ...]] = ("video",)
    lies: ClassVar[str] = "frames"
    kind: Literal["video"] = Field("video", description="convolutions over frames, another network over time")
    appearance: bool = Field(True, description="what is in each frame, by `backbone`; false: what moves, alone")
    motion: list[Size] = Field(
        [],
        max_length=MOST_LAYERS,
        description="maps of each level of 3-D convolutions over short clips; a level halves height and width",
    )
    spans: list[Annotated[int, Field(ge=1, le=15)]] = Field(
        [], max_length=MOST_LAYERS, description="motion: frames that each level sees, odd numbers; not given: 3 each"
    )
    motion_from: Literal["pixels", "changes"] = Field(
        "pixels", description="motion: the pixels as they are, or without each one's mean over the clip: what moves"
    )
    frame: Literal["mean", "flat"] = Field(
        "mean", description="how a frame's maps become a vector: the mean of their cells, or all of them joined"
    )
    over_time: Literal["recurrent", "transformer", "none"] = Field(
        "recurrent",
        description="what reads the frames: recurrent layers, layers of self-attention, or nothing: each for itself",
    )
    bidirectional: bool = Field(True, description="recurrent: read in both directions, the states joined")
    heads: Size = Field(4, description="transformer: looks side by side in each layer; divides the size")
    feedforward: Size = Field(1024, description="transformer: size of the inner layer behind each look")
    positions: Positions = Field("sinusoidal", description="transformer: how a frame knows where it stands in time")
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="transformer, learned positions: frames of the longest clip"
    )
    dropout: Share = Field(
        0.0,
        description="recurrent: between layers and on the output of the last; transformer: on what each part of "
        "a layer gives; with all on what enters",
    )
    regions: bool = Field(
        False, description="the cells of each frame's maps are places too: `NAME.regions`, beside or instead of frames"
    )

    @model_validator(mode="before")
    @classmethod
    def _said_before(cls, given: Any) -> Any:
        """`recurrent: true` or `false`, as recipes and models of before `over_time` have it."""
        if not isinstance(given, dict) or not isinstance(given.get("recurrent"), bool) or "over_time" in given:
            return given
        rest = {key: value for key, value in given.items() if key != "recurrent"}
        return rest | {"over_time": "recurrent" if given["recurrent"] else "none"}

    @property
    def recurrent(self) -> bool:
        return self.over_time == "recurrent"

    @property
    def places_size(self) -> int:
        return self.size * (2 if self.recurrent and self.bidirectional else 1)

    @property
    def frozen(self) -> bool:
        return self.appearance and super().frozen

    @property
    def seen(self) -> list[int]:
        """Frames that each level of `motion` sees."""
        return self.spans or [3] * len(self.motion)

    @property
    def further(self) -> dict[str, View]:
        return {"regions": (self.places_size, "frames-grid")} if self.regions else {}
