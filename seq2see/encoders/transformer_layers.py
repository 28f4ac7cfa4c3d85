"""Transformer encoder layers, and stacks of them over any kind of input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from seq2see.attention import SelfAttention
from seq2see.attention.self_attention import heads_problems
from seq2see.cells import CellSettings
from seq2see.dropout import dropout
from seq2see.encoders.base import Encoded, Encoder
from seq2see.encoders.layers import FeedForward, LayerOutput, masked_mean
from seq2see.encoders.positional_input import PositionalInput
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import EncoderMap, Places
from seq2see.registry import Problem
from seq2see.settings.base import FittedDropout, FittedSize, Layers, Positions, Settings, Size, no_effect
from seq2see.symbols import Symbols, default_symbols, layer_symbols

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

LAYER = (
    "each layer: x_j = x_j + self(norm(x))_j;  x_j = x_j + W_2 relu(W_1 norm(x_j) + b_1) + b_2",
    "self(x)_i = W_o [c_i of each head] + b_o,  c_i = sum_j softmax_j(W_q x_i . W_k x_j / sqrt(d)) W_v x_j",
)
"""The equations of a layer, for `show`."""


Level = Literal["recurrent", "transformer"]


class RecurrentLevelSettings(CellSettings):
    """Recurrent layers, in a level of a larger encoder."""

    bidirectional: bool = Field(True, description="recurrent: read in both directions, the states joined")


class TransformerLevelSettings(Settings):
    """Layers of self-attention, in a level of a larger encoder."""

    size: FittedSize = Field(256, description="size of a state")
    layers: Layers = Field(1, description="number of layers")
    dropout: FittedDropout = Field(0.0, description="on what enters and on what each part of a layer gives")
    heads: Size = Field(4, description="transformer: heads in each layer; must divide the size")
    feedforward: Size = Field(1024, description="transformer: size of the inner layer after each attention")
    positions: Positions = Field(
        "sinusoidal",
        description="transformer: how positions are encoded: of frames in time, of words in a sentence, of sentences "
        "in the document",
    )
    longest: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        512, description="transformer, learned positions: places of the longest input (frames, words, sentences)"
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        yield from check_heads(self.size, self.heads, self.positions, path)
        if path in recipe.encoders:
            yield from check_unlimited(self, self.positions, path)


LEVELS: dict[str, type[Settings]] = {"recurrent": RecurrentLevelSettings, "transformer": TransformerLevelSettings}


# --- Rules of layers of self-attention


def check_heads(size: int, heads: int, positions: str, path: str) -> Iterator[Problem]:
    """Heads divide the size, and have an even share of it where positions are rotary; path: of the settings."""
    for key, message in heads_problems(size, heads, rotary=positions == "rotary"):
        yield Problem(f"{path}.{key}", message, "heads")


def check_longest(longest: int, path: str, lengths: Mapping[str, int], *, least: int = 1) -> Iterator[Problem]:
    """Learned positions reach to the end of what is read.

    longest: how many there are; path: of that setting; lengths: {path of a limit: the length it allows, 0: any};
    least: positions without which nothing can be read or written.
    """
    reach = longest - (least - 1)
    if reach < 1:
        if lengths:
            message = f"so few learned positions reach none; allowed: {least} and more"
            yield Problem(path, message, "learned-positions")
        return
    for key, most in lengths.items():
        if not 0 < most <= reach:
            allowed = f"1 to {reach}, or a larger {path}"
            message = f"{most or 'no limit'}, and learned positions reach to {reach}; allowed: {allowed}"
            yield Problem(key, message, "learned-positions")


def check_unlimited(settings: Settings, positions: str, path: str) -> Iterator[Problem]:
    """Only learned positions have a limit."""
    if positions != "learned":
        yield from no_effect(settings, path, ["longest"], f"positions {positions} have no limit")


# --- Layers


class EncoderLayer(nn.Module):
    """x = x + self(norm(x)); x = x + feed(norm(x)): pre-norm, which trains deep stacks without warm-up."""

    def __init__(self, size: int, *, heads: int, feedforward: int, dropout: float, rotary: bool = False):
        super().__init__()
        self.dropout = dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.inward = SelfAttention(size, heads=heads, rotary=rotary)
        self.feed = FeedForward(size, feedforward)

    @classmethod
    def of(cls, settings: Any) -> EncoderLayer:
        """A layer with the sizes of an encoder's settings."""
        return cls(
            settings.size,
            heads=settings.heads,
            feedforward=settings.feedforward,
            dropout=settings.dropout,
            rotary=settings.positions == "rotary",
        )

    def forward(
        self,
        states: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch places size"], Float[Tensor, "batch heads places places"] | None]:
        """The states after the layer, and the weights of self-attention if `need_weights`."""
        normal = self.norm_1(states)
        contexts, numbers = self.inward(*self.inward.project(normal), mask=mask[:, None], need_weights=need_weights)
        states = states + dropout(contexts, self.dropout, self.training)
        states = states + dropout(self.feed(self.norm_2(states)), self.dropout, self.training)
        return states, None if numbers is None else numbers.weights


def run_layers(
    layers: Iterable[EncoderLayer],
    states: Float[Tensor, "batch places size"],
    mask: Bool[Tensor, "batch places"],
    *,
    need_weights: bool,
) -> tuple[Float[Tensor, "batch places size"], dict[str, Float[Tensor, "batch heads places places"]]]:
    """The states of the top layer and, if `need_weights`, the self-attention of each layer: `self-1`, `self-2`, ..."""
    maps: dict[str, Tensor] = {}
    for number, layer in enumerate(layers, start=1):
        states, weights = layer(states, mask, need_weights=need_weights)
        if weights is not None:
            maps[f"self-{number}"] = weights * mask[:, None, :, None]
    return states, maps


class TransformerBase(Encoder):
    """What the Transformer encoders of all kinds of input share: places are the normalised states of the last layer,
    the summary is their mean.

    inputs: the modules below the layers, by their attribute names. They are registered first, so that parameters are
    initialised and listed from the bottom to the top.
    """

    def __init__(self, settings: Any, **inputs: nn.Module):
        super().__init__()
        for name, module in inputs.items():
            self.add_module(name, module)
        self.settings = settings
        self.size = self.summary_size = settings.size
        self.layout = cast(LayoutKind, settings.layout)
        self.layers = nn.ModuleList(EncoderLayer.of(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.size)

    def encode(
        self,
        states: Float[Tensor, "batch places size"],
        mask: Bool[Tensor, "batch places"],
        layout: Layout,
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """Run the layers; maps: also return the self-attention of each, `self-1`, `self-2`, ... from the bottom."""
        states, weights = run_layers(cast("Iterable[EncoderLayer]", self.layers), states, mask, need_weights=maps)
        inner = {name: EncoderMap(each, mask, mask, layout) for name, each in weights.items()}
        states = self.norm(states)
        return Encoded(Places(states, mask, layout, tokens), masked_mean(states, mask), maps=inner)

    def input_equations(self) -> list[str]:
        """How x_1 .. x_M, the input of the first layer, are computed, for `show`."""
        raise NotImplementedError

    def equations(self) -> list[str]:
        settings = self.settings
        return [
            f"transformer of size {settings.size}, {settings.layers} layers of {settings.heads} heads",
            *self.input_equations(),
            *LAYER,
            "h_j = norm(x_j);  summary = the mean of the h_j",
        ]

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | layer_symbols(self.layers)


class TransformerLevel(nn.Module):
    """h_1 .. h_M from vectors v_1 .. v_M: positional encodings are added, then Transformer layers follow.

    Each row is a sequence of its own: words of a sentence do not see those of another. `last` is the state of the last
    real place, which has seen all others; zeros where no place is real.

    >>> level = TransformerLevel(TransformerLevelSettings(size=8, feedforward=16), 3)
    >>> read = level(torch.zeros(2, 5, 3), torch.ones(2, 5, dtype=torch.bool))
    >>> read.states.shape, read.last.shape
    (torch.Size([2, 5, 8]), torch.Size([2, 8]))
    """

    def __init__(
        self,
        settings: TransformerLevelSettings,
        width: int,
        *,
        limit: str = "max_length",
        scale: float = 1.0,
    ):
        super().__init__()
        self.size = settings.size
        self.placing = PositionalInput(
            width,
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
            key="encoder",
            limit=limit,
            scale=scale,
        )
        self.layers = nn.ModuleList(EncoderLayer.of(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.size)

    def forward(
        self,
        vectors: Float[Tensor, "batch length width"],
        mask: Bool[Tensor, "batch length"],
        *,
        need_weights: bool = False,
    ) -> LayerOutput:
        """need_weights: also return the self-attention of each layer (batch, heads, length, length)."""
        layers = cast("Iterable[EncoderLayer]", self.layers)
        states, weights = run_layers(layers, self.placing(vectors), mask, need_weights=need_weights)
        states = self.norm(states)
        lengths = mask.sum(1)
        row = torch.arange(mask.shape[0], device=mask.device)
        last = states[row, (lengths - 1).clamp(min=0)] * (lengths > 0)[:, None]
        return LayerOutput(states, last, mask, weights)

    def parameter_symbols(self) -> Symbols:
        return default_symbols(self) | layer_symbols(self.layers)
