"""How an input is read: one class of settings for each kind of encoder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from pydantic.fields import FieldInfo

from seq2see.errors import nearest
from seq2see.settings.base import (
    ENCODERS,
    MOST_LAYERS,
    Activation,
    CellSettings,
    EmbeddingSettings,
    EncoderSettings,
    Layers,
    Parts,
    Positions,
    Settings,
    Share,
    Side,
    Size,
    View,
)

# ---------------- Networks that can make a map of a picture, by the names recipes call them by; a test ...

SMALL = "small"
"""The one of our own, which is trained with the rest."""

CARRIED = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2")
"""Whose weights a package brings along."""

FILED = ("resnet18", "resnet34", "resnet50", "vgg16")
"""Whose weights lie in a file of the user's; without one they begin at random."""

PACKAGES = ("timm", "torchvision")
"""Packages that know networks by name, PACKAGE:NAME, and where their weights are to be had."""

NAME = re.compile(r"[A-Za-z0-9_.-]+")
"""Of a network in its package. Names with a scheme (hf-hub:, local-dir:) would have files fetched when a model's folder
is loaded, which somebody else may have written."""

LEAST = 32
"""Pixels on a side that a pre-trained network needs: it halves them five times."""


def unknown_backbone(name: str) -> str | None:
    """What is wrong with the name of a backbone; None where nothing is.

    >>> unknown_backbone("timm:convnext_tiny"), unknown_backbone("resnet-50")
    (None, "unknown backbone 'resnet-50' (did you mean 'resnet50'?); allowed: small, efficientnet-lite0, \
efficientnet-lite1, efficientnet-lite2, resnet18, resnet34, resnet50, vgg16, timm:NAME, torchvision:NAME")
    """
    known = (SMALL, *CARRIED, *FILED)
    package, _, its = name.partition(":")
    if name in known or (package in PACKAGES and NAME.fullmatch(its)):
        return None
    allowed = ", ".join([*known, *(f"{one}:NAME" for one in PACKAGES)])
    return f"unknown backbone '{name}'{nearest(name, known)}; allowed: {allowed}"


# ---------------- A network that makes maps of pictures


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


Level = Literal["recurrent", "transformer"]


class RecurrentLevelSettings(CellSettings):
    """Recurrent layers, in a level of a larger encoder."""

    bidirectional: bool = Field(True, description="recurrent: read in both directions, the states joined")


class TransformerLevelSettings(Settings):
    """Layers of self-attention, in a level of a larger encoder."""

    size: Size = Field(256, description="size of a state")
    layers: Layers = Field(1, description="one above the other")
    dropout: Share = Field(0.0, description="on what enters and on what each part of a layer gives")
    heads: Size = Field(4, description="transformer: looks side by side in each layer; divides the size")
    feedforward: Size = Field(1024, description="transformer: size of the inner layer behind each look")
    positions: Positions = Field(
        "sinusoidal",
        description="transformer: how a place knows where it stands: a frame in time, words in a sentence, sentences "
        "in all",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="transformer, learned positions: places of the longest input (frames, words, sentences)"
    )


LEVELS: dict[str, type[Settings]] = {"recurrent": RecurrentLevelSettings, "transformer": TransformerLevelSettings}


# ---------------- How a video is read


