"""The base class of encoders, what they return, and how a recipe's encoder is built."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from jaxtyping import Float
from pydantic.fields import FieldInfo
from torch import Tensor, nn

from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, build_embedding
from seq2see.errors import UserError
from seq2see.looks import LayoutKind
from seq2see.memory import EncoderMap, Places, View
from seq2see.packed_weights import PackedWeights
from seq2see.registry import Registry
from seq2see.settings.base import Layers, Share, Size, first_line
from seq2see.settings.columns import ENCODERS, EncoderSettings
from seq2see.settings.plugins import arguments_of, check_subclass, constructor_values, settings_from_constructor

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


@dataclass
class Encoded:
    """places: what attention can look at; summary: (batch, size), the whole input as one vector.

    further: other places of the same input by name (the words of a document whose places are sentences), which a
    recipe calls `input.name`; maps: the encoder's own attention, by name.
    """

    places: Places
    summary: Float[Tensor, "batch size"]
    further: dict[str, Places] = field(default_factory=dict)
    maps: dict[str, EncoderMap] = field(default_factory=dict)


@dataclass
class InputInfo:
    """What is known of an input before any is read.

    symbols: the size of its vocabulary, or of a vector or of each frame the number of its numbers, where only data tell
    it; vectors: pre-trained embeddings (symbols, size); channels, height, width: of its images (0: they differ),
    channels also of frames.
    """

    symbols: int = 0
    vectors: Tensor | None = None
    channels: int = 3
    height: int = 0
    width: int = 0

    @property
    def frame_size(self) -> int:
        """The numbers of a frame, or of a pixel: as the settings or the data tell."""
        return self.channels or self.symbols

    @property
    def numbers(self) -> int:
        """The numbers of a vector, or of a whole image."""
        return self.channels * self.height * self.width or self.symbols


class Encoder(nn.Module):
    """Turns an input into places and a summary.

    size: the size of its places; summary_size: that of its summary; layout: how its places lie; further: what other
    places it gives; reads: the kinds of input it can read; embedding_deviation: the least standard deviation of its
    first embeddings. `forward` takes plain tensors, `read` takes them out of a column of a batch, so that the model
    does not need to know what an input is made of.

    The constructor of a user's own encoder gets those of `embedding`, `symbols` (the size of the vocabulary) and
    `channels` that it has as arguments; its other arguments are settings.
    """

    reads: tuple[str, ...] = ("text",)
    size: int
    summary_size: int
    layout: LayoutKind = "tokens"
    embedding_deviation: float = 0.0
    further: Mapping[str, View] = MappingProxyType({})

    @classmethod
    def build(cls, settings: Any, info: InputInfo) -> Encoder:
        """The encoder for such an input: by default one that reads symbols, through an embedding."""
        embedding = build_embedding(
            settings.embedding, info.symbols, vectors=info.vectors, deviation=cls.embedding_deviation
        )
        return cls(settings, symbols=info.symbols, embedding=embedding)

    @property
    def frozen(self) -> nn.Module | None:
        """The first part of the encoder, if it is never trained: its outputs can be stored."""
        return None

    def frozen_features(self, column: Any) -> Float[Tensor, "batch ..."]:
        """The outputs of the frozen part for a column of a batch."""
        raise NotImplementedError(f"{type(self).__name__} has no frozen part")

    @property
    def vectors(self) -> nn.Module | None:
        """The module whose output are the vectors e(x_j) of the input, at which gradients of an output are measured.

        It returns a tensor, or a list of tensors that are concatenated later.
        """
        embedding = getattr(self, "embedding", None)
        return embedding if isinstance(embedding, nn.Module) else None

    @property
    def needs_files(self) -> bool:
        """Whether it needs the files themselves beside the stored outputs of its frozen part."""
        return False

    @property
    def sees_changes(self) -> bool:
        """Whether a moment enters as its difference from the mean over time, so that the mean alone shows nothing."""
        return False

    def fetch(self) -> None:
        """Load pre-trained weights, before a new model is trained."""

    def views(self, name: str) -> dict[str, View]:
        """All places of an input of that name."""
        return {name: View(self.size, self.layout)} | {f"{name}.{key}": view for key, view in self.further.items()}

    def read(self, column: Any, *, maps: bool = False) -> Encoded:
        """Encode a column of a batch; maps: also return the encoder's own attention, where that costs extra."""
        raise NotImplementedError

    def predict(self, column: Any, packed: PackedWeights, *, maps: bool = False) -> Any:
        """The same for a prediction, whose weights are packed; an encoder may have a faster way. What a user's own
        `read` gives is checked where it is used (`check_encoded`)."""
        return self.read(column, maps=maps)

    def equations(self) -> list[str]:
        """A headline and how places and summary are computed, line by line, for `show`.

        By default the first line of the class's docstring, and the embedding if there is one.
        """
        lines = [first_line(type(self)) or type(self).__name__]
        return [*lines, self.vectors.equation("x_j")] if isinstance(self.vectors, Embedding | OneHot) else lines


KEYS: dict[str, FieldInfo] = {
    "size": FieldInfo(annotation=Size | None, default=None, description="its argument `size`"),
    "layers": FieldInfo(annotation=Layers | None, default=None, description="its argument `layers`"),
    "dropout": FieldInfo(annotation=Share | None, default=None, description="its argument `dropout`"),
}
"""Settings that encoders of many kinds have, so that one of a plug-in can take the place of another."""

KNOWN = ("embedding", "symbols", "channels")
"""Arguments of an encoder's constructor that are known when it is built."""


