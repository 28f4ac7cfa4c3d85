"""The dense encoder: dense layers turn a vector or an image into a code, which is its only place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from seq2see.data.batches import Numbers
from seq2see.dropout import dropout
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.layers import numbered_symbols
from seq2see.looks import Layout
from seq2see.memory import Places
from seq2see.modalities.image import Pictures
from seq2see.registry import Problem
from seq2see.settings.base import MOST_LAYERS, Activation, Share, Size, no_effect
from seq2see.settings.columns import EncoderSettings
from seq2see.symbols import Symbols, prefixed, symbols_of

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "logistic": torch.sigmoid,
    "linear": lambda numbers: numbers,
}
PIXEL = 255.0


class Dense(nn.ModuleList):
    """g(W_L .. g(W_1 x + b_1) .. + b_L), with layers of the given sizes; without layers x itself.

    last: the activation of the last layer, where it differs; dropout: of the outputs of all layers but the last.

    >>> Dense(4, [3, 2], activation="relu", last="linear")(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, width: int, sizes: Sequence[int], *, activation: str, last: str | None = None, dropout: float = 0.0
    ):
        widths = [width, *sizes]
        super().__init__(nn.Linear(a, b) for a, b in zip(widths, sizes, strict=False))
        self.size, self.dropout = widths[-1], dropout
        self.activations = [activation] * (len(sizes) - 1) + [last or activation] if sizes else []

    def forward(self, numbers: Float[Tensor, "rows width"]) -> Float[Tensor, "rows size"]:
        layers = list(cast("Iterable[nn.Linear]", self))
        for number, (layer, name) in enumerate(zip(layers, self.activations, strict=True), start=1):
            numbers = ACTIVATIONS[name](layer(numbers))
            if number < len(layers):
                numbers = dropout(numbers, self.dropout, self.training)
        return numbers

    def equation(self, x: str) -> str:
        """For `show`.

        >>> Dense(4, [3, 2], activation="relu", last="linear").equation("x")
        'W_2 relu(W_1 x + b_1) + b_2'
        """
        for number, name in enumerate(self.activations, start=1):
            x = f"W_{number} {x} + b_{number}"
            if name != "linear":
                x = f"{name}({x})"
            elif number < len(self):
                x = f"({x})"
        return x

    def parameter_symbols(self) -> Symbols:
        return numbered_symbols(self)


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
    code: Activation = Field(
        "linear", description="activation of the code; linear without hidden layers: a matrix product"
    )
    dropout: Share = Field(0.0, description="on what each hidden layer gives")

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if not self.hidden and path in recipe.encoders:
            yield from no_effect(self, path, ["activation", "dropout"], f"{path}.hidden is empty")
        yield from check_width(recipe, path)


def check_width(recipe: Recipe, path: str) -> Iterator[Problem]:
    """Dense layers read pictures of one size; path: of the encoder."""
    for name in recipe.read_by.get(path, []):
        if getattr(recipe.inputs[name], "width", None) == 0:
            message = "0, and dense layers read pictures of one size; allowed: a width"
            yield Problem(f"inputs.{name}.width", message, "dense-width")


@encoders.register("dense")
class DenseEncoder(Encoder):
    """The code h of a vector, or of an image of a fixed size: its only place, and its summary.

    >>> encoder = DenseEncoder(DenseEncoderSettings(hidden=[5], size=2), numbers=4)
    >>> encoder(torch.zeros(3, 4)).summary.shape
    torch.Size([3, 2])
    """

    Settings = DenseEncoderSettings

    def __init__(self, settings: DenseEncoderSettings, *, numbers: int):
        super().__init__()
        self.settings = settings
        self.size = self.summary_size = settings.size
        self.layout = "vector"
        self.dense = Dense(
            numbers,
            [*settings.hidden, settings.size],
            activation=settings.activation,
            last=settings.code,
            dropout=settings.dropout,
        )

    @classmethod
    def build(cls, settings: DenseEncoderSettings, info: InputInfo) -> DenseEncoder:
        return cls(settings, numbers=info.numbers)

    def read(self, column: Any, *, maps: bool = False) -> Encoded:
        if isinstance(column, Pictures):
            assert column.pixels is not None
            return self(column.pixels.flatten(1).float() / PIXEL)  # type: ignore[no-any-return]
        assert isinstance(column, Numbers)
        return self(column.values)  # type: ignore[no-any-return]

    def forward(self, numbers: Float[Tensor, "batch numbers"]) -> Encoded:
        code = self.dense(numbers)
        mask = torch.ones(code.shape[0], 1, dtype=torch.bool, device=code.device)
        return Encoded(Places(code[:, None], mask, Layout("vector")), code)

    def equations(self) -> list[str]:
        sizes = " -> ".join(map(str, ["x", *self.settings.hidden, self.size]))
        return [f"dense layers {sizes}, the last one the code h", f"h = {self.dense.equation('x')}"]

    def parameter_symbols(self) -> Symbols:
        return prefixed("dense", symbols_of(self.dense), where="dense")
