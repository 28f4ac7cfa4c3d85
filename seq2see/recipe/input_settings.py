"""What goes in: one class of settings for each kind of input."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag

from seq2see.recipe.basics import Count, TextSettings
from seq2see.recipe.encoder_settings import EncoderSettings
from seq2see.recipe.media_settings import ImageInput
from seq2see.recipe.readers import by_kind
from seq2see.recipe.sound_settings import SoundInput
from seq2see.recipe.vector_settings import VectorInput
from seq2see.recipe.video_settings import VideoInput


class GivenText(TextSettings):
    """What inputs that are texts have beyond what all columns of text have."""

    may_be_empty: bool = Field(
        False,
        description="rows without it are kept and read as a text of no words (a dialogue that begins); false: such "
        "rows are left out",
    )


class TextInput(GivenText):
    """One input; its name is chosen freely and used in `attention.over`, `decoder.start` and `decoder.every_step`."""

    kind: Literal["text"] = Field("text", description="what the column holds")
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class TextsInput(GivenText):
    """One input that holds several texts: the sentences of a document, the utterances of a dialogue so far."""

    kind: Literal["texts"] = Field("texts", description="what the column holds; a list of texts may stand there")
    sentences: Annotated[str, Field(min_length=1)] = Field(
        "rule",
        description="where they end: rule (full stops and their like), newline, tab, or a mark such as |||",
    )
    max_sentences: Count = Field(0, description="at most so many are read; 0: no limit")
    keep: Literal["first", "last"] = Field(
        "first", description="which ones max_sentences leaves: a document says first what matters, a dialogue last"
    )
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


class SetInput(TextSettings):
    """One input that holds a set: elements in no order. Those that stand there twice count twice."""

    kind: Literal["set"] = Field("set", description="what the column holds; a list of elements may stand there")
    tokens: Literal["symbol", "word", "character"] = Field(
        "symbol", description="what one element is; symbol: what stands between spaces"
    )
    separator: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="what stands between elements, each of which is one symbol then, with the spaces in it: newline, "
        "tab, or a mark such as ; (not given: tokens tells them apart)",
    )
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")


InputSettings = Annotated[
    Annotated[TextInput, Tag("text")]
    | Annotated[TextsInput, Tag("texts")]
    | Annotated[SetInput, Tag("set")]
    | Annotated[ImageInput, Tag("image")]
    | Annotated[SoundInput, Tag("sound")]
    | Annotated[VideoInput, Tag("video")]
    | Annotated[VectorInput, Tag("vector")],
    by_kind("text"),
]
