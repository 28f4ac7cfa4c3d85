"""Scoring: the probability that a model, or an ensemble, assigns to the outputs of a table or of the caller."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.data.columns import OUTPUT, place_of
from seq2see.data.vocabulary import EOS, SPECIALS, UNK
from seq2see.errors import UserError, nearest
from seq2see.evaluation.report import TrainingOverlap
from seq2see.files import shortened
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Stream
from seq2see.pipeline.predictor import OnProgress, check_length, chunks, options_of, predict
from seq2see.search import SearchOptions, score_targets
from seq2see.search.options import NONE, Weights

Row = Mapping[str, str]
STREAM_CHUNK = 256
LEAST_LANE = 4096


@dataclass
class Scored:
    """log P of one output: the total, and that of each symbol (`<eos>` included). input: of the row, as predictions
    name it; None of a language model."""

    log_probability: float
    symbols: list[str]
    log_probs: list[float]
    input: str | dict[str, str] | None = None

    def to_dict(self, row: Row) -> dict[str, Any]:
        """The record of `score --each --json`, with the row that was scored; a language model's input is null."""
        tokens = zip(self.symbols, self.log_probs, strict=True)
        return {
            "input": self.input,
            "output": row[OUTPUT],
            "log_probability": self.log_probability,
            "tokens": [{"text": symbol, "log_probability": value} for symbol, value in tokens],
        }


@dataclass
class Score:
    """Log-probability and perplexity of outputs: of all, and of each row.

    given: what the probability is conditioned on beside the inputs (the places that hard attention chose), if anything;
    seen: how many of the rows the model was trained on, where that is known.
    """

    rows: int
    tokens: int
    log_probability: float
    perplexity: float
    each: list[Scored]
    given: str = ""
    seen: TrainingOverlap | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "tokens": self.tokens,
            "log_probability": self.log_probability,
            "perplexity": self.perplexity,
            **({"given": self.given} if self.given else {}),
            **({"seen": self.seen.to_dict()} if self.seen is not None else {}),
        }


def score_rows(
    bundles: Sequence[Bundle], rows: Sequence[Row], *, on_progress: OnProgress | None = None
) -> list[Scored]:
    """The probability of the rows' outputs.

    The P of an ensemble is the mean of its models' P at every symbol. As all symbols are known, each model is run on
    its own.
    """
    _check_outputs(bundles[0], rows)
    each = [_score_rows(bundle, rows, on_progress) for bundle in bundles]
    if len(each) == 1:
        return each[0]
    joined = []
    for scored in zip(*each, strict=True):
        log_probs = mean_probability(torch.tensor([row.log_probs for row in scored], dtype=torch.float64)).tolist()
        joined.append(Scored(math.fsum(log_probs), scored[0].symbols, log_probs, scored[0].input))
    return joined


def mean_probability(log_probs: Tensor) -> Tensor:
    """log of the mean of the models' P: (models, ...) -> (...)"""
    return torch.logsumexp(log_probs, 0) - math.log(len(log_probs))


def _check_outputs(bundle: Bundle, rows: Sequence[Row]) -> None:
    """Refuse labels that are empty or unknown, with their line, before anything is computed."""
    for number, row in enumerate(rows, start=1):
        try:
            bundle.fields.output.check(row[OUTPUT])
        except UserError as error:
            raise UserError(f"{place_of(row, number)}: {error}") from None


@torch.inference_mode()
def _score_rows(bundle: Bundle, rows: Sequence[Row], on_progress: OnProgress | None) -> list[Scored]:
    results: list[Scored | None] = [None] * len(rows)
    vocabulary = bundle.fields.output.vocabulary
    for numbers, batch in chunks(bundle.fields, rows, target=True, on_progress=on_progress):
        batch.rows = numbers
        scored = score_targets(bundle.network, batch.to(bundle.device))
        copied = None if bundle.fields.copying is None else batch.inputs[bundle.fields.copying.name].copyable
        words = None if copied is None else copied.words
        for place, (number, scores) in enumerate(zip(numbers, scored, strict=True)):
            symbols = vocabulary.decode(_target_ids(batch, place), words[place] if words else ())
            inputs = {name: value for name, value in rows[number].items() if name != OUTPUT}
            results[number] = Scored(scores.total, symbols, scores.log_probs, bundle.fields.display(inputs))
    return [result for result in results if result is not None]


def _target_ids(batch: Batch, place: int) -> list[int]:
    target = batch.target
    if isinstance(target, Labels):
        return [int(target.ids[place])]
    if not isinstance(target, Sequences):
        raise ValueError("a batch without symbols to write has nothing to score")
    ids: list[int] = target.ids[place][target.mask[place]].tolist()
    return ids


