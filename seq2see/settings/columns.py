"""Settings of the columns of a table: inputs, outputs, and the encoder that reads an input.

Each kind of input, output and encoder has a subclass, which is written in the file of that kind. Recipes find it by its
`kind` in INPUTS, OUTPUTS and ENCODERS, to which plug-ins add theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from seq2see.settings.base import Count, NameOf, Parts, Positive, Settings, Tokens

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe

INPUTS: dict[str, type[InputColumn]] = {}
OUTPUTS: dict[str, type[OutputColumn]] = {}
ENCODERS: dict[str, type[EncoderSettings]] = {}

View = tuple[int | None, str | None]
"""Numbers in each place, and how places lie; None: only the built encoder knows."""


# --- Encoders


class EncoderSettings(Settings):
    """h_1 .. h_M: how an input is read.

    reads: kinds of input that it can read, or contents (`InputColumn.content`); lies: the layout of its places, where
    no setting changes it; own: a plug-in brought it; for_texts: a recipe that names it means its texts, and other
    inputs have their usual encoders. Sizes and layouts are None where only the built encoder knows.
    """

    parts = {"kind": Parts(ENCODERS, apart=True)}
    reads: ClassVar[tuple[str, ...]] = ("text",)
    lies: ClassVar[str | None] = "tokens"
    own: ClassVar[bool] = False
    for_texts: ClassVar[bool] = False
    kind: Annotated[str, NameOf(ENCODERS)] = Field("recurrent", description="what reads the input")

    @classmethod
    def can_read(cls, column: InputColumn | type[InputColumn]) -> bool:
        """Whether it reads such an input, by its kind or by what a batch of it holds."""
        return bool({column.kind_name(), column.content}.intersection(cls.reads))

    @property
    def places_size(self) -> int | None:
        """Numbers in each h_j, which is what is looked at: `size` of them, of each direction where there are two."""
        values: dict[str, Any] = dict(self)
        return int(values["size"]) * (2 if values.get("bidirectional") else 1)

    @property
    def summary_size(self) -> int | None:
        """Numbers in the summary: what starts a decoder or enters its every step."""
        return self.places_size

    @property
    def layer_count(self) -> int:
        """Layers that are built: every one of its stacks, lists of sizes and further layers."""
        values: dict[str, Any] = dict(self)
        stacks = [values.get("layers"), values.get("summary_layers")]
        sizes = [values.get("hidden"), values.get("channels"), values.get("motion")]
        single = sum(value for value in stacks if isinstance(value, int))
        return max(single + sum(len(value) for value in sizes if isinstance(value, list)), 1)

    @property
    def layout(self) -> str | None:
        """How its places lie."""
        return self.lies

    @property
    def further(self) -> dict[str, View]:
        """Other places of the same input, by the name that stands behind the input's own."""
        return {}

    @property
    def symbols(self) -> Any:
        """The embedding settings of its symbols; None for one that reads no symbols."""
        return getattr(self, "embedding", None)

    @property
    def makes(self) -> dict[str, str]:
        """{name: setting} of further places that it would give if that setting of its own were set."""
        return {}

    @property
    def order_lost(self) -> str:
        """Why nothing that it gives depends on the order in which an input is read; empty where something does."""
        return ""

    def complete(self, column: InputColumn, *, summary_used: bool, shared: bool) -> dict[str, Any]:
        """Settings that follow from the input where the recipe does not state them.

        summary_used: the decoder starts from its summary, or sees it at every step; shared: inputs of other kinds are
        read with the same settings, so that this one gets a copy of its own.
        """
        return {}


def readers_of(column: InputColumn) -> list[str]:
    """The kinds of encoders that read such an input, the usual one first."""
    usual = column.usual_encoder or EncoderSettings.model_fields["kind"].default
    readers = [name for name, settings in ENCODERS.items() if settings.can_read(column)]
    return sorted(readers, key=lambda name: name != usual)


# --- Columns


class ColumnSettings(Settings):
    """Settings of an input or an output, which is a column of the table."""

    if TYPE_CHECKING:
        kind: str
        column: str | None

    @property
    def file(self) -> bool:
        """Whether its values are paths of files."""
        return False

    @property
    def sized_by_data(self) -> bool:
        """Whether only data tell how many symbols, labels or numbers it has."""
        return False

    @classmethod
    def kind_name(cls) -> str:
        """Its `kind`, as recipes write it."""
        return str(cls.model_fields["kind"].default)


