"""Metrics: the rows they read, their base classes, the registry that finds them by name, and those of labels, numbers,
probabilities and alignments. Those of texts are in `strings.py` and `ngrams.py`."""

from __future__ import annotations

import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from seq2see.errors import UserError, nearest
from seq2see.registry import Registry
from seq2see.settings.base import Tokens
from seq2see.settings.plugins import check_subclass

OutputType = Literal["text", "label", "numbers"]
"""What an output is to a metric: vectors and images are numbers."""
AppliesTo = Literal["text", "label", "numbers", "any"]
"""The outputs that a metric or a baseline is for; any: those with a probability, texts and labels."""

LOWERCASE, PLAIN = "_lc", "_plain"
FORMS = "for texts also with the ending _lc (case is ignored) or _plain (punctuation too), as in bleu_plain"


def applies(applies_to: AppliesTo, output: OutputType) -> bool:
    """Whether what is for these outputs can be used for outputs of that type.

    >>> applies("any", "label"), applies("any", "numbers")
    (True, False)
    """
    return applies_to == output or (applies_to == "any" and output != "numbers")


# ---------------------------------------------------------------- rows

Unit: TypeAlias = Tokens


def symbols(text: str, unit: Unit) -> list[str]:
    """Split a text into its symbols: characters, or what stands between spaces.

    The pieces of a BPE mean nothing to a reader, so such outputs are measured by words.

    >>> symbols("ab c", "character"), symbols("AH0 B", "symbol")
    (['a', 'b', ' ', 'c'], ['AH0', 'B'])
    """
    return list(text) if unit == "character" else text.split()


@dataclass(frozen=True)
class Rows:
    """Predictions with everything that a metric may need; every field that is set has one entry per row.

    references: the right outputs of each row, at least one; rows may differ in how many they have;
    inputs: the first text input; joined_inputs: all text inputs, joined;
    unit: what the outputs are made of; input_unit: what the inputs are made of, where that differs;
    alternatives: further hypotheses, best first (the prediction itself may be among them);
    targets: the symbols whose probability was computed, `<eos>` included where the model predicts it;
    log_probabilities: of each row's whole target;
    alignments: predicted links between input and output, beside the known ones (see `Aligned`);
    numbers: predicted numbers, where outputs are numbers; true_numbers: the right ones, at least one for each row;
    continued: numbers that repeat the end of each row's inputs, where outputs go on from there.
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
    continued: Sequence[NDArray[np.float64]] | None = None
    joined_inputs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not self.predictions:
            raise UserError("there are no rows to evaluate")
        for name in _PER_ROW:
            values = getattr(self, name)
            if values is not None and len(values) != len(self.predictions):
                raise ValueError(f"{len(self.predictions)} predictions, but {len(values)} {name}")
        for number, references in enumerate(self.references, start=1):
            if not references:
                raise UserError(f"row {number} has no reference: a prediction needs at least one to be compared with")

    def __len__(self) -> int:
        return len(self.predictions)

    def need(self, name: str, metric: str) -> Any:
        """The field of that name, or an error that says which metric needs it."""
        value = getattr(self, name)
        if value is None:
            raise UserError(f"metric '{metric}' needs {name.replace('_', '-')}, and this evaluation has none")
        return value

    def select(self, indices: Sequence[int]) -> Rows:
        """Some of the rows, in the order of the indices."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _PER_ROW}
        selected: dict[str, Any] = {
            name: [values[row] for row in indices] for name, values in fields.items() if values is not None
        }
        return replace(self, **selected)

    def with_predictions(self, predictions: Sequence[str]) -> Rows:
        """The same rows with other predictions; what belonged to the old ones is dropped."""
        return replace(self, predictions=predictions, alternatives=None, log_probabilities=None, alignments=None)

    def lowercase(self) -> Rows:
        """The same rows in lower case."""
        return self._map(str.lower)

    def without_punctuation(self) -> Rows:
        """The same rows without punctuation."""
        return self._map(strip_punctuation)

    def _map(self, rewrite: Callable[[str], str]) -> Rows:
        def each(texts: Sequence[str]) -> list[str]:
            return [rewrite(text) for text in texts]

        return replace(
            self,
            predictions=each(self.predictions),
            references=[each(texts) for texts in self.references],
            inputs=None if self.inputs is None else each(self.inputs),
            alternatives=None if self.alternatives is None else [each(texts) for texts in self.alternatives],
        )


