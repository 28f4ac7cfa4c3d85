"""Transformer encoders of text, images (in patches) and sound (in stacked frames)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int, Num
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from seq2see.data.batches import Frames, Sequences
from seq2see.data.image_files import ImageInput
from seq2see.dropout import dropout
from seq2see.embeddings import Embedding, EmbeddingSettings, OneHot, build_embedding, normal
from seq2see.encoders.base import Encoded, Encoder, InputInfo, encoders
from seq2see.encoders.layers import flip_columns, grid_mask
from seq2see.encoders.positional_input import PositionalInput, TokenInput, sinusoids
from seq2see.encoders.transformer_layers import TransformerBase, check_heads, check_longest, check_unlimited
from seq2see.errors import UserError
from seq2see.looks import Layout
from seq2see.modalities.image import Pictures
from seq2see.registry import Problem
from seq2see.settings.base import FittedDropout, FittedSize, Layers, Positions, Side, Size, no_effect
from seq2see.settings.columns import EncoderSettings, InputColumn

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


FRAMES = 4
"""Frames of a sound in a place, where the recipe does not state it: as many as two halvings of a pyramid leave."""
PATCHES = (16, 8, 4, 2, 1)
"""Pixels of a patch's side where the recipe does not state it: the largest of which `ACROSS` fit the shorter side."""
ACROSS = 6
STRIPS = 8
"""Lines of text, whose width is not known before: strips as high as the line and this much less wide."""
GRID_POSITIONS = ("sinusoidal", "learned", "none")
"""Positions of patches, which lie in rows and columns."""


