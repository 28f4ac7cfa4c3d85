"""Baselines, printed beside every metric: copying, lead sentence, constant, bag of words, the most similar row, mean,
last value, unigram."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import nsmallest
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from seq2see.data.sentences import split_sentences
from seq2see.data.tokens import split_words
from seq2see.errors import UserError
from seq2see.evaluation.metrics import AppliesTo, OutputType, Rows, applies, lookup, measure, perplexity
from seq2see.files import shortened
from seq2see.registry import Registry


@dataclass(frozen=True)
class TrainingRows:
    """The rows that a baseline is fitted to, read anew by each call.

    pairs: (first text input, output); joined_pairs: (all text inputs, joined, output); outputs: as text; numbers:
    outputs that are numbers.
    """

    pairs: Callable[[], Iterable[tuple[str, str]]]
    joined_pairs: Callable[[], Iterable[tuple[str, str]]]
    outputs: Callable[[], Iterable[str]]
    numbers: Callable[[], Iterable[NDArray[np.float64]]]


class Baseline(ABC):
    """A trivial model whose metrics are printed beside the model's. A new one is one subclass, registered by its name.

    It is stored in a model's folder as JSON, so that it needs no training data later.

    description: what it does, in a few words, for the head of a table; applies_to: the outputs it is for;
    needs_text: it reads a text input; needs_inputs: false for a language model; needs_continued: for outputs that go on
    where an input ends; keeps_rows: training rows are stored with the model.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    applies_to: ClassVar[AppliesTo] = "any"
    needs_text: ClassVar[bool] = False
    needs_inputs: ClassVar[bool] = True
    needs_continued: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False

    @classmethod
    def fit_rows(cls, rows: TrainingRows) -> Self:
        """Fit the baseline to training rows; one that learns nothing is just created."""
        return cls()

    @abstractmethod
    def supports(self, metric: str) -> bool:
        """Whether the metric can be measured of this baseline."""

    @abstractmethod
    def apply(self, rows: Rows) -> Rows:
        """The rows with this baseline's predictions."""

    def measure(self, names: Sequence[str], rows: Rows) -> dict[str, float]:
        """Those of the metrics that this baseline supports."""
        supported = [name for name in names if self.supports(name)]
        return measure(supported, self.apply(rows)) if supported else {}

    def settings(self) -> dict[str, Any]:
        """What was learned: the arguments that create this baseline again."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **self.settings()}


BASELINES: Registry[type[Baseline]] = Registry("baseline")
_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def from_dict(stored: Mapping[str, Any]) -> Baseline:
    """The baseline that `to_dict` wrote."""
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


def baselines_for(output: OutputType, *, inputs: bool = True, text: bool = True, continued: bool = False) -> list[str]:
    """The names of the baselines for a model with such outputs. inputs: whether it reads any; text: any that is text;
    continued: whether outputs go on where an input ends."""
    language_model = output == "text" and not inputs
    kinds = {name: BASELINES[name] for name in BASELINES}
    return [
        name
        for name, kind in kinds.items()
        if applies(kind.applies_to, output)
        and not (language_model and kind.needs_inputs)
        and (text or not kind.needs_text)
        and (continued or not kind.needs_continued)
    ]


def default_baseline(output: OutputType, *, inputs: bool = True, text: bool = True) -> str:
    """The baseline of a recipe that names none. inputs: whether it reads any; text: any that is text."""
    if output != "text":
        return "majority" if output == "label" else "mean"
    if not inputs:
        return "unigram"
    return "copy" if text else "frequent"


def assign(baselines: Iterable[Baseline], names: Sequence[str]) -> dict[Baseline, list[str]]:
    """The metrics of each baseline: those that it is the first to support. Baselines without any are left out."""
    left = list(names)
    assigned: dict[Baseline, list[str]] = {}
    for baseline in baselines:
        if supported := [name for name in left if baseline.supports(name)]:
            assigned[baseline] = supported
            left = [name for name in left if name not in supported]
    return assigned


def measure_baselines(baselines: Iterable[Baseline], names: Sequence[str], rows: Rows) -> dict[str, float]:
    """For each metric its value for the first baseline that supports it."""
    values: dict[str, float] = {}
    for baseline, supported in assign(baselines, names).items():
        values |= baseline.measure(supported, rows)
    return {name: values[name] for name in names if name in values}


def measure_further(baselines: Sequence[Baseline], names: Sequence[str], rows: Rows) -> dict[str, dict[str, float]]:
    """{name: metrics} of the baselines that are not the first to support any metric."""
    assigned = assign(baselines, names)
    further = {baseline.name: baseline.measure(names, rows) for baseline in baselines if baseline not in assigned}
    return {name: values for name, values in further.items() if values}


class OutputBaseline(Baseline):
    """A baseline that gives outputs, but no probabilities and no further hypotheses."""

    @abstractmethod
    def outputs(self, rows: Rows) -> list[str]:
        """One output per row."""

    def supports(self, metric: str) -> bool:
        return lookup(metric).outputs_only

    def apply(self, rows: Rows) -> Rows:
        return rows.with_predictions(self.outputs(rows))


class InputBaseline(OutputBaseline):
    """A baseline whose output depends on the input text alone."""

    needs_text = True

    @abstractmethod
    def predict(self, inputs: Sequence[str]) -> list[str]:
        """One output per input."""

    def outputs(self, rows: Rows) -> list[str]:
        if rows.inputs is None:
            raise UserError(f"baseline '{self.name}' needs inputs, and this task has none; allowed: frequent, unigram")
        return self.predict(rows.inputs)


@BASELINES.register("copy")
class Copy(InputBaseline):
    """The input is the output.

    >>> Copy().predict(["delhi"])
    ['delhi']
    """

    name = "copy"
    description = "copying the input"

    def predict(self, inputs: Sequence[str]) -> list[str]:
        return list(inputs)


def first_sentence(text: str) -> str:
    """The text up to and including the end of its first sentence; all of it where no end is found.

    >>> first_sentence("Dr. A. Smith et al. paid 3.50 dollars. Then they left.")
    'Dr. A. Smith et al. paid 3.50 dollars.'
    """
    return next(split_sentences(text), "")


@BASELINES.register("lead")
class Lead(InputBaseline):
    """The first sentence of a document is its summary."""

    name = "lead"
    description = "the first sentence"

    def predict(self, inputs: Sequence[str]) -> list[str]:
        return [first_sentence(text) for text in inputs]


class Constant(OutputBaseline):
    """Always the most frequent output of the training rows; of equally frequent ones the first in order."""

    def __init__(self, output: str):
        self.output = output

    @classmethod
    def fit(cls, outputs: Iterable[str]) -> Self:
        counts = Counter(outputs)
        if not counts:
            raise UserError(f"baseline '{cls.name}' needs training outputs, and there are none")
        return cls(min(counts, key=lambda text: (-counts[text], text)))

    @classmethod
    def fit_rows(cls, rows: TrainingRows) -> Self:
        return cls.fit(rows.outputs())

    def predict(self, inputs: Sequence[str]) -> list[str]:
        """The same output for each input."""
        return [self.output] * len(inputs)

    def outputs(self, rows: Rows) -> list[str]:
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
    applies_to = "label"
    description = "the most frequent label"


MOST_WORDS = 50_000
"""Words that are kept, the most frequent ones: rarer ones say little, and the baseline is stored with the model."""
MOST_COUNTS = 5_000_000
"""Counts that are kept, one of each word for each label: with more than 100 labels fewer words are kept."""


@BASELINES.register("bag-of-words")
class BagOfWords(InputBaseline):
    """Multinomial naive Bayes: argmax_y log P(y) + sum_w n_w log P(w | y), with add-one smoothing.

    labels: {label: number of rows}; counts: {word: how often it occurs in the texts of each label, in their order}.

    >>> BagOfWords.fit([("so good", "yes"), ("so bad", "no"), ("good good", "yes")]).predict(["Good!"])
    ['yes']
    """

    name = "bag-of-words"
    applies_to = "label"
    description = "a bag of words (naive Bayes)"

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

    @classmethod
    def fit_rows(cls, rows: TrainingRows) -> Self:
        return cls.fit((text, label.strip()) for text, label in rows.pairs())

    def predict(self, inputs: Sequence[str]) -> list[str]:
        names = list(self.labels)
        scores = [self.scores(Counter(_words(text))) for text in inputs]
        return [names[row.index(max(row))] for row in scores]

    def scores(self, words: Mapping[str, int]) -> list[float]:
        """log P(y) + sum_w n_w log P(w | y) for each label; a word that training did not have is ignored."""
        scores = list(self._prior)
        for word, number in words.items():
            for label, count in enumerate(self.counts.get(word, ())):
                scores[label] += number * (math.log(count + 1) - self._log_total[label])
        return scores

    def settings(self) -> dict[str, Any]:
        return {"labels": self.labels, "counts": self.counts}


def _words(text: str) -> list[str]:
    return split_words(text.lower())


MOST_ROWS, MOST_CHARACTERS, LONGEST_TEXT = 5_000, 1_000_000, 10_000
"""Rows that are kept, their characters in all, and those of a text: they are stored with the model."""


@BASELINES.register("nearest")
class Nearest(OutputBaseline):
    """The output of the training row whose text inputs are most similar: the largest cosine of the words and the
    trigrams of their characters, each weighted by (1 + log count) log(1 + rows / rows that have it).

    It keeps rows of training: of a larger table a sample that does not depend on the order of the rows.

    >>> Nearest.fit([("where is mary", "paris"), ("what is red", "a colour")]).predict(["Where is Mary now?"])
    ['paris']
    """

    name = "nearest"
    needs_text = True
    keeps_rows = True
    description = "the output of the most similar row"

    def __init__(self, texts: Sequence[str], answers: Sequence[str]):
        if len(texts) != len(answers) or not texts:
            raise ValueError("as many answers as texts are needed, at least one")
        self.texts, self.answers = list(texts), list(answers)
        self._index: dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        self._last: tuple[tuple[str, ...], list[str]] = ((), [])

    @classmethod
    def fit(cls, rows: Iterable[tuple[str, str]]) -> Self:
        """Keep the rows with the smallest hashes, in one pass."""
        cut = ((text[:LONGEST_TEXT], answer.strip()) for text, answer in rows)
        ranked = (
            (blake2b("\0".join(row).encode("utf-8", "surrogatepass"), digest_size=8).digest(), row) for row in cut
        )
        kept, left = list[tuple[str, str]](), MOST_CHARACTERS
        for _, row in nsmallest(MOST_ROWS, ranked):
            if (characters := sum(map(len, row))) <= left:
                kept.append(row)
                left -= characters
        if not kept:
            raise UserError(f"baseline '{cls.name}' needs training rows of at most {MOST_CHARACTERS:,} characters")
        return cls([text for text, _ in kept], [answer for _, answer in kept])

    @classmethod
    def fit_rows(cls, rows: TrainingRows) -> Self:
        return cls.fit(rows.joined_pairs())

    def predict(self, inputs: Sequence[str]) -> list[str]:
        """One output per input. Those of the last call are kept, as every report asks about the same rows."""
        if not self._index:
            self._index = self._build_index()
        if self._last[0] != tuple(inputs):
            self._last = tuple(inputs), [self.answers[self._most_similar(text)] for text in inputs]
        return self._last[1]

    def outputs(self, rows: Rows) -> list[str]:
        texts = rows.joined_inputs if rows.joined_inputs is not None else rows.inputs
        if texts is None:
            raise UserError(
                f"baseline '{self.name}' needs text inputs, and this task has none; allowed: frequent, unigram"
            )
        return self.predict(texts)

    def _build_index(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """{feature: (rows that have it, its weight in each of them, of vectors of length 1)}"""
        counts = [_features(text) for text in self.texts]
        having: Counter[str] = Counter(feature for row in counts for feature in row)
        self._rarity = {feature: math.log(1 + len(counts) / number) for feature, number in having.items()}
        found: dict[str, tuple[list[int], list[float]]] = {feature: ([], []) for feature in having}
        for number, row in enumerate(counts):
            for feature, weight in self._weights(row).items():
                found[feature][0].append(number)
                found[feature][1].append(weight)
        return {feature: (np.array(rows), np.array(weights)) for feature, (rows, weights) in found.items()}

    def _weights(self, counts: Mapping[str, int]) -> dict[str, float]:
        """The weights of the features that training rows have, as a vector of length 1."""
        rarity = self._rarity
        weights = {one: (1 + math.log(number)) * rarity[one] for one, number in counts.items() if one in rarity}
        length = math.sqrt(math.fsum(weight**2 for weight in weights.values())) or 1.0
        return {feature: weight / length for feature, weight in weights.items()}

    def _most_similar(self, text: str) -> int:
        """The number of the most similar row; of equally similar ones the first."""
        similar = np.zeros(len(self.texts))
        for feature, weight in self._weights(_features(text)).items():
            rows, weights = self._index[feature]
            similar[rows] += weight * weights
        return int(np.argmax(similar.round(9)))

    def settings(self) -> dict[str, Any]:
        return {"texts": self.texts, "answers": self.answers}


def _features(text: str) -> Counter[str]:
    """Words, and trigrams of their characters with the edges marked."""
    features: Counter[str] = Counter()
    for word in _words(text):
        edged = f"\x02{word}\x03"
        features[f" {word}"] += 1
        features.update(edged[start : start + 3] for start in range(len(edged) - 2))
    return features


@BASELINES.register("frequent")
class Frequent(Constant):
    """The most frequent output: the best a model can do that ignores its input."""

    name = "frequent"
    description = "the most frequent output"


@BASELINES.register("mean")
class Mean(Baseline):
    """Always the mean of the training outputs: the best a model can do that ignores its input.

    >>> Mean.fit([np.array([0.0, 1.0]), np.array([2.0, 1.0])]).numbers
    [1.0, 1.0]
    """

    name = "mean"
    applies_to = "numbers"
    description = "the mean of the rows trained on"

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

    @classmethod
    def fit_rows(cls, rows: TrainingRows) -> Self:
        return cls.fit(rows.numbers())

    def supports(self, metric: str) -> bool:
        return lookup(metric).applies_to == "numbers"

    def apply(self, rows: Rows) -> Rows:
        return replace(rows, numbers=[np.array(self.numbers)] * len(rows))

    def settings(self) -> dict[str, Any]:
        return {"numbers": self.numbers}


@BASELINES.register("last")
class Last(Baseline):
    """The last value of the input, repeated: what a forecast has to beat, and of many series hard to beat."""

    name = "last"
    applies_to = "numbers"
    needs_continued = True
    description = "the last value repeated"

    def supports(self, metric: str) -> bool:
        return lookup(metric).applies_to == "numbers"

    def apply(self, rows: Rows) -> Rows:
        if rows.continued is None:
            raise UserError(f"baseline '{self.name}' needs inputs that the outputs continue, and this task has none")
        return replace(rows, numbers=rows.continued)


UNKNOWN, END = "<unk>", "<eos>"


@BASELINES.register("unigram")
class Unigram(Baseline):
    """The unigram language model: P(w) = (count(w) + 1) / (all counts + symbols), `<unk>` and `<eos>` among them.

    Unknown symbols have the probability of `<unk>`. The counts have to be those of the model's own vocabulary (rare
    symbols counted as `<unk>`): perplexities over different vocabularies cannot be compared.

    >>> round(Unigram({"a": 5, "<eos>": 1}).perplexity([["a", "<eos>"]]), 4)
    2.5981
    """

    name = "unigram"
    applies_to = "text"
    needs_inputs = False
    description = "the unigram model"

    def __init__(self, counts: Mapping[str, int]):
        self.counts = {UNKNOWN: 0, END: 0} | dict(counts)
        total = sum(self.counts.values()) + len(self.counts)
        self._log = {symbol: math.log((count + 1) / total) for symbol, count in self.counts.items()}

    @classmethod
    def fit(cls, targets: Iterable[Sequence[str]]) -> Self:
        """Count the symbols of training outputs as the model predicts them, `<eos>` included."""
        counts: Counter[str] = Counter()
        for target in targets:
            counts.update(target)
        return cls(counts)

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], *, sequences: int) -> Self:
        """From the counts of a vocabulary, which leave out the `<eos>` at the end of each sequence."""
        return cls({**counts, END: sequences})

    def log_probability(self, target: Sequence[str]) -> float:
        """log P of the target's symbols, `<eos>` included where it is among them."""
        return math.fsum(self._log.get(symbol, self._log[UNKNOWN]) for symbol in target)

    def perplexity(self, targets: Sequence[Sequence[str]]) -> float:
        """The perplexity over all symbols of all targets."""
        return perplexity(math.fsum(map(self.log_probability, targets)), sum(map(len, targets)))

    def supports(self, metric: str) -> bool:
        return metric == "perplexity"

    def apply(self, rows: Rows) -> Rows:
        targets = rows.need("targets", "perplexity")
        return replace(rows, log_probabilities=[self.log_probability(target) for target in targets])

    def settings(self) -> dict[str, Any]:
        return {"counts": self.counts}