_PER_ROW = (
    "predictions",
    "references",
    "inputs",
    "joined_inputs",
    "alternatives",
    "targets",
    "log_probabilities",
    "alignments",
    "numbers",
    "true_numbers",
    "continued",
)


def join_rows(parts: Sequence[Rows]) -> Rows:
    """The rows of several evaluations as one; a field that not all of them have is dropped.

    >>> join_rows([Rows(["a"], [["b"]]), Rows(["c"], [["c"]], inputs=["d"])]).predictions
    ['a', 'c']
    """
    joined: dict[str, Any] = {}
    for name in _PER_ROW:
        values = [getattr(part, name) for part in parts]
        joined[name] = None if any(value is None for value in values) else [row for value in values for row in value]
    return replace(parts[0], **joined)


@dataclass(frozen=True)
class Measured:
    """Some metrics, and the rows that they were taken of: predictions of distinct inputs, probabilities of all rows, or
    alignments. Rows of several evaluations can be joined and measured together."""

    names: list[str]
    rows: Rows

    def records(self) -> Iterator[dict[str, Any]]:
        """Each row as plain values of JSON."""
        common = {"metrics": self.names, "unit": self.rows.unit, "input_unit": self.rows.input_unit}
        fields = {name: values for name in _PER_ROW if (values := getattr(self.rows, name)) is not None}
        for row in range(len(self.rows)):
            yield common | {name: _plain(values[row]) for name, values in fields.items()}

    @classmethod
    def from_records(cls, records: Sequence[dict[str, Any]]) -> Measured:
        """The inverse of `records`, for records of the same metrics."""
        first = records[0]
        fields: dict[str, Any] = {name: [record[name] for record in records] for name in _PER_ROW if name in first}
        for name, restore in _RESTORE.items():
            if name in fields:
                fields[name] = [restore(value) for value in fields[name]]
        return cls(first["metrics"], Rows(**fields, unit=first["unit"], input_unit=first["input_unit"]))


def _plain(value: Any) -> Any:
    """A value of a row as JSON has it."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Aligned):
        return [sorted(links) for links in (value.predicted, value.sure, value.possible)]
    return [_plain(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


_RESTORE: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda numbers: np.asarray(numbers, dtype=np.float64),
    "continued": lambda numbers: np.asarray(numbers, dtype=np.float64),
    "true_numbers": lambda several: [np.asarray(numbers, dtype=np.float64) for numbers in several],
    "alignments": lambda links: Aligned(*({(place, step) for place, step in part} for part in links)),
}


def strip_punctuation(text: str) -> str:
    """The words of a text with single spaces between them, without punctuation.

    >>> strip_punctuation("A dog , it 's running .")
    'A dog it s running'
    """
    return " ".join("".join(letter for letter in text if unicodedata.category(letter)[0] != "P").split())


# ---------------------------------------------------------------- base classes


class Metric(ABC):
    """A measure of a set of rows. A new metric is one subclass, registered under its name.

    applies_to: the outputs it is for; top: 1 for fractions, 100 for BLEU and its like, which also decides how many
    decimals are printed; least, most: its bounds (most not set: top);
    outputs_only: it needs nothing but output texts (no probabilities, no n-best lists, no numbers);
    cased: it compares letters, so that `_lc` and `_plain` forms make sense;
    needs_inputs: false for what can also be measured of a language model, which answers no input;
    needs_links: it compares attention with known alignments, so the table needs a column of links.
    """

    applies_to: ClassVar[AppliesTo] = "text"
    higher_is_better: ClassVar[bool] = True
    top: ClassVar[float] = 1.0
    least: ClassVar[float] = 0.0
    most: ClassVar[float | None] = None
    outputs_only: ClassVar[bool] = True
    cased: ClassVar[bool] = True
    needs_inputs: ClassVar[bool] = True
    needs_links: ClassVar[bool] = False

    def __init__(self, name: str, *, lowercase: bool = False, plain: bool = False):
        """name: as it was asked for, for messages; lowercase: ignore case; plain: ignore case and punctuation."""
        self.name = name
        self.lowercase = lowercase or plain
        self.plain = plain

    def view(self, rows: Rows) -> Rows:
        """The rows as this metric reads them, to be given to `score` and `statistics`."""
        rows = rows.lowercase() if self.lowercase else rows
        return rows.without_punctuation() if self.plain else rows

    @abstractmethod
    def score(self, rows: Rows) -> float:
        """The metric over all rows."""

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest value that are possible."""
        return self.least, self.top if self.most is None else self.most

    def show(self, value: float) -> str:
        """Format a value: fractions with four decimals, scores up to 100 with two."""
        return f"{value:.4f}" if self.top == 1.0 else f"{value:.2f}"


