"""How a video is read: what is seen of each frame, and what reads the frames over time."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from seq2see.recipe.backbone_settings import BackboneSettings
from seq2see.recipe.basics import CellSettings, Positive
from seq2see.recipe.readers import Reader, View


class VideoEncoderSettings(CellSettings, BackboneSettings, Reader):
    """h_1 .. h_M: networks make maps of each frame, of what is in it and of what moves, a recurrent one reads them."""

    reads: ClassVar[tuple[str, ...]] = ("video",)
    lies: ClassVar[str] = "frames"
    kind: Literal["video"] = Field("video", description="convolutions over frames, recurrent layers over time")
    appearance: bool = Field(True, description="what is in each frame, by `backbone`; false: what moves, alone")
    motion: list[Positive] = Field(
        [], description="maps of each level of 3-D convolutions over short clips; a level halves height and width"
    )
    spans: list[Annotated[int, Field(ge=1, le=15)]] = Field(
        [], description="motion: frames that each level sees, odd numbers; not given: 3 each"
    )
    motion_from: Literal["pixels", "changes"] = Field(
        "pixels", description="motion: the pixels as they are, or without each one's mean over the clip: what moves"
    )
    frame: Literal["mean", "flat"] = Field(
        "mean", description="how a frame's maps become a vector: the mean of their cells, or all of them joined"
    )
    recurrent: bool = Field(True, description="recurrent layers over the frames; false: every frame for itself")
    bidirectional: bool = Field(True, description="read in both directions, the states joined")
    regions: bool = Field(
        False, description="the cells of each frame's maps are places too: `NAME.regions`, beside or instead of frames"
    )

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