class InputColumn(ColumnSettings):
    """Settings of an input; each kind of input states its properties here.

    usual_encoder: the kind of encoder that reads it where the recipe names none; not given: the recipe's own, one for
    texts; content: what a batch of it holds, where encoders of another kind of input can read it too (`frames` for
    numbers over time, `text` for symbols); one_place: it is a single place, so there is nothing to look at;
    reversible: it can be read from its end to its beginning; copied_part: which of its further places hold the symbols
    that can be copied; in_a_row: its symbols are its places, one by one; unordered: its places have no order;
    timed: its places divide a stretch of time, which its field knows (`extent`).

    A kind that has rules of its own writes `check(self, recipe, path)`, which yields a `Problem` for each broken one.
    """

    parts = {"kind": Parts(INPUTS, apart=True)}
    usual_encoder: ClassVar[str | None] = None
    content: ClassVar[str] = ""
    one_place: ClassVar[bool] = False
    reversible: ClassVar[bool] = False
    copied_part: ClassVar[str] = ""
    in_a_row: ClassVar[bool] = False
    unordered: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    kind: Annotated[str, NameOf(INPUTS)] = Field("text", description="what the column holds")
    column: str | None = Field(None, description="column of the table; not given: the input's name")
    encoder: EncoderSettings | None = Field(
        None, description="settings of its encoder that differ from the recipe's `encoder`"
    )

    @property
    def most_frames(self) -> int:
        """Frames of the longest input, where it has frames and a limit; 0 where it has none."""
        return 0

    @property
    def limit_text(self) -> str:
        """The same limit in words, in the unit of the setting."""
        return f"{self.most_frames:,} frames"

    @property
    def noise_note(self) -> str:
        """The noise that is added to it while a model is trained; nothing where there is none."""
        return ""


class OutputColumn(ColumnSettings):
    """Settings of an output; each kind of output states its properties here.

    noun: what it is called; one_step: it is given whole, by a decoder that reads no symbol; numeric: it is made of
    numbers, which are near or far from the right ones and have no probability; classes: it is one of several labels;
    continues: it goes on where an input ends; plain_by: the setting that leaves its numbers as they are, where they can
    be normalised; measured_as: which metrics, baselines and decoders fit it; correct: the metric that tells whether it
    is right; usual_decoder: the kind of decoder that writes it where the recipe names none; not given: the first that
    can.
    """

    parts = {"kind": Parts(OUTPUTS, apart=True)}
    noun: ClassVar[str] = "an output"
    one_step: ClassVar[bool] = True
    numeric: ClassVar[bool] = False
    classes: ClassVar[bool] = False
    continues: ClassVar[bool] = False
    plain_by: ClassVar[str] = ""
    measured_as: ClassVar[Literal["text", "label", "numbers"]] = "label"
    correct: ClassVar[str] = "exact"
    usual_decoder: ClassVar[str | None] = None
    kind: Annotated[str, NameOf(OUTPUTS)] = Field("text", description="what the column holds")
    column: str | None = Field(None, description="column of the table; not given: `output`")

    @property
    def normalised(self) -> bool:
        """Whether a model learns its numbers normalised to mean 0 and deviation 1."""
        return False

    @property
    def answer_field(self) -> str:
        """The field of a `Prediction` that holds the answer."""
        return "vector" if self.measured_as == "numbers" else self.measured_as

    @property
    def shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of what is a picture; None where it is none."""
        return None

    @property
    def activation(self) -> str:
        """Of the last layer, where numbers are given and the recipe does not state it."""
        return "linear"

    @property
    def generated(self) -> str | None:
        """What outputs tell that no column holds; None where a column holds them."""
        return None

    def complete(self, recipe: Recipe) -> dict[str, Any]:
        """Settings that follow from the rest of the recipe where it does not state them."""
        return {}


class TextSettings(ColumnSettings):
    """How the text of one column becomes symbols."""

    column: str | None = Field(None, description="column of the table; not given: the input's name, or `output`")
    tokens: Tokens = Field("word", description="what one symbol is; symbol: separated by spaces")
    vocabulary: Count = Field(
        0, description="at most this many symbols, the most frequent ones; 0: no limit (bpe: 8,000)"
    )
    min_count: Positive = Field(1, description="rarer symbols become <unk>")
    case: Literal["keep", "lower"] = Field("keep", description="lower: letters become lower case")
    punctuation: Literal["keep", "drop"] = Field("keep", description="drop: punctuation is neither read nor written")
    unicode: Literal["none", "NFC", "NFD", "NFKC", "NFKD"] = Field("NFC", description="normal form of the text")
    max_length: Count = Field(
        0,
        description="inputs are cut after this many symbols, rows with longer outputs are not trained on; 0: no limit",
    )
    share: str | None = Field(None, description="use the vocabulary (and, between inputs, the encoder) of this input")

    @property
    def sized_by_data(self) -> bool:
        return True