class RowMetric(Metric):
    """A metric that is a function of sums over rows, so that bootstrap resampling only has to sum again."""

    @abstractmethod
    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        """What each row adds to the sums."""

    @abstractmethod
    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        """The metric of each set of rows, from the sums of its rows' statistics."""

    def score(self, rows: Rows) -> float:
        return float(self.finish(self.statistics(rows).sum(axis=0, keepdims=True))[0])


class Ratio(RowMetric):
    """A sum of counts over a sum of totals: shares, error rates and means.

    nothing: the value where the totals are 0 (all references empty); counts even so (symbols inserted into empty
    references) are added as if the total were 1.
    """

    nothing: ClassVar[float] = 0.0

    @abstractmethod
    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        """(count, total) of each row."""

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows 2"]:
        return np.array(list(self.counts(rows)), dtype=np.float64)

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        count, total = sums[:, 0], sums[:, 1]
        rate = np.where(total > 0, count / np.maximum(total, 1e-300), count + self.nothing)
        return np.asarray(self.top * rate)


def _check(name: str, kind: Any) -> None:
    check_subclass(f"metric '{name}'", kind, Metric)


METRICS: Registry[type[Metric]] = Registry("metric", check=_check)


# ---------------------------------------------------------------- metrics by name


def lookup(name: str) -> Metric:
    """The metric of that name.

    `_lc` after the name of a text metric ignores case, `_plain` punctuation too, on both sides; `exact@5` reads five
    hypotheses.

    >>> lookup("bleu_lc").lowercase, lookup("cer").higher_is_better
    (True, False)
    """
    base, suffix = _split(name)
    registered = registered_name(name)
    if registered not in METRICS:
        raise UserError(f"unknown metric '{name}'{nearest(base, METRICS)}; allowed: {list_names(METRICS)}")
    kind = METRICS[registered]
    if suffix and (kind.applies_to != "text" or not kind.cased):
        raise UserError(f"unknown metric '{name}': '{base}' does not look at letters, so it has no {suffix} form")
    return kind(base, lowercase=suffix == LOWERCASE, plain=suffix == PLAIN)


def registered_name(name: str) -> str:
    """The name under which a metric is registered.

    >>> registered_name("exact@5_lc"), registered_name("bleu_plain")
    ('exact@n', 'bleu')
    """
    base, _ = _split(name)
    return "exact@n" if base.startswith("exact@") else base


def _split(name: str) -> tuple[str, str]:
    """(name without its suffix, suffix)."""
    suffix = next((suffix for suffix in (LOWERCASE, PLAIN) if name.endswith(suffix)), "")
    return name.removesuffix(suffix), suffix


def list_names(names: Iterable[str]) -> str:
    """Names of metrics for a message, with the further forms that text metrics have."""
    known = list(names)
    texts = any(name in METRICS and METRICS[name].applies_to == "text" for name in known)
    return f"{', '.join(known)}{f'; {FORMS}' if texts else ''}"


def higher_is_better(name: str) -> bool:
    """Whether a larger value of the metric is a better one."""
    return lookup(name).higher_is_better


