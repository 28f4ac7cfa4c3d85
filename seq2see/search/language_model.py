"""Language models in search: shallow fusion, and log P of whole texts for rescoring.

    score = log P(y | x) + w log P_LM(y) - u log P_ILM(y)

P_ILM is what the decoder itself has learned of the output without any input (`ModelStepper.internal`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from seq2see.data.vocabulary import EOS, PAD, SOS, UNK, Vocabulary
from seq2see.search.options import plan_batches
from seq2see.search.stepper import LEAST, CopyVocabulary

KNOWN = 0.5
"""The least share of an output's symbols, as often as they occur, that a language model must know to be over them."""


class NextSymbols(Protocol):
    """Distributions of the next symbol of hypotheses, `width` of each input in a run; every `Stepper` is one."""

    def begin(self, width: int) -> None:
        """Start with `width` empty hypotheses for each input."""

    def step(self, tokens: Int[ndarray, " rows"]) -> tuple[Float[ndarray, "rows symbols"], Any]:
        """Extend every hypothesis by its token: log P of the next symbol, and what else there is to tell."""

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        """Continue with these hypotheses, as many as before for each of these inputs."""


class LanguageModel(Protocol):
    """A language model over symbols of its own.

    start, end: the ids that begin and end a text (-1: nothing begins it); unknown: that of `<unk>`.
    """

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def unknown(self) -> int: ...
    def id_of(self, symbol: str) -> int:
        """The id of a symbol; `unknown` where it has none."""

    def split(self, text: str) -> list[str]:
        """A text as symbols of its kind."""

    def steps(self, rows: int) -> NextSymbols:
        """Hypotheses of so many inputs."""


class OutputLanguageModel:
    """A language model, with its id of every symbol of an output.

    known: the share of the output's symbols that it knows, as often as these occur in the training table.
    """

    def __init__(self, model: LanguageModel, vocabulary: Vocabulary):
        self.model = model
        special = {PAD: model.unknown, UNK: model.unknown, SOS: model.start, EOS: model.end}
        ids = [special[i] if i in special else model.id_of(name) for i, name in enumerate(vocabulary.symbols)]
        self.ids: Int[ndarray, " vocabulary"] = np.array(ids, dtype=np.int64)
        counts = np.array(vocabulary.counts[len(special) :], dtype=np.float64)
        counts = counts if counts.sum() else np.ones_like(counts)
        there = self.ids[len(special) :] != model.unknown
        self.known = float(counts[there].sum() / counts.sum()) if len(counts) else 0.0
        self.missing = [vocabulary.symbols[i] for i in np.flatnonzero(~there) + len(special)]

    def over_output(self, writable: CopyVocabulary) -> OutputSymbols:
        """Its distributions over what can be written for each input of a batch."""
        return OutputSymbols(self, writable)

    def score_symbols(self, outputs: Sequence[Sequence[str]]) -> list[float]:
        """log P of whole outputs, given as symbols of the language model's kind."""
        model = self.model
        return log_probabilities(model, [[model.id_of(symbol) for symbol in symbols] for symbols in outputs])


class OutputSymbols:
    """log P of the symbols of an output by a language model over others; see `NextSymbols`.

    Words that only an input has are looked up by their spelling too, for each input.
    """

    def __init__(self, own: OutputLanguageModel, writable: CopyVocabulary):
        inputs = len(writable.limits)
        self._steps, self._inputs = own.model.steps(inputs), np.arange(inputs)
        self._ids = own.ids
        if writable.symbols > writable.vocabulary:
            further = np.full((inputs, writable.symbols - writable.vocabulary), own.model.unknown)
            for row, words in enumerate(writable.words):
                further[row, : len(words)] = [own.model.id_of(word) for word in words]
            self._ids = np.concatenate([np.broadcast_to(own.ids, (inputs, len(own.ids))), further], axis=1)

    def begin(self, width: int) -> None:
        self._steps.begin(width)

    def step(self, tokens: Int[ndarray, " rows"]) -> tuple[Float[ndarray, "rows symbols"], None]:
        if self._ids.ndim == 1:
            return self._steps.step(self._ids[tokens])[0][:, self._ids], None
        ids = self._ids[self._inputs].repeat(len(tokens) // len(self._inputs), 0)
        log_probs = self._steps.step(ids[np.arange(len(tokens)), tokens])[0]
        return np.take_along_axis(log_probs, ids, 1), None

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        self._steps.select(rows, inputs)
        self._inputs = self._inputs[inputs]


class Fusion:
    """What a search adds to log P(y_t | y_<t, x): the sum of w_k log P_k(y_t | y_<t); nothing without parts."""

    def __init__(self, parts: Sequence[tuple[float, NextSymbols]] = ()):
        """parts: (w_k, P_k), distributions over the same symbols as those of the search."""
        self._parts = list(parts)

    def __bool__(self) -> bool:
        return bool(self._parts)

    def begin(self, width: int) -> None:
        for _, part in self._parts:
            part.begin(width)

    def step(self, tokens: Int[ndarray, " rows"]) -> Float[ndarray, "rows symbols"]:
        """Extend every hypothesis by its token: what is added to each next symbol."""
        each = [weight * np.maximum(part.step(tokens)[0], LEAST) for weight, part in self._parts]
        return np.asarray(sum(each[1:], each[0]))

    def select(self, rows: Int[ndarray, " chosen"], inputs: Int[ndarray, " inputs"]) -> None:
        for _, part in self._parts:
            part.select(rows, inputs)


def log_probabilities(model: LanguageModel, texts: Sequence[Sequence[int]]) -> list[float]:
    """log P of each text, its end included; texts: as ids of the language model."""
    totals = [0.0] * len(texts)
    for numbers in plan_batches([len(text) + 1 for text in texts], factor=1):
        targets = [[*texts[number], model.end] for number in numbers]
        steps, places = model.steps(len(numbers)), np.arange(len(numbers))
        steps.begin(1)
        tokens = np.full(len(numbers), model.start)
        for step in range(len(targets[0])):  # the longest stand first, so that those that end leave from behind
            going = sum(len(target) > step for target in targets)
            if going < len(tokens):
                steps.select(places[:going], places[:going])
                tokens = tokens[:going]
            log_probs = steps.step(tokens)[0]
            tokens = np.array([target[step] for target in targets[:going]])
            for number, value in zip(numbers, log_probs[places[:going], tokens].tolist(), strict=False):
                totals[number] += max(value, LEAST)
    return totals
