"""The video encoder: appearance and motion features of frames, read over time by cells or a Transformer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, relu

from seq2see.data.video_files import VideoInput
from seq2see.dropout import SequenceDropout, dropout
from seq2see.encoders.backbones import Backbone, backbone_symbols, build_backbone, keep_statistics
from seq2see.encoders.backbones.base import SMALLEST, BackboneSettings, check_levels, halved, unknown_backbone
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.layers import LayerOutput, RecurrentLayers, masked_mean, norm_groups
from seq2see.encoders.positional_input import position_equation
from seq2see.encoders.transformer_layers import (
    LAYER,
    LEVELS,
    RecurrentLevelSettings,
    TransformerLevel,
    TransformerLevelSettings,
)
from seq2see.errors import UserError
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import EncoderMap, Places, View
from seq2see.modalities.video import Clips
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Parts, Share, Size, no_effect
from seq2see.settings.columns import EncoderSettings
from seq2see.settings.columns import View as SettingsView
from seq2see.symbols import Symbols, default_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

STILL = 0.01
"""The standard deviation of pixels (from -1 to 1) below which nothing moves: the rest is camera noise."""


class Motion(nn.Module):
    """Motion features by levels of 3-D convolution, normalisation and relu.

    (batch, frames, channels, height, width) -> (batch, frames, size, rows, columns). Each level halves height and
    width, the first with a wider kernel, and spans `spans` frames; the number of frames stays. Each frame is normalised
    alone, and masked frames are zeros at every level, so that a clip does not depend on the others of its batch.

    >>> Motion(1, [4, 8], [3, 1])(torch.zeros(2, 5, 1, 16, 24), torch.ones(2, 5, dtype=torch.bool)).shape
    torch.Size([2, 5, 8, 4, 6])
    """

    def __init__(self, channels: int, widths: Sequence[int], spans: Sequence[int]):
        super().__init__()
        below = [channels, *widths]
        self.convolutions = nn.ModuleList(
            nn.Conv3d(
                below[level],
                width,
                (span, _kernel(level), _kernel(level)),
                stride=(1, 2, 2),
                padding=(span // 2, _kernel(level) // 2, _kernel(level) // 2),
                bias=False,
            )
            for level, (width, span) in enumerate(zip(widths, spans, strict=True))
        )
        whole: Any = self.convolutions
        whole.to(memory_format=torch.channels_last_3d)  # two to four times as fast on most machines
        self.norms = nn.ModuleList(nn.GroupNorm(norm_groups(width), width) for width in widths)
        self.size = widths[-1]

    def forward(
        self, pixels: Float[Tensor, "batch frames channels height width"], mask: Bool[Tensor, "batch frames"]
    ) -> Float[Tensor, "batch frames size rows columns"]:
        """pixels: from -1 to 1."""
        real = mask[:, :, None, None, None]
        states = pixels * real
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            convolved = convolution(states.transpose(1, 2).contiguous(memory_format=torch.channels_last_3d)).transpose(
                1, 2
            )
            batch, frames = convolved.shape[:2]
            states = (
                relu(norm(convolved.reshape(batch * frames, *convolved.shape[2:]))).unflatten(0, (batch, frames)) * real
            )
        return states


def changes(
    pixels: Float[Tensor, "batch frames channels height width"], mask: Bool[Tensor, "batch frames"]
) -> Float[Tensor, "batch frames channels height width"]:
    """(x_t - mean_t x_t) / s, s being the standard deviation of all pixels of the clip from their means over time.

    What stays the same is removed, and small movements count as much as large ones; a still clip gives zeros.

    >>> changes(torch.tensor([1.0, 3.0]).view(1, 2, 1, 1, 1), torch.ones(1, 2, dtype=torch.bool)).flatten().tolist()
    [-1.0, 1.0]
    """
    real = mask[:, :, None, None, None]
    count = real.sum(1, keepdim=True).clamp(min=1)
    moved = (pixels - (pixels * real).sum(1, keepdim=True) / count) * real
    spread = (moved.square().sum((1, 2, 3, 4), keepdim=True) / (count * pixels[0, 0].numel())).sqrt()
    return moved / spread.clamp(min=STILL)


def _kernel(level: int) -> int:
    return 3 if level else 5


Maps = Float[Tensor, "batch frames _ _ _"]
"""(batch, frames, size, rows, columns); a clip may have several maps, of different sizes."""


NOTHING_SEEN = "false, and motion has no levels: nothing is seen; allowed: true, or motion [16, 32, 64]"


class VideoEncoderSettings(BackboneSettings, EncoderSettings):
    """h_1 .. h_M: networks make maps of each frame, what is in it and what moves, another reads them over time."""

    reads: ClassVar[tuple[str, ...]] = ("video",)
    lies: ClassVar[str] = "frames"
    parts = {"over_time": Parts(LEVELS)}
    kind: Literal["video"] = Field("video", description="convolutions over frames, another network over time")
    appearance: bool = Field(True, description="appearance of each frame, by `backbone`; false: only motion")
    motion: list[Size] = Field(
        [],
        max_length=MOST_LAYERS,
        description="maps of each level of 3-D convolutions over short clips; a level halves height and width",
    )
    spans: list[Annotated[int, Field(ge=1, le=15)]] = Field(
        [], max_length=MOST_LAYERS, description="motion: frames that each level sees, odd numbers; not given: 3 each"
    )
    motion_from: Literal["pixels", "changes"] = Field(
        "pixels",
        description="motion: the pixels as they are, or minus their mean over the clip, which leaves what moves",
    )
    frame: Literal["mean", "flat"] = Field(
        "mean", description="how a frame's maps become a vector: the mean of their cells, or all of them joined"
    )
    over_time: Literal["recurrent", "transformer", "none"] = Field(
        "recurrent",
        description="what reads the frames: recurrent layers, layers of self-attention, or none (each frame "
        "separately)",
    )
    size: Size = Field(256, description="size of a state (of each direction, if there are two)")
    dropout: Share = Field(
        0.0,
        description="recurrent: between layers and on the output of the last; transformer: on what each part of "
        "a layer gives; with all on what enters",
    )
    regions: bool = Field(
        False,
        description="the cells of each frame's maps are places too: `NAME.regions`, in addition to the "
        "frames or instead of them",
    )

    @classmethod
    def spelled(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """`recurrent: true` or `false`, as recipes and models of before `over_time` have it."""
        if not isinstance(values.get("recurrent"), bool) or "over_time" in values:
            return values
        rest = {key: value for key, value in values.items() if key != "recurrent"}
        return rest | {"over_time": "recurrent" if values["recurrent"] else "none"}

    @property
    def recurrent(self) -> bool:
        return self.over_time == "recurrent"

    @property
    def places_size(self) -> int:
        return self.size * (2 if isinstance(self, RecurrentLevelSettings) and self.bidirectional else 1)

    @property
    def frozen(self) -> bool:
        return self.appearance and super().frozen

    @property
    def seen(self) -> list[int]:
        """Frames that each level of `motion` sees."""
        return self.spans or [3] * len(self.motion)

    @property
    def further(self) -> dict[str, SettingsView]:
        return {"regions": (self.places_size, "frames-grid")} if self.regions else {}

    @property
    def makes(self) -> dict[str, str]:
        return {"regions": "regions=true"}

    @property
    def order_lost(self) -> str:
        positions = isinstance(self, TransformerLevelSettings) and self.positions != "none"
        if self.recurrent or positions or any(span > 1 for span in self.seen):
            return ""
        without = " without positions" * (self.over_time == "transformer")
        return f"{self.over_time}{without}, and no level of motion sees several frames"

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        columns = {name: recipe.inputs[name] for name in recipe.read_by.get(path, [])}
        videos = {name: column for name, column in columns.items() if isinstance(column, VideoInput)}
        if not videos:
            return
        yield from self._check_levels(path)
        for name, video in videos.items():
            yield from self._check_video(name, video, path)
            if self.regions and f"{name}.regions" not in recipe.looked_at:
                reason = f"nobody looks at them; name {name}.regions in attention.over"
                yield Problem(f"{path}.regions", reason, "no-effect", no_effect=True)
        if not self.appearance:
            keys = ["backbone", "weights", "tuned", "channels", "pooled"]
            yield from no_effect(self, path, keys, f"{path}.appearance is false")
        else:
            yield from self.unused_backbone(path)
        if not self.motion:
            yield from no_effect(self, path, ["spans", "motion_from"], f"{path}.motion has no levels")

    def _check_levels(self, path: str) -> Iterator[Problem]:
        if not self.appearance and not self.motion:
            yield Problem(f"{path}.appearance", NOTHING_SEEN, "motion")
        if self.spans and len(self.spans) != len(self.motion):
            message = f"{len(self.spans)} given for {len(self.motion)} levels of motion"
            yield Problem(f"{path}.spans", f"{message}; allowed: one for each, or none", "motion")
        elif any(span % 2 == 0 for span in self.spans):
            message = f"{self.spans} must be odd, as many frames before as after; allowed: 1, 3, 5, .."
            yield Problem(f"{path}.spans", message, "motion")
        yield from self.check_pooled(path)

    def _check_video(self, name: str, video: VideoInput, path: str) -> Iterator[Problem]:
        if video.frames == 1 and self.motion and self.motion_from == "changes":
            message = f"1, and in one frame nothing moves ({path}.motion_from changes)"
            allowed = f"2 and more, 0 for all, or {path}.motion []"
            yield Problem(f"inputs.{name}.frames", f"{message}; allowed: {allowed}", "motion")
        if self.appearance:
            yield from self.check_shrinking(name, video, path)
            yield from self.check_backbone(name, video, path)
        if self.motion:  # which halves before it normalises
            sizes = halved(video.height, video.width, ["both"] * len(self.motion))[1:]
            yield from check_levels(self.motion, sizes, name, video, f"{path}.motion")
        if video.height < SMALLEST or video.width < SMALLEST:
            message = f"{video.height} x {video.width} pixels; allowed: {SMALLEST} and more"
            yield Problem(f"inputs.{name}.height", message, "image-size")
        if self.frozen:
            yield from self._check_kept(name, video, path)
        frames = video.frames or video.most
        if isinstance(self, TransformerLevelSettings) and self.positions == "learned" and frames > self.longest:
            limit = f"inputs.{name}.{'frames' if video.frames else 'most'} is {frames}"
            message = f"{self.longest} learned positions, and {limit}"
            allowed = f"{frames} and more, or sinusoidal positions, which have no end"
            yield Problem(f"{path}.longest", f"{message}; allowed: {allowed}", "learned-positions")

    def _check_kept(self, name: str, video: VideoInput, path: str) -> Iterator[Problem]:
        """What a frozen network makes of clips is kept on disk."""
        if not video.frames and unknown_backbone(self.backbone) is None:
            message = f"0, and kept maps are of one number of frames; allowed: a number, or {path}.tuned: true"
            yield Problem(f"inputs.{name}.frames", message, "backbone")
        reason = f"{path}.tuned is false: each clip is read once, and its maps kept"
        yield from no_effect(video.augment, f"inputs.{name}.augment", type(video.augment).model_fields, reason)


@encoders.register("video")
class VideoEncoder(Encoder):
    """Places are frames, and if `regions` also the cells of their maps.

    The summary is the last state of each direction, or the mean of the frames where nothing is recurrent.

    >>> settings = VideoEncoderSettings(size=4, channels=[4, 4], motion=[4], regions=True)
    >>> encoder = VideoEncoder(settings, channels=1, height=8, width=12)
    >>> encoded = encoder(torch.zeros(2, 5, 1, 8, 12), torch.ones(2, 5, dtype=torch.bool))
    >>> encoded.places.states.shape, encoded.further["regions"].states.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 30, 8]))
    """

    Settings = VideoEncoderSettings

    reads = VideoEncoderSettings.reads
    layout: LayoutKind = "frames"

    def __init__(self, settings: VideoEncoderSettings, *, channels: int, height: int, width: int):
        super().__init__()
        if not settings.appearance and not settings.motion:
            raise UserError(f"encoder.appearance: {NOTHING_SEEN}")
        self.settings = settings
        self.backbone: Backbone | None = build_backbone(settings, channels) if settings.appearance else None
        self.motion = Motion(channels, settings.motion, settings.seen) if settings.motion else None
        self.seen = nn.Identity()
        shapes = self._shapes(channels, height, width)
        numbers = [size * (rows * columns if settings.frame == "flat" else 1) for size, rows, columns in shapes]
        self.W_p = nn.Linear(sum(numbers), settings.size)
        self.layers = _build_layers(settings)
        self.size = self.summary_size = settings.places_size
        if settings.regions:
            self.W_r = nn.Linear(sum(size for size, _, _ in shapes), self.size)
            self.U_r = nn.Linear(self.size, self.size, bias=False)
            frames = View(self.size, "frames")
            self.further = {"regions": View(self.size, "frames-grid", inside=frames)}
        if self.backbone is not None and settings.frozen:
            self.backbone.requires_grad_(False).eval()

    @classmethod
    def build(cls, settings: VideoEncoderSettings, info: InputInfo) -> VideoEncoder:
        return cls(settings, channels=info.channels, height=info.height, width=info.width)

    def _shapes(self, channels: int, height: int, width: int) -> list[tuple[int, int, int]]:
        """(size, rows, columns) of each map of a frame, found by encoding an empty one."""
        training, maps = self.training, list[Tensor]()
        self.eval()
        with torch.no_grad():
            frame = torch.zeros(1, channels, height, width)
            if self.backbone is not None:
                maps.append(self.backbone(frame))
            if self.motion is not None:
                maps.append(self.motion(frame[:, None], torch.ones(1, 1, dtype=torch.bool))[:, 0])
        self.train(training)
        return [(each.shape[1], each.shape[2], each.shape[3]) for each in maps]

    @property
    def frozen(self) -> Backbone | None:
        return self.backbone if self.settings.frozen else None

    @property
    def vectors(self) -> nn.Module:
        return self.seen

    @property
    def needs_files(self) -> bool:
        return self.motion is not None

    @property
    def sees_changes(self) -> bool:
        return self.motion is not None and self.settings.motion_from == "changes"

    def frozen_features(self, column: Clips) -> Maps:
        assert column.pixels is not None
        return self._appearance(column.pixels, column.mask)

    def fetch(self) -> None:
        if self.backbone is not None:
            self.backbone.fetch()

    def train(self, mode: bool = True) -> VideoEncoder:
        super().train(mode)
        if self.backbone is not None:
            keep_statistics(self.backbone, self.settings)
        return self

    def read(self, column: Clips, *, maps: bool = False) -> Encoded:
        feature_maps: list[Maps] = self.seen(self._feature_maps(column))
        mask = column.mask
        vectors = torch.cat([self._vector(each) for each in feature_maps], dim=-1)
        read = self._read_frames(vectors, mask, need_weights=maps)
        frames = Places(read.states, mask, Layout("frames"), column.names)
        inner = {name: EncoderMap(each, mask, mask, frames.layout) for name, each in read.weights.items()}
        further = {"regions": self._regions(feature_maps, frames)} if self.settings.regions else {}
        return Encoded(frames, read.last, further, inner)

    def forward(self, pixels: Tensor, mask: Bool[Tensor, "batch frames"], *, maps: bool = False) -> Encoded:
        """pixels: (batch, frames, channels, height, width), from 0 to 255; mask: which frames are real;

        maps: also return the self-attention of each layer, `self-1`, `self-2`, ...
        """
        return self.read(Clips(pixels.byte(), mask), maps=maps)

    def _feature_maps(self, column: Clips) -> list[Maps]:
        """The feature maps of every frame: appearance, motion, or both."""
        maps = list[Tensor]()
        if self.backbone is not None:
            stored = column.maps
            maps.append(stored if stored is not None else self._appearance(_pixels(column), column.mask))
        if self.motion is not None:
            pixels = _pixels(column) / 127.5 - 1
            if self.sees_changes:
                pixels = changes(pixels, column.mask)
            maps.append(self.motion(pixels, column.mask))
        return maps

    def _appearance(self, pixels: Tensor, mask: Tensor) -> Maps:
        """The backbone's feature maps of the real frames, zeros at the others."""
        assert self.backbone is not None
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.settings.frozen):
            real: Tensor = self.backbone(pixels[mask].float())
        maps = real.new_zeros(*mask.shape, *real.shape[1:])
        maps[mask] = real
        return maps

    def _vector(self, maps: Maps) -> Float[Tensor, "batch frames numbers"]:
        return maps.flatten(2) if self.settings.frame == "flat" else maps.mean((3, 4))

    def _read_frames(
        self, vectors: Float[Tensor, "batch frames numbers"], mask: Tensor, *, need_weights: bool
    ) -> LayerOutput:
        """The states h_j and the summary."""
        states = self.W_p(vectors)
        if isinstance(self.layers, TransformerLevel):
            read: LayerOutput = self.layers(states, mask, need_weights=need_weights)
            return replace(read, last=masked_mean(read.states, mask))
        alike = SequenceDropout() if isinstance(self.layers, RecurrentLayers) and self.layers.variational else None
        states = dropout(states, self.settings.dropout, self.training, alike=alike)
        if self.layers is None:
            return LayerOutput(states, masked_mean(states, mask), mask)
        read = self.layers(states, mask)
        return read  # noqa: RET504 - a module's call is untyped

    def _regions(self, feature_maps: list[Maps], frames: Places) -> Places:
        """r_jk: the cells of each frame, row by row; all its maps are resized to the grid of the first."""
        rows, columns = feature_maps[0].shape[-2:]
        resized = [feature_maps[0], *(_resize(each, rows, columns) for each in feature_maps[1:])]
        cells = torch.cat([each.flatten(3) for each in resized], dim=2).transpose(2, 3)
        states = self.W_r(cells) + self.U_r(frames.states)[:, :, None]
        batch, number, many = states.shape[:3]
        mask = frames.mask[:, :, None].expand(-1, -1, many).flatten(1)
        parent = torch.arange(number, device=mask.device).repeat_interleave(many).expand(batch, -1)
        regions = dropout(states.flatten(1, 2), self.settings.dropout, self.training)
        names = None if frames.tokens is None else [_cell_names(row, rows, columns) for row in frames.tokens]
        return Places(regions, mask, Layout("frames-grid", (number, rows, columns)), names, parent, frames)

    def equations(self) -> list[str]:
        settings = self.settings
        lines = [self._headline()]
        parts = []
        if settings.appearance:
            how = "frozen" if settings.frozen else "learned with the rest"
            lines.append(f"a_j = map of frame j by the convolutional network {settings.backbone}, {how}")
            parts.append("a_j")
        if settings.motion:
            spans = ", ".join(map(str, settings.seen))
            lines.append(f"n_j = map of what moves around frame j: 3-D convolutions, levels over {spans} frames")
            if settings.motion_from == "changes":
                lines.append("  of (pixels - their means over the clip) / their deviation")
            parts.append("n_j")
        each = "all cells of each" if settings.frame == "flat" else "the mean of each"
        vector = f"[{'; '.join(parts)}]"
        if isinstance(settings, TransformerLevelSettings):
            where = position_equation(settings.positions, settings.longest, "j")
            lines.append(f"x_j = W_p {vector} + b_p{where}; of {each}")
            lines += [*LAYER, "h_j = norm(x_j);  summary = the mean of the h_j"]
        elif not isinstance(settings, RecurrentLevelSettings) or not isinstance(self.layers, RecurrentLayers):
            lines.append(f"h_j = W_p {vector} + b_p, of {each};  summary = the mean of the h_j")
        else:
            cell = settings.cell
            lines.append(f"x_j = W_p {vector} + b_p, of {each};  h_j = {cell}(h_{{j-1}}, x_j)")
            if settings.bidirectional:
                lines.append("h_j joined with the state of a second network that reads from the end")
            lines.append(f"summary = {'the last state of each direction' if settings.bidirectional else 'h_M'}")
            lines.append(f"{cell}: {self.layers.cell.equation()}")
        if settings.regions:
            lines.append(f"r_jk = W_r {vector}_k + b_r + U_r h_j: cell k of frame j, a place of its own")
        return lines

    def _headline(self) -> str:
        settings = self.settings
        features = [*["appearance"] * settings.appearance, *["motion"] * bool(settings.motion)]
        over = "each frame separately"
        if isinstance(settings, TransformerLevelSettings):
            layers = _count_layers(settings)
            over = f"a transformer of size {settings.size} over time, {layers} of {settings.heads} heads"
        if isinstance(settings, RecurrentLevelSettings):
            layers = _count_layers(settings)
            directions = "in both directions" if settings.bidirectional else "from the first to the last"
            over = f"{layers} of {settings.cell} of size {settings.size} over time, {directions}"
        return f"{' and '.join(features)} of each frame; {over}"

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | ({} if self.backbone is None else backbone_symbols(self.backbone))


def _count_layers(settings: RecurrentLevelSettings | TransformerLevelSettings) -> str:
    return f"{settings.layers} layers" if settings.layers > 1 else "one layer"


def _build_layers(settings: VideoEncoderSettings) -> RecurrentLayers | TransformerLevel | None:
    if isinstance(settings, TransformerLevelSettings):
        return TransformerLevel(settings, settings.size, limit="most")
    if isinstance(settings, RecurrentLevelSettings):
        return RecurrentLayers(settings, settings.size, bidirectional=settings.bidirectional)
    return None


def _pixels(column: Clips) -> Tensor:
    assert column.pixels is not None
    return column.pixels


def _resize(maps: Maps, rows: int, columns: int) -> Maps:
    resized: Tensor = adaptive_avg_pool2d(maps.flatten(0, 1), (rows, columns)).unflatten(0, maps.shape[:2])
    return resized


def _cell_names(frames: list[str], rows: int, columns: int) -> list[str]:
    """The names of cells: frame, row and column, from 1.

    >>> _cell_names(["0.04 s"], 1, 2)
    ['0.04 s 1,1', '0.04 s 1,2']
    """
    cells = [f"{row},{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]
    return [f"{frame} {cell}" for frame in frames for cell in cells]