def metrics_for(output: OutputType, *, inputs: bool = True, links: bool = False) -> list[str]:
    """The names of the metrics for a model with such outputs.

    inputs: whether it reads any (a language model does not); links: whether true alignments are known.
    """
    kinds = {name: METRICS[name] for name in METRICS}
    return [
        name
        for name, kind in kinds.items()
        if applies(kind.applies_to, output)
        and (inputs or output != "text" or not kind.needs_inputs)
        and (links or not kind.needs_links)
    ]


def default_metrics(output: OutputType, tokens: Unit | None = None, *, inputs: bool = True) -> list[str]:
    """The metrics of a recipe that names none, the leading one first; a language model has no inputs.

    >>> default_metrics("text", "symbol"), default_metrics("text", "word"), default_metrics("label")
    (['exact', 'cer'], ['bleu', 'chrf'], ['accuracy', 'macro_f1'])
    """
    if output == "label":
        return ["accuracy", "macro_f1"]
    if output == "numbers":
        return ["mse"]
    if not inputs:
        return ["perplexity"]
    return ["exact", "cer"] if tokens in ("character", "symbol") else ["bleu", "chrf"]


def check(names: Sequence[str], output: OutputType) -> None:
    """Refuse names that are unknown, given twice, or not for such outputs."""
    for position, name in enumerate(names):
        if name in names[:position]:
            raise UserError(f"metric '{name}' is asked for twice")
        if not applies(lookup(name).applies_to, output):
            fitting = list_names(other for other in METRICS if applies(METRICS[other].applies_to, output))
            raise UserError(f"metric '{name}' is not for outputs of type '{output}'; allowed: {fitting}")


def measure(names: Sequence[str], rows: Rows) -> dict[str, float]:
    """Each metric over all rows, in the order of the names."""
    metrics = [(name, lookup(name)) for name in names]
    return {name: metric.score(metric.view(rows)) for name, metric in metrics}


def compute(
    names: Sequence[str],
    predictions: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    inputs: Sequence[str] | None = None,
    unit: Unit = "word",
    lowercase: bool = False,
    alternatives: Sequence[Sequence[str]] | None = None,
    targets: Sequence[Sequence[str]] | None = None,
    log_probabilities: Sequence[float] | None = None,
) -> dict[str, float]:
    """`measure` for plain lists (`Rows` explains the arguments). Rates are fractions; BLEU, chrF and ROUGE go to 100.

    >>> compute(["exact", "cer"], ["ab", "cd"], [["ab", "abc"], ["ce"]], unit="character")
    {'exact': 0.5, 'cer': 0.25}
    """
    rows = Rows(
        predictions,
        references,
        inputs=inputs,
        unit=unit,
        alternatives=alternatives,
        targets=targets,
        log_probabilities=log_probabilities,
    )
    return measure(names, rows.lowercase() if lowercase else rows)


# ---------------------------------------------------------------- labels, numbers, probabilities and alignments


@METRICS.register("accuracy")
class Accuracy(Ratio):
    """Share of labels equal to any of their references."""

    applies_to = "label"

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        for prediction, references in zip(rows.predictions, rows.references, strict=True):
            yield float(prediction in references), 1.0


@METRICS.register("macro_f1")
class MacroF1(RowMetric):
    """The unweighted mean over labels of F1 = 2 * correct / (predicted + true).

    Of several references the predicted one counts as true, otherwise the first.
    """

    applies_to = "label"

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows size"]:
        true = [
            predicted if predicted in references else references[0]
            for predicted, references in zip(rows.predictions, rows.references, strict=True)
        ]
        number = {label: i for i, label in enumerate(sorted({*rows.predictions, *true}))}
        counts = np.zeros((len(rows), 2, len(number)))
        for row, (predicted, label) in enumerate(zip(rows.predictions, true, strict=True)):
            counts[row, 0, number[label]] += predicted == label
            counts[row, 1, number[predicted]] += 1
            counts[row, 1, number[label]] += 1
        return counts.reshape(len(rows), -1)

    def finish(self, sums: Float[np.ndarray, "sets size"]) -> Float[np.ndarray, " sets"]:
        correct, occurred = np.moveaxis(sums.reshape(len(sums), 2, -1), 1, 0)
        f1 = 2 * correct / np.maximum(occurred, 1)
        return np.asarray(f1.sum(axis=1) / np.maximum((occurred > 0).sum(axis=1), 1))