class VideoEncoderSettings(BackboneSettings, EncoderSettings):
    """h_1 .. h_M: networks make maps of each frame, what is in it and what moves, another reads them over time."""

    reads: ClassVar[tuple[str, ...]] = ("video",)
    lies: ClassVar[str] = "frames"
    parts = {"over_time": Parts(LEVELS)}
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
    size: Size = Field(256, description="size of a state (of each direction, where there are two)")
    dropout: Share = Field(
        0.0,
        description="recurrent: between layers and on the output of the last; transformer: on what each part of "
        "a layer gives; with all on what enters",
    )
    regions: bool = Field(
        False, description="the cells of each frame's maps are places too: `NAME.regions`, beside or instead of frames"
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
    def further(self) -> dict[str, View]:
        return {"regions": (self.places_size, "frames-grid")} if self.regions else {}


class RecurrentEncoderSettings(CellSettings, EncoderSettings):
    """h_1 .. h_M: how an input is read."""

    kind: Literal["recurrent"] = Field("recurrent", description="a recurrent network over the symbols")
    bidirectional: bool = Field(True, description="read in both directions, the states joined")
    self_attention: str = Field(
        "none", description="a score: each state looks back at the earlier ones of its direction; none: it does not"
    )
    embedding: EmbeddingSettings = EmbeddingSettings()


class TransformerEncoderSettings(EncoderSettings):
    """h_1 .. h_M: every place looks at all places, layer after layer (self-attention)."""

    reads: ClassVar[tuple[str, ...]] = ("text", "set", "sound", "series", "image")
    kind: Literal["transformer"] = Field("transformer", description="layers of multi-head self-attention")
    size: Size = Field(256, description="size of a place")
    layers: Layers = Field(3, description="one above the other")
    heads: Size = Field(4, description="looks side by side in each layer; divides the size")
    feedforward: Size = Field(1024, description="size of the inner layer behind each look")
    dropout: Share = Field(0.1, description="on what each part of a layer gives, and on the embeddings")
    positions: Positions = Field(
        "sinusoidal",
        description="how a place knows where it stands; rotary: how far it is from others; none: it is read as a set",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="learned positions: the longest input, in places; of pictures the longest side"
    )
    stack: Size | None = Field(None, description="sounds: neighbouring frames joined to one place; not given: 4")
    patch: Side | tuple[Side, Side] | None = Field(
        None,
        description="pictures: pixels of each side of a place, or down and across; not given: of 16, 8, 4, 2 and 1 the "
        "largest that goes 6 times into the shorter side; lines of text (width 0): the height, and an eighth of it",
    )
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def symbols(self) -> EmbeddingSettings | None:
        return None if self.layout in ("frames", "grid") else self.embedding

    @property
    def pixels(self) -> tuple[int, int] | None:
        """Of a patch, down and across; None where no picture is read."""
        return (self.patch, self.patch) if isinstance(self.patch, int) else self.patch

    @property
    def layout(self) -> str:
        if self.patch is not None:
            return "grid"
        if self.stack is not None:
            return "frames"
        return "set" if self.positions == "none" else "tokens"


class DeepSetsEncoderSettings(EncoderSettings):
    """h_1 .. h_M: every place for itself, the summary from their sum; no order (deep sets)."""

    reads: ClassVar[tuple[str, ...]] = ("set", "text")
    lies: ClassVar[str] = "set"
    kind: Literal["deep-sets"] = Field("deep-sets", description="phi of each symbol alone, rho of all of them pooled")
    size: Size = Field(256, description="size of a place, of the summary, and of the layers between")
    layers: Layers = Field(2, description="of phi, which makes a symbol a place")
    pooling: Literal["sum", "mean", "max"] = Field(
        "sum", description="how places become one vector; sum alone tells how often a symbol is there"
    )
    summary_layers: Annotated[int, Field(ge=0, le=MOST_LAYERS)] | None = Field(
        None, description="of rho, behind the pooling; not given: 2 where the summary is used, otherwise 0"
    )
    dropout: Share = Field(0.0, description="on what each layer gives")
    embedding: EmbeddingSettings = EmbeddingSettings()


Pooled = Literal["attention", "last", "mean"]


class HierarchicalEncoderSettings(EncoderSettings):
    """h_1 .. h_M: words become sentences, sentences a document; each level is a recurrent network or a Transformer."""

    reads: ClassVar[tuple[str, ...]] = ("texts",)
    lies: ClassVar[str] = "sentences"
    parts = {"levels": Parts(LEVELS)}
    kind: Literal["hierarchical"] = Field("hierarchical", description="a network over words, another over sentences")
    levels: Level | tuple[Level, Level] = Field(
        "recurrent",
        description="what reads words and sentences: a recurrent network, or layers of self-attention (words of a "
        "sentence look at each other, then sentences); two: that of words, that of sentences",
    )
    size: Size = Field(256, description="size of a state (of each direction, where there are two)")
    layers: Layers = Field(1, description="of each level, one above the other")
    dropout: Share = Field(
        0.0,
        description="recurrent levels: between layers and on the output of the last; transformer levels: on what "
        "enters them and on what each part of a layer gives",
    )
    words: Pooled = Field(
        "attention", description="how a sentence comes from its words: their weighted mean, last state, or plain mean"
    )
    pooling: Pooled = Field(
        "last", description="how the summary comes from the sentences: their weighted mean, last state, or plain mean"
    )
    pooling_size: Size = Field(128, description="attention: size of u = tanh(W h + b), of both levels")
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def word_level(self) -> Level:
        return self.levels if isinstance(self.levels, str) else self.levels[0]

    @property
    def sentence_level(self) -> Level:
        return self.levels if isinstance(self.levels, str) else self.levels[1]

    def level_size(self, level: Level) -> int:
        """Numbers of each state that such a level gives."""
        both = level == "recurrent" and isinstance(self, RecurrentLevelSettings) and self.bidirectional
        return self.size * (2 if both else 1)

    @property
    def places_size(self) -> int:
        return self.level_size(self.sentence_level)

    @property
    def further(self) -> dict[str, View]:
        return {"words": (self.level_size(self.word_level), "tokens")}


class RowSettings(CellSettings):
    """A recurrent network along the rows of a map of a picture, which places of a line know their neighbours by."""

    bidirectional: bool = Field(True, description="both ways along each row, the states joined")


class ConvolutionalEncoderSettings(BackboneSettings, EncoderSettings):
    """h_1 .. h_M: a convolutional network makes a map of a picture, whose cells are the places."""

    reads: ClassVar[tuple[str, ...]] = ("image",)
    kind: Literal["convolutional"] = Field("convolutional", description="convolutions over a picture")
    places: Literal["grid", "columns", "vector", "flat"] = Field(
        "grid",
        description="every cell of the map a place; the cells of each column joined (lines of text); their mean alone; "
        "or all of them joined: W_p then reads all",
    )
    size: Size = Field(512, description="numbers of each place, W_p times a cell of the map")
    dropout: Share = Field(0.0, description="on the places, before `recurrent` reads them")
    recurrent: RowSettings | None = Field(
        None, description="grid, columns: a recurrent network that reads each row of places; not given: none"
    )

    @property
    def places_size(self) -> int:
        along = self.recurrent
        return self.size if along is None else along.size * (2 if along.bidirectional else 1)

    @property
    def layout(self) -> str:
        return {"grid": "grid", "columns": "frames"}.get(self.places, "vector")


class DenseEncoderSettings(EncoderSettings):
    """h: dense layers make one vector, the code, of a row of numbers or of the pixels of a picture."""

    reads: ClassVar[tuple[str, ...]] = ("vector", "image")
    lies: ClassVar[str] = "vector"
    kind: Literal["dense"] = Field("dense", description="dense layers over all numbers at once")
    hidden: list[Size] = Field(
        [128], max_length=MOST_LAYERS, description="sizes of the layers before the code; []: none"
    )
    activation: Activation = Field("relu", description="of the hidden layers")
    size: Size = Field(32, description="numbers of the code: the one place, and the summary")
    code: Activation = Field("linear", description="activation of the code; linear without hidden layers: a product")
    dropout: Share = Field(0.0, description="on what each hidden layer gives")


class PyramidalEncoderSettings(CellSettings, EncoderSettings):
    """h_1 .. h_M: recurrent layers over frames, of which the lower ones read pairs and so halve their number."""

    reads: ClassVar[tuple[str, ...]] = ("sound", "series")
    lies: ClassVar[str] = "frames"
    kind: Literal["pyramidal"] = Field("pyramidal", description="recurrent layers, each half as long as the one below")
    bidirectional: bool = Field(True, description="every layer reads in both directions, the states joined")
    layers: Layers = Field(3, description="one above the other")
    halvings: Annotated[int, Field(ge=0, le=30)] = Field(
        2, description="so many layers, from the lowest on, read neighbours joined in pairs; the rest one by one"
    )


KEYS: dict[str, FieldInfo] = {
    "size": FieldInfo(annotation=Size | None, default=None, description="its argument `size`"),
    "layers": FieldInfo(annotation=Layers | None, default=None, description="its argument `layers`"),
    "dropout": FieldInfo(annotation=Share | None, default=None, description="its argument `dropout`"),
}
"""Settings that encoders of many kinds have, so that one of a plug-in can take the place of another."""

ENCODERS.update(
    {
        "recurrent": RecurrentEncoderSettings,
        "transformer": TransformerEncoderSettings,
        "hierarchical": HierarchicalEncoderSettings,
        "convolutional": ConvolutionalEncoderSettings,
        "deep-sets": DeepSetsEncoderSettings,
        "dense": DenseEncoderSettings,
        "pyramidal": PyramidalEncoderSettings,
        "video": VideoEncoderSettings,
    }
)

USUAL = {"image": "convolutional", "sound": "pyramidal", "series": "pyramidal", "vector": "dense", "video": "video"}
"""The kind of encoder that reads a kind of input other than text, where the recipe does not say it."""