def usual_patch(image: ImageInput) -> int | tuple[int, int]:
    """The pixels of a patch where the recipe does not state them."""
    if not image.width:
        return image.height, max(image.height // STRIPS, 1)
    shorter = min(image.height, image.width)
    return next((side for side in PATCHES if side * ACROSS <= shorter), PATCHES[-1])


class TransformerEncoderSettings(EncoderSettings):
    """h_1 .. h_M: every place looks at all places, layer after layer (self-attention)."""

    reads: ClassVar[tuple[str, ...]] = ("text", "set", "frames", "image")
    for_texts: ClassVar[bool] = True
    kind: Literal["transformer"] = Field("transformer", description="layers of multi-head self-attention")
    size: FittedSize = Field(256, description="size of a place")
    layers: Layers = Field(3, description="number of layers")
    heads: Size = Field(4, description="heads in each layer; must divide the size")
    feedforward: Size = Field(1024, description="size of the inner layer after each attention")
    dropout: FittedDropout = Field(0.1, description="on what each part of a layer gives, and on the embeddings")
    positions: Positions = Field(
        "sinusoidal",
        description="how positions are encoded; rotary: by the distance between places; none: the input is read as a "
        "set",
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

    def complete(self, column: InputColumn, *, summary_used: bool, shared: bool) -> dict[str, Any]:
        """A place of a sound is a stack of frames, one of a picture a patch; a set has no positions."""
        if column.content == "frames":
            return {"stack": self.stack or FRAMES} | ({"patch": None} if shared else {})
        if isinstance(column, ImageInput):
            return {"patch": self.patch or usual_patch(column)} | ({"stack": None} if shared else {})
        if column.unordered and "positions" not in self.model_fields_set:
            return {"positions": "none"}
        return {}

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if recipe.inputs:
            yield from check_heads(self.size, self.heads, self.positions, path)
        columns = {name: recipe.inputs[name] for name in recipe.read_by.get(path, [])}
        for name, column in columns.items():
            yield from self._check_column(name, column, path)
        if self.positions == "learned":
            texts = {name: recipe.texts[name].max_length for name in columns if name in recipe.texts}
            lengths = {f"inputs.{name}.max_length": most for name, most in texts.items()}
            yield from check_longest(self.longest, f"{path}.longest", lengths)
        elif columns:
            yield from check_unlimited(self, self.positions, path)
        if columns:
            yield from self._unused_units(columns, path)

    def _unused_units(self, columns: Mapping[str, InputColumn], path: str) -> Iterator[Problem]:
        """Settings for another kind of input than those it reads."""
        contents = {column.content or column.kind for column in columns.values()}
        reason = f"{', '.join(columns)}: no {{}} is read"
        if "frames" not in contents:
            yield from no_effect(self, path, ["stack"], reason.format("sound"))
        if "image" not in contents:
            yield from no_effect(self, path, ["patch"], reason.format("picture"))
        if contents <= {"frames", "image"}:
            yield from no_effect(self, path, ["embedding"], reason.format("symbol"))

    def _check_column(self, name: str, column: InputColumn, path: str) -> Iterator[Problem]:
        """Places of one input know where they are, and patches fit into their picture."""
        if column.unordered and self.positions != "none":
            message = f"{self.positions} would give the elements of '{name}' an order, and a set has none"
            yield Problem(f"{path}.positions", f"{message}; allowed: none", "set-positions")
        if isinstance(column, ImageInput):
            yield from self._check_patch(name, column, path)
        if self.positions == "learned":
            yield from self._check_reach(name, column, path)

    def _check_patch(self, name: str, image: ImageInput, path: str) -> Iterator[Problem]:
        if self.positions not in GRID_POSITIONS:
            line = f"{self.positions} goes by distances in a line, but the patches of '{name}' are in rows and columns"
            yield Problem(f"{path}.positions", f"{line}; allowed: {', '.join(GRID_POSITIONS)}", "patches")
        down, across = self.pixels or (1, 1)
        wide = image.width or across + 1
        if down > image.height or across > wide or (down, across) == (image.height, wide):
            message = f"{down} x {across} pixels leave no two places in a picture of {image.size_text}; allowed: less"
            yield Problem(f"{path}.patch", message, "patches")

    def _check_reach(self, name: str, column: InputColumn, path: str) -> Iterator[Problem]:
        """Learned positions that end before a sound, a series or a picture does."""
        key = f"{path}.longest"
        if column.content == "frames":
            if not column.most_frames:
                message = f"learned positions end, and '{name}' has no limit"
                allowed = f"a limit (inputs.{name}.longest), or sinusoidal positions, which have no end"
                yield Problem(key, f"{message}; allowed: {allowed}", "learned-positions")
                return
            places = ceil(column.most_frames / (self.stack or 1))
            limit = f"{column.limit_text} (inputs.{name}.longest)"
        elif isinstance(column, ImageInput) and self.pixels is not None:
            down, across = self.pixels
            wide = column.width or column.widest
            if not wide:
                message = f"learned positions end, and lines of '{name}' do not"
                yield Problem(key, f"{message}; allowed: a limit (inputs.{name}.widest)", "learned-positions")
                return
            places = max(ceil(column.height / down), ceil(wide / across))
            limit = f"{wide} pixels (inputs.{name}.{'width' if column.width else 'widest'})"
        else:
            return
        if places > self.longest:
            message = f"{self.longest} learned positions, and {limit} are {places} places"
            allowed = f"{places} and more, or sinusoidal positions, which have no end"
            yield Problem(key, f"{message}; allowed: {allowed}", "learned-positions")


class ImageTransformer(TransformerBase):
    """x_rc = W_p [the pixels of the patch in row r, column c] + b_p + p_rc, then Transformer layers.

    >>> settings = TransformerEncoderSettings(size=8, feedforward=16, patch=8)
    >>> ImageTransformer(settings, channels=1)(torch.zeros(2, 1, 16, 24), torch.tensor([24, 9])).places.mask.sum(1)
    tensor([6, 4])
    """

    patches: nn.Identity
    W_p: nn.Linear
    placing: GridPositions

    def __init__(self, settings: TransformerEncoderSettings, *, channels: int):
        down, across = settings.pixels or (1, 1)
        placing = GridPositions(
            settings.size, positions=settings.positions, longest=settings.longest, dropout=settings.dropout
        )
        projection = nn.Linear(channels * down * across, settings.size)
        super().__init__(settings, patches=nn.Identity(), W_p=projection, placing=placing)
        self.pixels = down, across

    @property
    def vectors(self) -> nn.Module:
        return self.patches

    def read(self, column: Pictures, *, maps: bool = False) -> Encoded:
        assert column.pixels is not None
        return self(column.pixels, column.widths, leftward=column.leftward, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        pixels: Num[Tensor, "batch channels height width"],
        widths: Int[Tensor, " batch"] | None = None,
        *,
        leftward: bool = False,
        maps: bool = False,
    ) -> Encoded:
        """pixels: from 0 to 255; widths: real pixels of each row; leftward: columns are counted from the right."""
        if widths is None:
            widths = torch.full((pixels.shape[0],), pixels.shape[-1], device=pixels.device)
        cut: Float[Tensor, "batch numbers rows columns"] = self.patches(cut_patches(pixels, widths, self.pixels))
        real = (widths + self.pixels[1] - 1) // self.pixels[1]
        if leftward:
            cut = flip_columns(cut, real)
        rows, columns = cut.shape[-2:]
        mask = grid_mask(rows, columns, real)
        states = self.placing(self.W_p(cut.permute(0, 2, 3, 1))).flatten(1, 2)
        return self.encode(states, mask, Layout("grid", (rows, columns), leftward), maps=maps)

    def input_equations(self) -> list[str]:
        down, across = self.pixels
        return [
            f"m_1 .. m_M = patches of {down} x {across} pixels, from -1 to 1, row by row",
            f"x_j = W_p m_j + b_p{self.placing.equation()}",
        ]


class GridPositions(nn.Module):
    """x_rc = v_rc + p_rc: sines and cosines of r in one half of p_rc and of c in the other, or the sum of a learned
    vector of the row and one of the column."""

    def __init__(self, size: int, *, positions: str, longest: int, dropout: float):
        super().__init__()
        self.size, self.positions, self.longest, self.dropout = size, positions, longest, dropout
        if positions not in GRID_POSITIONS:
            raise UserError(f"encoder.positions: {positions} goes along a line; allowed: {', '.join(GRID_POSITIONS)}")
        if positions == "learned":
            self.P_r = nn.Parameter(normal(longest, size, over=size**0.5))
            self.P_c = nn.Parameter(normal(longest, size, over=size**0.5))

    def forward(self, vectors: Float[Tensor, "batch rows columns size"]) -> Float[Tensor, "batch rows columns size"]:
        if self.positions != "none":
            vectors = vectors + self._encodings(*vectors.shape[1:3], like=vectors)
        return dropout(vectors, self.dropout, self.training)

    def equation(self) -> str:
        """What is added to the vector of a patch, for `show`."""
        if self.positions == "learned":
            return f" + p_r + p_c, rows of P_r and P_c for its row and column (at most {self.longest} each)"
        return ", without positions" if self.positions == "none" else " + [p_r; p_c], sines and cosines of both"

    def _encodings(self, rows: int, columns: int, *, like: Tensor) -> Float[Tensor, "rows columns size"]:
        if self.positions == "learned":
            if max(rows, columns) > self.longest:
                raise UserError(
                    f"encoder.longest: {self.longest} learned positions, and the picture has {rows} x {columns} "
                    "places; raise it, or use sinusoidal positions, which have no end"
                )
            return self.P_r[:rows, None] + self.P_c[:columns]
        half = self.size // 2
        down = sinusoids(torch.arange(rows, device=like.device), half)[:, None].expand(-1, columns, -1)
        across = sinusoids(torch.arange(columns, device=like.device), self.size - half).expand(rows, -1, -1)
        return torch.cat([down, across], dim=-1).to(like.dtype)


def cut_patches(
    pixels: Num[Tensor, "batch channels height width"], widths: Int[Tensor, " batch"], patch: tuple[int, int]
) -> Float[Tensor, "batch numbers rows columns"]:
    """The pixels of each patch, from -1 to 1, and 0 outside the image.

    So an image does not depend on how wide the others of its batch are.

    >>> cut_patches(torch.tensor([[[[0, 255, 0]]]]), torch.tensor([3]), (1, 2))[0, :, 0]
    tensor([[-1., -1.],
            [ 1.,  0.]])
    """
    down, across = patch
    height, width = pixels.shape[-2:]
    inside = torch.arange(width, device=pixels.device) < widths[:, None, None, None]
    values = pad((pixels / 127.5 - 1) * inside, (0, -width % across, 0, -height % down))
    cut: Tensor = values.unflatten(3, (-1, across)).unflatten(2, (-1, down))
    return cut.permute(0, 1, 3, 5, 2, 4).flatten(1, 3)


class SoundTransformer(TransformerBase):
    """x_j = W_p [the `stack` frames of place j] + b_p + p_j, then Transformer layers.

    Frames are stacked because they are many and alike, and the cost of a layer grows with the square of their number.

    >>> encoder = SoundTransformer(TransformerEncoderSettings(size=8, feedforward=16, stack=4), width=3)
    >>> encoder(torch.zeros(1, 9, 3), torch.ones(1, 9, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    frames: nn.Identity
    W_p: nn.Linear
    placing: PositionalInput

    def __init__(self, settings: TransformerEncoderSettings, *, width: int):
        stack = settings.stack or 1
        placing = PositionalInput(
            settings.size,
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
            key="encoder",
            limit="longest",
        )
        projection = nn.Linear(width * stack, settings.size)
        super().__init__(settings, frames=nn.Identity(), W_p=projection, placing=placing)
        self.stack = stack

    @property
    def vectors(self) -> nn.Module:
        return self.frames

    def read(self, column: Frames, *, maps: bool = False) -> Encoded:
        return self(column.values, column.mask, column.names, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        frames: Float[Tensor, "batch frames width"],
        mask: Bool[Tensor, "batch frames"],
        names: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        """names: those of the real frames; a place has the name of its first frame."""
        joined, real = stack_frames(self.frames(frames), mask, self.stack)
        tokens = None if names is None else [row[:: self.stack] for row in names]
        return self.encode(self.placing(self.W_p(joined)), real, Layout("frames"), tokens, maps=maps)

    def input_equations(self) -> list[str]:
        joined = f"neighbouring frames, {self.stack} joined" if self.stack > 1 else "the frames"
        return [f"m_1 .. m_M = {joined}", f"x_j = W_p m_j + b_p{self.placing.equation('j')}"]


def stack_frames(
    frames: Float[Tensor, "batch frames width"], mask: Bool[Tensor, "batch frames"], stack: int
) -> tuple[Float[Tensor, "batch places joined"], Bool[Tensor, "batch places"]]:
    """Each `stack` neighbouring frames concatenated, real where the first one is; zeros complete the last place.

    Masked frames count as zeros, so that a row does not depend on how much padding its batch has.

    >>> stack_frames(torch.arange(4.0).view(1, 4, 1), torch.ones(1, 4, dtype=torch.bool), 3)[0]
    tensor([[[0., 1., 2.],
             [3., 0., 0.]]])
    """
    lacking = -frames.shape[1] % stack
    frames, mask = pad(frames * mask[..., None], (0, 0, 0, lacking)), pad(mask, (0, lacking))
    return frames.unflatten(1, (-1, stack)).flatten(2), mask[:, ::stack]


@encoders.register("transformer")
class TransformerEncoder(TransformerBase):
    """x_j = sqrt(d) e(x_j) + p_j, then Transformer layers.

    `build` makes an ImageTransformer or SoundTransformer where the settings have `patch` or `stack`.

    >>> import torch
    >>> encoder = TransformerEncoder(TransformerEncoderSettings(size=8, feedforward=16), symbols=10)
    >>> encoder(torch.tensor([[5, 6, 7]]), torch.ones(1, 3, dtype=torch.bool)).places.states.shape
    torch.Size([1, 3, 8])
    """

    Settings = TransformerEncoderSettings
    entrance: TokenInput

    def __init__(
        self, settings: TransformerEncoderSettings, *, symbols: int, embedding: Embedding | OneHot | None = None
    ):
        entrance = TokenInput(
            embedding if embedding is not None else build_embedding(settings.embedding, symbols),
            size=settings.size,
            positions=settings.positions,
            longest=settings.longest,
            dropout=settings.dropout,
        )
        super().__init__(settings, entrance=entrance)

    @classmethod
    def build(cls, settings: TransformerEncoderSettings, info: InputInfo) -> Encoder:
        if settings.patch is not None:
            return ImageTransformer(settings, channels=info.channels)
        if settings.stack is not None:
            return SoundTransformer(settings, width=info.frame_size)
        return super().build(settings, info)

    @property
    def embedding(self) -> Embedding | OneHot:
        return self.entrance.embedding

    def read(self, column: Sequences, *, maps: bool = False) -> Encoded:
        return self(column.ids, column.mask, column.symbols, maps=maps)  # type: ignore[no-any-return]

    def forward(
        self,
        ids: Int[Tensor, "batch length"],
        mask: Bool[Tensor, "batch length"],
        tokens: list[list[str]] | None = None,
        *,
        maps: bool = False,
    ) -> Encoded:
        return self.encode(self.entrance(ids), mask, Layout(self.layout), tokens, maps=maps)

    def input_equations(self) -> list[str]:
        return [self.embedding.equation("x_j"), self.entrance.token_equation("x_j", "j")]
