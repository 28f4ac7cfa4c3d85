"""Trivial models, printed beside every metric: what a number is worth shows beside what costs nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from seq2see.errors import UserError
from seq2see.evaluation.metrics import Kind, lookup, measure
from seq2see.evaluation.rows import Rows
from seq2see.evaluation.sentences import first_sentence
from seq2see.files import shortened
from seq2see.registry import Registry


class Baseline(ABC):
    """A model anyone could write down. It goes into a model's folder as JSON, so that it needs no training data later.

    says: what it does, in a few words, for the head of a table.
    """

    name: ClassVar[str]
    says: ClassVar[str]

    @abstractmethod
    def can(self, metric: str) -> bool:
        """Whether the metric can be taken of this model."""

    @abstractmethod
    def answered(self, rows: Rows) -> Rows:
        """The rows as if this model had answered them."""

    def measure(self, names: Sequence[str], rows: Rows) -> dict[str, float]:
        """Those of the metrics that can be taken of this model."""
        possible = [name for name in names if self.can(name)]
        return measure(possible, self.answered(rows)) if possible else {}

    def settings(self) -> dict[str, Any]:
        """What was learned from the training outputs: the arguments that make this model again."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.settings()}


BASELINES: Registry[type[Baseline]] = Registry("baseline")
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def from_dict(stored: Mapping[str, Any]) -> Baseline:
    """The baseline that `to_dict` wrote down."""
    settings = dict(stored)
    kind = BASELINES[str(settings.pop("name", ""))]
    try:
        hints = get_type_hints(kind.__init__)
        for name, value in settings.items():
            TypeAdapter(hints.get(name, Any), config=_STRICT).validate_python(value)
        return kind(**settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, [name, *first["loc"]]))
        raise UserError(f"baseline '{kind.name}', {where}: {first['msg']}, got {shortened(first['input'])}") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise UserError(f"baseline '{kind.name}' cannot be made from {sorted(settings)}: {error}") from error


def assign(models: Iterable[Baseline], names: Sequence[str]) -> dict[Baseline, list[str]]:
    """To each model the metrics it is the first to have (one gives outputs, another perplexity); idle ones left out."""
    left = list(names)
    tasks: dict[Baseline, list[str]] = {}
    for model in models:
        if its := [name for name in left if model.can(name)]:
            tasks[model] = its
            left = [name for name in left if name not in its]
    return tasks


def beside(models: Iterable[Baseline], names: Sequence[str], rows: Rows) -> dict[str, float]:
    """For each metric its value for the first of the models of which it can be taken."""
    found: dict[str, float] = {}
    for model, its in assign(models, names).items():
        found |= model.measure(its, rows)
    return {name: found[name] for name in names if name in found}


def default_baseline(kind: Kind, *, inputs: bool = True, text: bool = True) -> str:
    """The trivial model of a recipe that names none; text: whether any of its inputs is one."""
    if kind != "text":
        return "majority" if kind == "label" else "mean"
    if not inputs:
        return "unigram"
    return "copy" if text else "frequent"


class Speaker(Baseline):
    """A baseline that gives outputs, but no probabilities and no further hypotheses."""

    @abstractmethod
    def answers(self, rows: Rows) -> list[str]:
        """One output per row."""

    def can(self, metric: str) -> bool:
        return lookup(metric).of_outputs

    def answered(self, rows: Rows) -> Rows:
        return rows.answered(self.answers(rows))


class Rewriter(Speaker):
    """A baseline that makes its output from the input alone."""

    @abstractmethod
    def predict(self, inputs: Sequence[str]) -> list[str]:
        """One output per input."""

    def answers(self, rows: Rows) -> list[str]:
        if rows.inputs is None:
            raise UserError(f"baseline '{self.name}' needs inputs, and this task has none; allowed: frequent, unigram")
        return self.predict(rows.inputs)


@BASELINES.register("copy")
class Copy(Rewriter):
    """The input is the output.

    >>> Copy().predict(["delhi"])
    ['delhi']
    """

    name = "copy"
    says = "copying the input"

    def predict(self, inputs: Sequence[str]) -> list[str]:
        return list(inputs)


@BASELINES.register("lead")
class Lead(Rewriter):
    """The first sentence of a document is its summary."""

    name = "lead"
    says = "the first sentence"

    def predict(self, inputs: Sequence[str]) -> list[str]:
        return [first_sentence(text) for text in inputs]


class Constant(Speaker):
    """Whatever the input, the output seen most often in training; of equally frequent ones the first in order."""

    def __init__(self, output: str):
        self.output = output

    @classmethod
    def fit(cls, outputs: Iterable[str]) -> Self:
        counts = Counter(outputs)
        if not counts:
            raise UserError(f"baseline '{cls.name}' needs training outputs, and there are none")
        return cls(min(counts, key=lambda text: (-counts[text], text)))

    def predict(self, inputs: Sequence[str]) -> list[str]:
        """The same output for each input."""
        return [self.output] * len(inputs)

    def answers(self, rows: Rows) -> list[str]:
        return self.predict(rows.predictions)

    def settings(self) -> dict[str, Any]:
        return {"output": self.output}


@BASELINES.register("majority")
class Majority(Constant):
    """The most frequent label.

    >>> Majority.fit(["no", "yes", "no"]).predict(["is it?"])
    ['no']
    """

    name = "majority"
    says = "the most frequent label"


@BASELINES.register("frequent")
class Frequent(Constant):
    """The most frequent output: what a model says that does not look at its input."""

    name = "frequent"
    says = "the most frequent output"