@torch.inference_mode()
def score_stream(
    bundles: Sequence[Bundle], lines: Sequence[str], *, on_progress: OnProgress | None = None
) -> tuple[float, int]:
    """(log P, symbols) of one contiguous text; long texts are cut into parallel lanes, each with a new state."""
    stream = Stream.build(bundles[0].fields.text_output, lines)
    lanes = max(1, min(16, len(stream) // LEAST_LANE))
    readers = [_StreamReader(bundle, lanes) for bundle in bundles]
    total, count = 0.0, 0
    for chunk in stream.chunks(bptt=STREAM_CHUNK, lanes=lanes):
        each = [reader.log_probs(chunk.inputs, chunk.targets) for reader in readers]
        total += float(mean_probability(torch.stack(each)).sum())
        count += chunk.targets.numel()
        if on_progress is not None:
            on_progress(count, len(stream))
    return total, count


class _StreamReader:
    """A language model that reads a text in chunks and carries its state."""

    def __init__(self, bundle: Bundle, lanes: int):
        self.network, self.device = bundle.network, bundle.device
        self.ready = self.network.ready({}, lanes)
        self.state = self.network.begin(self.ready)

    def log_probs(self, inputs: Tensor, targets: Tensor) -> Float[Tensor, "lanes length"]:
        """log P of each target of a chunk: both (lanes, length)."""
        step = self.network.read_on(self.ready, inputs.to(self.device), self.state)
        self.state = step.state
        every = self.network.log_probs(step, self.ready)
        return every.gather(-1, targets.to(self.device)[..., None]).squeeze(-1).double().cpu()


# ---------------------------------------------------------------- outputs that the caller gives

TextOrSymbols = str | Sequence[str]
"""A text, which is tokenised like any other, or a list of symbols."""


def prefix_ids(bundle: Bundle, row: Mapping[str, str], prefix: TextOrSymbols, *, what: str = "prefix") -> list[int]:
    """The ids of the beginning of an output (a prefix) for a row; symbols may end in `<eos>`, a text cannot. what: the
    option, for messages.

    A symbol that is not in the vocabulary is `<unk>`, as in outputs where it was replaced by a word of the input.
    """
    recipe = bundle.recipe
    if recipe.output.one_step:
        raise UserError(f"{what}: {recipe.output.noun} has no beginning to be given")
    if isinstance(prefix, str):
        return bundle.fields.target_ids(row, prefix)
    eos = SPECIALS[EOS]
    for number, symbol in enumerate(prefix):
        if not symbol:
            raise UserError(f"{what}: symbol {number} is empty; give symbols as in `tokens`")
        ends = symbol == eos and number == len(prefix) - 1
        if symbol in SPECIALS and symbol != SPECIALS[UNK] and not ends:
            raise UserError(f"{what}: symbol {number} is {symbol}; only {eos} may be given, as the last")
    known = bundle.fields.output.vocabulary.ids
    words = bundle.fields.copied_words(row)
    further = {word: len(bundle.fields.output.vocabulary) + number for number, word in enumerate(words)}
    return [EOS if symbol == eos else known.get(symbol, further.get(symbol, UNK)) for symbol in prefix]


def avoided_ids(
    bundle: Bundle, rows: Sequence[Mapping[str, str]], prefixes: Sequence[TextOrSymbols]
) -> list[list[list[int]]]:
    """The ids of the prefixes that the outputs of each row avoid, each a text or a list of symbols; where rows have no
    words to copy the ids are the same, and stored once."""
    if isinstance(prefixes, str):
        raise UserError(f"avoid_prefixes: should be a list of prefixes, got the text {shortened(prefixes)}")
    for number, prefix in enumerate(prefixes):
        if not isinstance(prefix, str) and not _is_texts(prefix):
            raise UserError(
                f"avoid_prefixes.{number}: should be a text or a list of symbols, got {shortened(repr(prefix))}"
            )

    def read(row: Mapping[str, str]) -> list[list[int]]:
        return [
            prefix_ids(bundle, row, prefix, what=f"avoid_prefixes.{number}") for number, prefix in enumerate(prefixes)
        ]

    if not rows or bundle.fields.copying is not None:
        return [read(row) for row in rows]
    return [read(rows[0])] * len(rows)


def _is_texts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(part, str) for part in value)


def follow(
    bundles: Sequence[Bundle], row: Mapping[str, str], target: TextOrSymbols, *, oracle: Weights | None = None
) -> Prediction:
    """The prediction that follows an output of the caller (teacher forcing), with its probabilities and looks. oracle:
    attention weights of some steps."""
    if bundles[0].recipe.output.one_step:
        return _label(bundles, row, target if isinstance(target, str) else " ".join(target), oracle)
    ids = prefix_ids(bundles[0], row, target, what="target")
    ids = ids if ids[-1:] == [EOS] else [*ids, EOS]
    check_length(bundles[0].recipe, len(ids), f"target: {len(ids)} tokens, <eos> counted")
    options = options_of(
        bundles[0].recipe,
        beam=1,
        n_best=1,
        prefix=ids,
        oracle=oracle,
        min_length=0,
        max_length=len(ids),
        language_model=NONE,
    )
    return predict(bundles, [row], options, replace_unknown=False, maps=True)[0]


def _label(bundles: Sequence[Bundle], row: Mapping[str, str], target: str, oracle: Weights | None) -> Prediction:
    labels = bundles[0].fields.output.vocabulary.symbols
    if target not in labels:
        raise UserError(f"unknown label '{target}'{nearest(target, labels)}; allowed: {', '.join(labels)}")
    options = SearchOptions(beam=len(labels), n_best=len(labels), oracle=oracle)
    prediction = predict(bundles, [row], options, maps=True)[0]
    if prediction.label == target:
        return replace(prediction, alternatives=[])
    chosen = next(other for other in prediction.alternatives if other.text == target)
    return replace(
        prediction,
        label=target,
        tokens=chosen.tokens,
        log_probability=chosen.log_probability,
        score=chosen.score,
        looks=chosen.looks or prediction.looks,
        alternatives=[],
    )
