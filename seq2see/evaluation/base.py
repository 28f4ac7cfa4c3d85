"""What a metric is, and what it is taken of: predictions beside their references, row by row."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from seq2see.errors import UserError
from seq2see.recipe.measures import Taken
from seq2see.registry import Registry
from seq2see.settings.base import Tokens

# ---------------- What is judged

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


# ---------------- What a metric is

Needs = Taken


class Metric(ABC):
    """A measure of a whole set of rows.

    needs: the kind of output it is for; top: 1 for fractions, 100 for BLEU and its like, which also rules how
    many decimals are printed; least, most: what it can be at all (most not given: top); name: as it was asked for, for
    messages; lowercase: capital letters do not count, plain: nor do marks of punctuation;
    of_outputs: outputs that are texts are all it takes (no probabilities, no n-best lists, no numbers);
    cased: letters are what it looks at.
    """

    needs: ClassVar[Needs] = "text"
    higher_is_better: ClassVar[bool] = True
    top: ClassVar[float] = 1.0
    least: ClassVar[float] = 0.0
    most: ClassVar[float | None] = None
    of_outputs: ClassVar[bool] = True
    cased: ClassVar[bool] = True

    def __init__(self, name: str, *, lowercase: bool = False, plain: bool = False):
        self.name = name
        self.lowercase = lowercase or plain
        self.plain = plain

    def view(self, rows: Rows) -> Rows:
        """The rows as this metric reads them: what `score` and `statistics` are to be given."""
        rows = rows.lowercased() if self.lowercase else rows
        return rows.unmarked() if self.plain else rows

    @abstractmethod
    def score(self, rows: Rows) -> float:
        """The metric over all rows."""

    @property
    def bounds(self) -> tuple[float, float]:
        return self.least, self.top if self.most is None else self.most

    def show(self, value: float) -> str:
        """As printed: fractions with four decimals, scores up to 100 with two."""
        return f"{value:.4f}" if self.top == 1.0 else f"{value:.2f}"


class RowMetric(Metric):
    """A metric that is a function of sums of row statistics: resampling rows (bootstrap) then only sums anew."""

    @abstractmethod
    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        """What each row adds."""

    @abstractmethod
    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        """The metric of each set of rows, from the sums of its rows' statistics."""

    def score(self, rows: Rows) -> float:
        return float(self.finish(self.statistics(rows).sum(axis=0, keepdims=True))[0])


class Ratio(RowMetric):
    """Sum of what was counted over the sum of what it is counted against: shares, error rates and means.

    nothing: the value where there is nothing to count against (all references empty); what was counted even so
    (symbols inserted into empty references) is added as if against one.
    """

    nothing: ClassVar[float] = 0.0

    @abstractmethod
    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        """For each row what is counted, and against how many."""

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows 2"]:
        return np.array(list(self.counts(rows)), dtype=np.float64)

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        counted, against = sums[:, 0], sums[:, 1]
        rate = np.where(against > 0, counted / np.maximum(against, 1e-300), counted + self.nothing)
        return np.asarray(self.top * rate)


METRICS: Registry[type[Metric]] = Registry("metric")
