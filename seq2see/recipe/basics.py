"""What settings are made of: types with limits, and groups of keys that several parts of a recipe share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Tokens = Literal["word", "character", "symbol", "bpe"]
Activation = Literal["relu", "tanh", "logistic", "linear"]
CellKind = Literal["rnn", "gru", "lstm"]
Positions = Literal["sinusoidal", "learned", "rotary", "none"]
LARGEST = 1_000_000_000
"""Of whole numbers that have no smaller limit of their own: 32 bits hold it, and sums of several too."""
Positive = Annotated[int, Field(gt=0, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Size = Annotated[int, Field(gt=0, le=1_000_000)]
"""Numbers of a vector. A product of two such sizes takes 4 TB, and still has a size that torch can name."""
MOST_LAYERS = 1_000
"""Of all networks of a recipe together: each layer is built one by one, and none learns through more."""
Layers = Annotated[int, Field(gt=0, le=MOST_LAYERS)]
MOST_SIDE = 10_000
"""Pixels of a side that pictures are brought to."""
Side = Annotated[int, Field(gt=0, le=MOST_SIDE)]
Seed = Annotated[int, Field(gt=-(2**63), lt=2**63)]
Share = Annotated[float, Field(ge=0, lt=1)]
Weight = Annotated[float, Field(gt=0)]
Amount = Annotated[float, Field(ge=0)]
Temperature = Annotated[float, Field(ge=1e-3, le=1e3)]
"""Energies divided by less would leave single precision, by more they would all be alike."""
Scalar = bool | int | float | str


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, allow_inf_nan=False)


class TextSettings(Settings):
    """How the text of one column becomes symbols."""

    column: str | None = Field(None, description="column of the table; not given: the input's name, or `output`")
    tokens: Tokens = Field("word", description="what one symbol is; symbol: what stands between spaces")
    vocabulary: Count = Field(
        0, description="at most so many symbols, the most frequent ones; 0: no limit (bpe: 8,000)"
    )
    min_count: Positive = Field(1, description="rarer symbols become <unk>")
    case: Literal["keep", "lower"] = Field("keep", description="lower: letters become lower case")
    punctuation: Literal["keep", "drop"] = Field(
        "keep", description="drop: marks of punctuation are not read or written"
    )
    unicode: Literal["none", "NFC", "NFD", "NFKC", "NFKD"] = Field("NFC", description="normal form of the text")
    max_length: Count = Field(
        0,
        description="inputs are cut after so many symbols, rows with longer outputs leave training; 0: no limit",
    )
    share: str | None = Field(None, description="use the vocabulary (and, between inputs, the encoder) of this input")


class EmbeddingSettings(Settings):
    """e(y): symbols as vectors."""

    kind: Literal["learned", "one-hot", "pretrained"] = Field("learned", description="where the vectors come from")
    size: Size = Field(128, description="size of a learned embedding; one-hot and pretrained ones bring their own")
    path: str | None = Field(None, description="pretrained: text file of vectors (word2vec, GloVe or fastText)")
    tuned: bool = Field(True, description="pretrained: go on learning; false: frozen")
    dropout: Share = Field(0.0, description="on the vectors")


class CellSettings(Settings):
    """A recurrent network of one or more layers."""

    cell: CellKind = Field("gru", description="plain recurrent, GRU or LSTM")
    activation: Literal["tanh", "logistic"] = Field(
        "tanh", description="of the plain recurrent cell and the GRU's candidate"
    )
    reset: Literal["after", "before"] = Field(
        "after", description="GRU: reset gate applied after the product (torch's form) or before it (the textbook's)"
    )
    size: Size = Field(256, description="size of a state (of each direction, where there are two)")
    layers: Layers = Field(1, description="one above the other")
    dropout: Share = Field(0.0, description="between layers and on the output of the last")