class OwnEncoderSettings(EncoderSettings):
    """h_1 .. h_M: by an encoder of your own, whose constructor says what can be set."""

    lies = None
    own = True

    @property
    def places_size(self) -> None:
        return None


class OwnReaderSettings(OwnEncoderSettings):
    """... which reads symbols through an embedding."""

    embedding: EmbeddingSettings = EmbeddingSettings()


def _check(name: str, kind: Any) -> None:
    check_subclass(f"encoder '{name}'", kind, Encoder)


def _derive(name: str, kind: type[Encoder]) -> type[EncoderSettings]:
    """Settings of an encoder that a plug-in brings."""
    embedded = any(argument.name == "embedding" for argument in arguments_of(kind))
    base = OwnReaderSettings if embedded else OwnEncoderSettings
    return settings_from_constructor(name, kind, base, known=KNOWN, keys=KEYS, reads=tuple(kind.reads))


encoders: Registry[type[Encoder]] = Registry("encoder", settings=ENCODERS, check=_check, derive=_derive)


def unused_summary(recipe: Recipe, path: str) -> str:
    """Why the settings of a summary have no effect, where nobody uses it; path: of the encoder."""
    names = recipe.read_by.get(path, [])
    if not names:
        return ""
    if not recipe.decoder.reads_summaries:
        return f"a {recipe.decoder.kind} decoder makes summaries of its own"
    if {*recipe.started_by, *recipe.fed_every_step}.intersection(names):
        return ""
    return "no summary is used; name an input it reads in decoder.start or decoder.every_step"


def build_encoder(settings: EncoderSettings, info: InputInfo) -> Encoder:
    """The encoder of the settings' kind, for an input of which this is known."""
    kind: Any = encoders[settings.kind]
    if not isinstance(settings, OwnEncoderSettings):
        built: Encoder = kind.build(settings, info)
        return built
    known: dict[str, Any] = {"symbols": info.symbols, "channels": info.frame_size}
    if settings.symbols is not None:
        known["embedding"] = build_embedding(
            settings.symbols, info.symbols, vectors=info.vectors, deviation=getattr(kind, "embedding_deviation", 0.0)
        )
    wanted = {argument.name for argument in arguments_of(kind)}
    arguments = {name: value for name, value in known.items() if name in wanted}
    encoder: Encoder = kind(**arguments, **constructor_values(settings, keys=KEYS))
    for name in ("size", "summary_size"):
        if not isinstance(getattr(encoder, name, None), int):
            raise UserError(f"encoder '{settings.kind}': its constructor sets no self.{name}, a whole number")
    return encoder


def check_encoded(name: str, encoder: Encoder, encoded: Any, column: Any) -> None:
    """Refuse the output of a user's own encoder where its shapes are not those it declares."""
    title = f"the encoder of '{name}' ({type(encoder).__name__})"
    if not isinstance(encoded, Encoded):
        raise UserError(f"{title}: read() gives an Encoded, got {type(encoded).__name__}")
    states, mask, tokens = encoded.places.states, encoded.places.mask, encoded.places.tokens
    if states.ndim != 3 or states.shape[:2] != mask.shape or states.shape[2] != encoder.size:
        raise UserError(
            f"{title}: states are (batch, places, size) with a mask (batch, places) and size {encoder.size}, "
            f"got {tuple(states.shape)} and {tuple(mask.shape)}"
        )
    if encoded.summary.shape != (len(states), encoder.summary_size):
        wanted = (len(states), encoder.summary_size)
        raise UserError(f"{title}: the summary is (batch, summary_size) = {wanted}, got {tuple(encoded.summary.shape)}")
    if encoded.places.layout.kind != encoder.layout:
        raise UserError(f"{title}: its layout is {encoder.layout}, got places laid out as {encoded.places.layout.kind}")
    if tokens is not None and [len(row) for row in tokens] != mask.sum(1).tolist():
        raise UserError(f"{title}: tokens has a text for each real place, got other numbers of texts")
    copyable = getattr(column, "copyable", None)
    if copyable is not None and copyable.ids.shape != mask.shape:
        raise UserError(f"decoder.copy_from: {title} gives other places than the symbols of '{name}', to be copied")


M = TypeVar("M", bound=nn.Module)


class ByInput(nn.ModuleDict, Generic[M]):
    """A ModuleDict that allows any input name: torch's own refuses `keys`, `type` and its other attributes.

    Modules are reached by item, never by attribute, so nothing is shadowed.

    >>> list(ByInput({"keys": nn.Identity()}).state_dict()), ByInput({"keys": nn.Identity()})["keys"]
    ([], Identity())

    Further places of an input have a point in their name; in the names of weights it is a slash.

    >>> modules = ByInput({"document.words": nn.Linear(1, 1, bias=False)})
    >>> list(modules.state_dict()), "document.words" in modules, [name for name, _ in modules.items()]
    (['document/words.weight'], True, ['document.words'])
    """

    def __init__(self, modules: Mapping[str, M] | None = None):
        super().__init__(cast("Mapping[str, nn.Module] | None", modules))

    def add_module(self, name: str, module: nn.Module | None) -> None:
        self._modules[_stored_name(name)] = module  # type: ignore[assignment]

    def __getitem__(self, key: str) -> M:
        return cast(M, super().__getitem__(_stored_name(key)))

    def items(self) -> ItemsView[str, M]:
        modules = {name.replace("/", "."): module for name, module in super().items()}
        return cast("ItemsView[str, M]", modules.items())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_stored_name(str(key)))


def _stored_name(name: str) -> str:
    return name.replace(".", "/")
