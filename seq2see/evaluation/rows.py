"""What is judged: predictions beside their references, row by row."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.recipe.schema import Tokens

Unit: TypeAlias = Tokens


def symbols(text: str, unit: Unit) -> list[str]:
    """The symbols a text is made of: characters, or what stands between spaces.

    Pieces of a BPE are no unit for a reader, so such outputs are judged by words.

    >>> symbols("ab c", "character"), symbols("AH0 B", "symbol")
    (['a', 'b', ' ', 'c'], ['AH0', 'B'])
    """
    return list(text) if unit == "character" else text.split()


@dataclass(frozen=True)
class Rows:
    """Predictions and all that metrics may ask to know of them; the fields that are given have one entry per row.

    references: the right outputs of each row, at least one; rows may differ in how many they have;
    unit: what the outputs are made of; input_unit: what the inputs are made of, where that differs;
    alternatives: further hypotheses, best first (the prediction itself may be among them);
    targets: the symbols whose probability was taken, `<eos>` included where the model predicts it;
    log_probabilities: of the whole of each row's target;
    alignments: links that were found between input and output, beside the known ones (see `alignment.Aligned`);
    numbers: what was given, where outputs are made of numbers; true_numbers: the right ones, at least one for each row.
    """

    predictions: Sequence[str]
    references: Sequence[Sequence[str]]
    inputs: Sequence[str] | None = None
    unit: Unit = "word"
    input_unit: Unit | None = None
    alternatives: Sequence[Sequence[str]] | None = None
    targets: Sequence[Sequence[str]] | None = None
    log_probabilities: Sequence[float] | None = None
    alignments: Sequence[Any] | None = None
    numbers: Sequence[NDArray[np.float64]] | None = None
    true_numbers: Sequence[Sequence[NDArray[np.float64]]] | None = None

    def __post_init__(self) -> None:
        if not self.predictions:
            raise UserError("there are no rows to evaluate")
        for name in _BY_ROW:
            given = getattr(self, name)
            if given is not None and len(given) != len(self.predictions):
                raise ValueError(f"{len(self.predictions)} predictions, but {len(given)} {name}")
        for number, references in enumerate(self.references, start=1):
            if not references:
                raise UserError(f"row {number} has no reference: a prediction needs at least one to be judged against")

    def __len__(self) -> int:
        return len(self.predictions)

    def need(self, name: str, metric: str) -> Any:
        """The field of that name, or an error that says which metric asked for it."""
        value = getattr(self, name)
        if value is None:
            raise UserError(f"metric '{metric}' needs {name.replace('_', '-')}, and this evaluation has none")
        return value

    def select(self, chosen: Sequence[int]) -> Rows:
        """The chosen rows, in the order given."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _BY_ROW}
        kept: dict[str, Any] = {
            name: [given[row] for row in chosen] for name, given in fields.items() if given is not None
        }
        return replace(self, **kept)

    def answered(self, predictions: Sequence[str]) -> Rows:
        """The same rows with other answers; what belonged to the old ones is left out."""
        return replace(self, predictions=predictions, alternatives=None, log_probabilities=None, alignments=None)

    def guessed(self, numbers: Sequence[NDArray[np.float64]]) -> Rows:
        """The same rows with other numbers for answers."""
        return replace(self, numbers=numbers)

    def lowercased(self) -> Rows:
        """The same rows without capital letters."""
        return self._rewritten(str.lower)

    def unmarked(self) -> Rows:
        """The same rows without marks of punctuation."""
        return self._rewritten(unmarked)

    def _rewritten(self, rewrite: Callable[[str], str]) -> Rows:
        def each(texts: Sequence[str]) -> list[str]:
            return [rewrite(text) for text in texts]

        return replace(
            self,
            predictions=each(self.predictions),
            references=[each(texts) for texts in self.references],
            inputs=None if self.inputs is None else each(self.inputs),
            alternatives=None if self.alternatives is None else [each(texts) for texts in self.alternatives],
        )


_BY_ROW = (
    "predictions",
    "references",
    "inputs",
    "alternatives",
    "targets",
    "log_probabilities",
    "alignments",
    "numbers",
    "true_numbers",
)


def unmarked(text: str) -> str:
    """Words alone, with a single space between them: every mark of punctuation goes.

    >>> unmarked("A dog , it 's running .")
    'A dog it s running'
    """
    return " ".join("".join(letter for letter in text if unicodedata.category(letter)[0] != "P").split())
