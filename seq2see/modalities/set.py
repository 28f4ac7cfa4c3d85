"""Sets: elements in no order, each of them a symbol."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field as Setting

from seq2see.data.tokens import Separated
from seq2see.errors import UserError
from seq2see.modalities.base import Elements, inputs
from seq2see.modalities.text import TOKENS, TextField
from seq2see.registry import Problem
from seq2see.settings.base import no_effect
from seq2see.settings.columns import ColumnSettings, InputColumn, TextSettings

if TYPE_CHECKING:
    from seq2see.recipe.schema import Recipe


class SetInput(TextSettings, InputColumn):
    """One input that holds a set: elements in no order. Duplicates are kept."""

    in_a_row: ClassVar[bool] = True
    unordered: ClassVar[bool] = True
    kind: Literal["set"] = Setting("set", description="what the column holds; it may also be a list of elements")
    tokens: Literal["symbol", "word", "character"] = Setting(
        "symbol", description="what one element is; symbol: separated by spaces"
    )
    separator: Annotated[str, Setting(min_length=1)] | None = Setting(
        None,
        description="separator of elements, each of which is then one symbol, spaces included: newline, tab, or a "
        "mark such as ; (not given: split by `tokens`)",
    )

    def check(self, recipe: Recipe, path: str) -> Iterator[Problem]:
        if self.separator is not None:
            yield from no_effect(self, path, ["tokens"], "separator tells elements apart")
        if self.max_length:
            message = f"{self.max_length} would cut a set by the order it was written in; allowed: 0"
            yield Problem(f"{path}.max_length", message, "set-length")


@inputs.register("set")
class SetField(TextField):
    """A set as a row of symbols. They are kept in the order they were written in, which is shown and means nothing.

    >>> field = SetField(SetInput(separator=";"))
    >>> field.build(["new york; oslo; oslo"])
    >>> field.places("oslo; new york; oslo"), field.ids("oslo; new york")
    (['oslo', 'new york', 'oslo'], [4, 5])
    """

    Settings: ClassVar[type[ColumnSettings]] = SetInput
    elements: ClassVar[Elements] = Elements("texts", (str,), {"type": "string"})
    settings: SetInput

    def __init__(self, settings: SetInput, *, output: bool = False):
        super().__init__(settings, output=output)
        if settings.separator is not None:
            self.splitter = Separated(settings.separator)

    def _made_of(self, column: str) -> str:
        settings = self.settings
        elements = TOKENS[settings.tokens] if settings.separator is None else f"elements between {settings.separator!r}"
        return f"a set, column '{column}', of {elements}, in no order"

    def from_list(self, items: Sequence[str]) -> str:
        """One value from a list of elements, which the field splits again.

        >>> SetField(SetInput(separator=";")).from_list(["oslo", "new york"])
        'oslo; new york'
        """
        separator, tokens = self.settings.separator, self.settings.tokens
        for element in items:
            if self.splitter.split(element) != [element]:
                raise UserError(
                    f"element {element!r} is not one {tokens}; set the input's separator to a mark that no "
                    "element holds"
                    if separator is None
                    else f"element {element!r} holds the separator {separator!r}, outer spaces, or nothing"
                )
        if separator is not None:
            return self.splitter.join(items)
        return ("" if tokens == "character" else " ").join(items)
