"""What every encoder gives: places and a summary."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from jaxtyping import Float
from torch import Tensor, nn

from seq2see.embeddings import build_embedding
from seq2see.memory import EncoderMap, LayoutKind, Places, View
from seq2see.registry import Registry
from seq2see.settings.base import first_line, kind_in, settings_in
from seq2see.settings.encoders import KEYS, EncoderSettings
from seq2see.settings.plugins import ENCODERS, read_class


@dataclass
class Encoded:
    """places to look at, and the whole input as one vector: summary (batch, size).

    further: other places of the same input by name (the words of a document whose places are sentences), which a
    recipe calls `input.name`; maps: how the encoder itself looked, by name.
    """

    places: Places
    summary: Float[Tensor, "batch size"]
    further: dict[str, Places] = field(default_factory=dict)
    maps: dict[str, EncoderMap] = field(default_factory=dict)


@dataclass
class InputInfo:
    """What is known of an input before it is read: symbols of its vocabulary and pre-trained vectors of theirs, for
    text; channels, height and width of its pictures (0: they differ), or numbers in its frames; numbers of a vector, or
    of all of a picture."""

    symbols: int = 0
    vectors: Tensor | None = None
    channels: int = 3
    height: int = 0
    width: int = 0

    @property
    def numbers(self) -> int:
        return self.channels * self.height * self.width or self.symbols


class Encoder(nn.Module):
    """Reads an input; `size` is the width of its places, `summary_size` that of its summary.

    `forward` takes plain tensors, whichever a kind needs; `read` takes them out of a column of a batch. So the model
    knows nothing of what an input is made of. `layout` says how its places lie, `further` what other places it gives,
    `reads` which kinds of input it can read.

    An encoder of one's own gets those of `embedding` and `symbols` (the vocabulary's size) that its constructor asks
    for; the other arguments are its settings.
    """

    reads: tuple[str, ...] = ("text",)
    size: int
    summary_size: int
    layout: LayoutKind = "tokens"
    further: Mapping[str, View] = MappingProxyType({})

    @classmethod
    def build(cls, settings: Any, material: InputInfo) -> Encoder:
        """One for an input of which so much is known: by default it reads symbols, through an embedding."""
        embedding = build_embedding(settings.embedding, material.symbols, vectors=material.vectors)
        return cls(settings, symbols=material.symbols, embedding=embedding)

    @property
    def frozen(self) -> nn.Module | None:
        """The part that never learns and comes first, if there is one: what it makes of an input can be kept."""
        return None

    @property
    def vectors(self) -> nn.Module | None:
        """The part that gives the vectors e(x_j), of which places are made: there gradients of an output end. It gives
        a tensor, or a list of those that are joined later."""
        found = getattr(self, "embedding", None)
        return found if isinstance(found, nn.Module) else None

    def frozen_features(self, column: Any) -> Float[Tensor, "batch ..."]:
        """What the frozen part makes of a column."""
        raise NotImplementedError(f"{type(self).__name__} has no frozen part")

    @property
    def needs_files(self) -> bool:
        """Whether it needs the files beside what its frozen part made of them."""
        return False

    @property
    def sees_changes(self) -> bool:
        """Whether what it sees of a moment is how that differs from the mean over the input's time. Then only the mean
        shows it nothing; any other filling is a change itself."""
        return False

    def fetch(self) -> None:
        """Take weights from elsewhere, before a new model is trained (not where its own will be loaded)."""

    def views(self, name: str) -> dict[str, View]:
        """All that can be looked at in an input of that name."""
        return {name: View(self.size, self.layout)} | {f"{name}.{key}": view for key, view in self.further.items()}

    def read(self, column: Any, *, maps: bool = False) -> Encoded:
        """Read a column of a batch; with `maps` also tell where the encoder looked meanwhile, if that costs extra."""
        raise NotImplementedError

    @classmethod
    def equations(cls, settings: Any) -> list[str]:
        """What it is in a line, and how it reads, line by line: for `show`. The class's own words where it has none."""
        return [first_line(cls) or settings.kind]


def _tell(name: str, kind: type) -> None:
    """Let recipes name an encoder that is none of the house's."""
    if name in [word for one in settings_in(EncoderSettings) for word in kind_in(one)]:
        return
    if not issubclass(kind, Encoder):
        raise TypeError(f"encoder '{name}': {kind.__name__} is no subclass of seq2see.encoders.Encoder")
    ENCODERS[name] = read_class(name, kind, given=GIVEN, keys=KEYS, reads=tuple(kind.reads))


GIVEN = ("embedding", "symbols", "channels")
encoders: Registry[type[Encoder]] = Registry("encoder", tell=_tell)


# ---------------- One module per input, kept under the name the user gave it, so that weights on disk read ...

M = TypeVar("M", bound=nn.Module)


class ByInput(nn.ModuleDict, Generic[M]):
    """A dictionary of modules that takes any input's name: torch's own refuses `keys`, `type` and whatever else it has
    as an attribute. Modules are reached by item, never by attribute, so nothing is shadowed.

    >>> list(ByInput({"keys": nn.Identity()}).state_dict()), ByInput({"keys": nn.Identity()})["keys"]
    ([], Identity())

    Further places of an input have a point in their name, which parts names of weights: there it is a slash.

    >>> both = ByInput({"document.words": nn.Linear(1, 1, bias=False)})
    >>> list(both.state_dict()), "document.words" in both, [name for name, _ in both.items()]
    (['document/words.weight'], True, ['document.words'])
    """

    def __init__(self, modules: Mapping[str, M] | None = None):
        super().__init__(cast("Mapping[str, nn.Module] | None", modules))

    def add_module(self, name: str, module: nn.Module | None) -> None:
        self._modules[_stored(name)] = module  # type: ignore[assignment]

    def __getitem__(self, key: str) -> M:
        return cast(M, super().__getitem__(_stored(key)))

    def items(self) -> ItemsView[str, M]:
        found = {name.replace("/", "."): module for name, module in super().items()}
        return cast("ItemsView[str, M]", found.items())

    def __contains__(self, key: object) -> bool:
        return super().__contains__(_stored(str(key)))


def _stored(name: str) -> str:
    return name.replace(".", "/")