@METRICS.register("mse")
class MeanSquaredError(Ratio):
    """Mean of (y_i - x_i) ** 2 over all numbers of all rows; of several references the closest counts."""

    applies_to = "numbers"
    higher_is_better = False
    most = math.inf
    outputs_only = False
    cased = False

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        true = rows.need("true_numbers", self.name)
        for predicted, references in zip(rows.need("numbers", self.name), true, strict=True):
            yield min(float(np.square(predicted - reference).sum()) for reference in references), float(len(predicted))

    def show(self, value: float) -> str:
        """Four significant digits, as data may be of any scale."""
        return f"{value:.4g}"


@METRICS.register("mae")
class MeanAbsoluteError(MeanSquaredError):
    """Mean of |y_i - x_i| over all numbers of all rows, in their own unit; of several references the closest counts."""

    def counts(self, rows: Rows) -> Iterator[tuple[float, float]]:
        true = rows.need("true_numbers", self.name)
        for predicted, references in zip(rows.need("numbers", self.name), true, strict=True):
            yield min(float(np.abs(predicted - reference).sum()) for reference in references), float(len(predicted))


def perplexity(total_log_probability: float, tokens: int) -> float:
    """exp of the mean negative log-probability (in nats) of a token.

    >>> round(perplexity(-10 * math.log(7), 10), 6)
    7.0
    """
    if tokens <= 0:
        raise ValueError(f"perplexity is a mean over tokens, and there are {tokens}")
    mean = -total_log_probability / tokens
    return math.exp(mean) if mean < 700 else math.inf


@METRICS.register("perplexity")
class Perplexity(RowMetric):
    """Perplexity of the targets, exp(-sum log P / tokens), `<eos>` included where the model predicts it."""

    applies_to = "any"
    needs_inputs = False
    higher_is_better = False
    top = math.inf
    least = 1.0
    outputs_only = False

    def statistics(self, rows: Rows) -> Float[np.ndarray, "rows 2"]:
        targets = rows.need("targets", self.name)
        return np.array(
            [
                (total, len(target))
                for total, target in zip(rows.need("log_probabilities", self.name), targets, strict=True)
            ],
            dtype=np.float64,
        )

    def finish(self, sums: Float[np.ndarray, "sets 2"]) -> Float[np.ndarray, " sets"]:
        return np.array([perplexity(total, round(tokens)) for total, tokens in sums.tolist()])


Pair = tuple[int, int]


@dataclass(frozen=True)
class Aligned:
    """Links of one row, each (place of the input, symbol of the output): the predicted ones, and of the true ones the
    sure and the possible ones (the sure among them)."""

    predicted: Collection[Pair]
    sure: Collection[Pair]
    possible: Collection[Pair]


@METRICS.register("aer")
class AlignmentErrorRate(Ratio):
    """AER = 1 - (|A & S| + |A & P|) / (|A| + |S|) over all rows, of predicted links A, sure ones S and possible ones P
    (Och and Ney 2003).

    Each symbol of the output is linked to the place with the largest attention weight. Attention has no null links: a
    symbol without any true link still has a predicted one.
    """

    higher_is_better = False
    cased = False
    outputs_only = False
    needs_links = True

    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        for row in rows.need("alignments", self.name):
            predicted, sure, possible = set(row.predicted), set(row.sure), set(row.possible)
            total = len(predicted) + len(sure)
            yield total - len(predicted & sure) - len(predicted & possible), total


@METRICS.register("pointing")
class PointingGame(Ratio):
    """The share of symbols whose place with the largest attention weight is a true one (the pointing game of Zhang et
    al. 2016), of those for which a true place is known: linked, or within the time of a word."""

    cased = False
    outputs_only = False
    needs_links = True

    def counts(self, rows: Rows) -> Iterable[tuple[float, float]]:
        for row in rows.need("alignments", self.name):
            possible = set(row.possible)
            known = {step for _, step in possible}
            asked = [link for link in row.predicted if link[1] in known]
            yield sum(link in possible for link in asked), len(asked)
