"""Baselines, printed beside every metric: constant, copying, lead sentence, bag of words, mean, unigram."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from seq2see.data.sentences import split_sentences
from seq2see.data.tokens import split_words
from seq2see.errors import UserError
from seq2see.evaluation.base import Rows
from seq2see.evaluation.labels import perplexity
from seq2see.evaluation.metrics import Kind, lookup, measure
from seq2see.files import shortened
from seq2see.registry import Registry

# ---------------- The first sentence of a text


def first_sentence(text: str) -> str:
    """The text up to and including the end of its first sentence; all of it where no end is found.

    >>> first_sentence("Dr. A. Smith et al. paid 3.50 dollars. Then they left.")
    'Dr. A. Smith et al. paid 3.50 dollars.'
    """
    return next(split_sentences(text), "")


# ---------------- Trivial models, printed beside every metric


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


# ---------------- A bag of words

MOST_WORDS = 50_000
"""Words kept, the most frequent ones: what is rarer tells little, and the baseline lies in the model's folder."""
MOST_COUNTS = 5_000_000
"""Counts kept, one of each word for each label: with more than 100 labels fewer words are kept."""


@BASELINES.register("bag-of-words")
class BagOfWords(Rewriter):
    """Multinomial naive Bayes: argmax_y log P(y) + sum_w n_w log P(w | y), every word counted once more than seen.

    labels: {label: rows of it}; counts: {word: how often it stands in the texts of each label, in their order}.

    >>> BagOfWords.fit([("so good", "yes"), ("so bad", "no"), ("good good", "yes")]).predict(["Good!"])
    ['yes']
    """

    name = "bag-of-words"
    says = "a bag of words (naive Bayes)"

    def __init__(self, labels: Mapping[str, int], counts: Mapping[str, Sequence[int]]):
        self.labels, self.counts = dict(labels), {word: list(each) for word, each in counts.items()}
        if any(len(each) != len(self.labels) or min(each, default=0) < 0 for each in self.counts.values()):
            raise ValueError("every word needs a count from 0 for each label")
        rows = sum(self.labels.values())
        totals = [sum(each) for each in zip(*self.counts.values(), strict=True)] or [0] * len(self.labels)
        self._prior = [math.log(number / rows) for number in self.labels.values()]
        self._log_total = [math.log(total + len(self.counts)) if self.counts else 0.0 for total in totals]

    @classmethod
    def fit(cls, rows: Iterable[tuple[str, str]]) -> Self:
        """Count over (text, label), in one pass."""
        labels: Counter[str] = Counter()
        words: dict[str, Counter[str]] = {}
        for text, label in rows:
            labels[label] += 1
            words.setdefault(label, Counter()).update(_words(text))
        if not labels:
            raise UserError(f"baseline '{cls.name}' needs training rows, and there are none")
        names = sorted(labels)
        whole: Counter[str] = Counter()
        for label in names:
            whole.update(words[label])
        kept = sorted(whole, key=lambda word: (-whole[word], word))[: min(MOST_WORDS, MOST_COUNTS // len(names))]
        return cls({name: labels[name] for name in names}, {word: [words[n][word] for n in names] for word in kept})

    def predict(self, inputs: Sequence[str]) -> list[str]:
        names = list(self.labels)
        scores = [self.scores(Counter(_words(text))) for text in inputs]
        return [names[one.index(max(one))] for one in scores]

    def scores(self, found: Mapping[str, int]) -> list[float]:
        """log P(y) + sum_w n_w log P(w | y) for each label; a word never seen in training says nothing."""
        scores = list(self._prior)
        for word, number in found.items():
            for i, seen in enumerate(self.counts.get(word, ())):
                scores[i] += number * (math.log(seen + 1) - self._log_total[i])
        return scores

    def settings(self) -> dict[str, Any]:
        return {"labels": self.labels, "counts": self.counts}


def _words(text: str) -> list[str]:
    return split_words(text.lower())


# ---------------- The trivial model of outputs that are numbers


@BASELINES.register("mean")
class Mean(Baseline):
    """Whatever the input, the mean of the outputs trained on: the best that one can do without looking.

    >>> Mean.fit([np.array([0.0, 1.0]), np.array([2.0, 1.0])]).numbers
    [1.0, 1.0]
    """

    name = "mean"
    says = "the mean of the rows trained on"

    def __init__(self, numbers: Sequence[float]):
        self.numbers = list(numbers)

    @classmethod
    def fit(cls, outputs: Iterable[NDArray[np.float64]]) -> Self:
        total, number = np.zeros(0), 0
        for number, output in enumerate(outputs, start=1):
            total = output if number == 1 else total + output
        if not number:
            raise UserError(f"baseline '{cls.name}' needs training outputs, and there are none")
        return cls((total / number).tolist())

    def can(self, metric: str) -> bool:
        return lookup(metric).needs == "numbers"

    def answered(self, rows: Rows) -> Rows:
        return rows.guessed([np.array(self.numbers)] * len(rows))

    def settings(self) -> dict[str, Any]:
        return {"numbers": self.numbers}


# ---------------- The unigram model

UNKNOWN, END = "<unk>", "<eos>"


@BASELINES.register("unigram")
class Unigram(Baseline):
    """P(w) = (count(w) + 1) / (all counts + symbols), over the symbols seen, `<unk>` and `<eos>`.

    A symbol never seen has the probability of `<unk>`. The counts are to be those of the model's own vocabulary
    (rare symbols counted as `<unk>`): perplexities over different vocabularies cannot be compared.

    >>> round(Unigram({"a": 5, "<eos>": 1}).perplexity([["a", "<eos>"]]), 4)
    2.5981
    """

    name = "unigram"
    says = "the unigram model"

    def __init__(self, counts: Mapping[str, int]):
        self.counts = {UNKNOWN: 0, END: 0} | dict(counts)
        total = sum(self.counts.values()) + len(self.counts)
        self._log = {symbol: math.log((count + 1) / total) for symbol, count in self.counts.items()}

    @classmethod
    def fit(cls, targets: Iterable[Sequence[str]]) -> Self:
        """From training outputs as the model predicts them, `<eos>` included."""
        counts: Counter[str] = Counter()
        for target in targets:
            counts.update(target)
        return cls(counts)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, sequences: int) -> Self:
        """From a vocabulary's counts, which leave out the `<eos>` at the end of each of so many sequences."""
        return cls({**counts, END: sequences})

    def log_probability(self, target: Sequence[str]) -> float:
        """Of the symbols given, `<eos>` included where it is among them."""
        return math.fsum(self._log.get(symbol, self._log[UNKNOWN]) for symbol in target)

    def perplexity(self, targets: Sequence[Sequence[str]]) -> float:
        """Over all symbols of all targets."""
        return perplexity(math.fsum(map(self.log_probability, targets)), sum(map(len, targets)))

    def can(self, metric: str) -> bool:
        return metric == "perplexity"

    def answered(self, rows: Rows) -> Rows:
        targets = rows.need("targets", "perplexity")
        return replace(rows, log_probabilities=[self.log_probability(target) for target in targets])

    def settings(self) -> dict[str, Any]:
        return {"counts": self.counts}
