"""The probability that a model, or an ensemble, gives to outputs that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.batches import EOS, UNK, Batch, Labels, Sequences
from seq2see.data.columns import OUTPUT, place_of
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError, nearest
from seq2see.evaluation.report import TrainingOverlap
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import Told, check_reach, chunks, options_of, predict, shown_input
from seq2see.pipeline.streams import Stream
from seq2see.search import SearchOptions, score_targets
from seq2see.search.options import Weights

Row = Mapping[str, str]
STREAM_CHUNK = 256
LEAST_LANE = 4096


@dataclass
class Scored:
    """log P of one given output: total, and one per symbol (`<eos>` included)."""

    log_probability: float
    symbols: list[str]
    log_probs: list[float]

    def to_dict(self, row: Row) -> dict[str, Any]:
        """With what was scored, as in `score --each --json`; a language model's input is null, as in predictions."""
        tokens = zip(self.symbols, self.log_probs, strict=True)
        return {
            "input": shown_input({name: value for name, value in row.items() if name != OUTPUT}),
            "output": row[OUTPUT],
            "log_probability": self.log_probability,
            "tokens": [{"text": symbol, "log_probability": value} for symbol, value in tokens],
        }


@dataclass
class Score:
    """Log-probability and perplexity of given outputs: in all, and row by row.

    given: what these are given beside the inputs (the places that a hard attention chose), where anything;
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


def score_rows(bundles: Sequence[Bundle], rows: Sequence[Row], *, told: Told | None = None) -> list[Scored]:
    """The probability of the outputs in the rows.

    The P of an ensemble is the mean of its models' P, at every symbol; as all symbols are given, each model can be
    asked for itself.
    """
    _check_outputs(bundles[0], rows)
    each = [_score_rows(bundle, rows, told) for bundle in bundles]
    if len(each) == 1:
        return each[0]
    found = []
    for scored in zip(*each, strict=True):
        together = mean_probability(torch.tensor([one.log_probs for one in scored], dtype=torch.float64)).tolist()
        found.append(Scored(math.fsum(together), scored[0].symbols, together))
    return found


def mean_probability(log_probs: Tensor) -> Tensor:
    """log of the mean of the models' P: (models, ...) -> (...)"""
    return torch.logsumexp(log_probs, 0) - math.log(len(log_probs))


def _check_outputs(bundle: Bundle, rows: Sequence[Row]) -> None:
    """A label that is empty or unknown has no probability: said with its place, before anything is computed."""
    for number, row in enumerate(rows, start=1):
        try:
            bundle.fields.output.check(row[OUTPUT])
        except UserError as error:
            raise UserError(f"{place_of(row, number)}: {error}") from None


@torch.inference_mode()
def _score_rows(bundle: Bundle, rows: Sequence[Row], told: Told | None) -> list[Scored]:
    found: list[Scored | None] = [None] * len(rows)
    vocabulary = bundle.fields.output.vocabulary
    for numbers, batch in chunks(bundle.fields, rows, target=True, told=told):
        batch.rows = numbers
        scored = score_targets(bundle.network, batch.to(bundle.device))
        copied = None if bundle.fields.copying is None else batch.inputs[bundle.fields.copying.name].copyable
        words = None if copied is None else copied.words
        for place, (number, given) in enumerate(zip(numbers, scored, strict=True)):
            symbols = vocabulary.decode(_target_ids(batch, place), words[place] if words else ())
            found[number] = Scored(given.total, symbols, given.log_probs)
    return [one for one in found if one is not None]


def _target_ids(batch: Batch, place: int) -> list[int]:
    target = batch.target
    if isinstance(target, Labels):
        return [int(target.ids[place])]
    if not isinstance(target, Sequences):
        raise ValueError("a batch without symbols to write has nothing to score")
    ids: list[int] = target.ids[place][target.mask[place]].tolist()
    return ids


@torch.inference_mode()
def score_stream(bundles: Sequence[Bundle], lines: Sequence[str], *, told: Told | None = None) -> tuple[float, int]:
    """(log P, symbols) of one contiguous text; long texts are read in lanes side by side, each begun anew."""
    stream = Stream.build(bundles[0].fields.text_output, lines)
    lanes = max(1, min(16, len(stream) // LEAST_LANE))
    readings = [_Reading(bundle, lanes) for bundle in bundles]
    total, count = 0.0, 0
    for chunk in stream.chunks(bptt=STREAM_CHUNK, lanes=lanes):
        each = [reading.log_probs(chunk.inputs, chunk.targets) for reading in readings]
        total += float(mean_probability(torch.stack(each)).sum())
        count += chunk.targets.numel()
        if told is not None:
            told(count, len(stream))
    return total, count


class _Reading:
    """A language model on its way through a text."""

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


# ---------------- A beginning that outputs are given

Given = str | Sequence[str]
"""A text, which is split like any other, or symbols: those of characters or pieces cannot be had back from a text."""


def given_ids(bundle: Bundle, row: Mapping[str, str], given: Given, *, what: str = "prefix") -> list[int]:
    """The ids of a beginning of the output beside the inputs of a row; symbols may end in `<eos>`, a text cannot.

    A symbol that the model cannot write is `<unk>`: that is what it wrote where it was shown as an input's word.
    """
    recipe = bundle.recipe
    if recipe.output.one_step:
        raise UserError(f"{what}: {recipe.output.said} has no beginning to be given")
    if isinstance(given, str):
        return bundle.fields.target_ids(row, given)
    eos = SPECIALS[EOS]
    for number, symbol in enumerate(given):
        ends = symbol == eos and number == len(given) - 1
        if symbol in SPECIALS and symbol != SPECIALS[UNK] and not ends:
            raise UserError(f"{what}: symbol {number} is {symbol}; only {eos} may be given, as the last")
    known = bundle.fields.output.vocabulary.ids
    words = bundle.fields.copied_words(row)
    further = {word: len(bundle.fields.output.vocabulary) + number for number, word in enumerate(words)}
    return [EOS if symbol == eos else known.get(symbol, further.get(symbol, UNK)) for symbol in given]


# ---------------- What a model makes of an output that is given


def follow(
    bundles: Sequence[Bundle], row: Mapping[str, str], target: Given, *, oracle: Weights | None = None
) -> Prediction:
    """The prediction a search would have made, had it chosen this output (and looked as `oracle` says)."""
    if bundles[0].recipe.output.one_step:
        return _label(bundles, row, target if isinstance(target, str) else " ".join(target), oracle)
    ids = given_ids(bundles[0], row, target, what="target")
    ids = ids if ids[-1:] == [EOS] else [*ids, EOS]
    check_reach(bundles[0].recipe, len(ids), f"target: {len(ids)} tokens, <eos> counted")
    options = options_of(
        bundles[0].recipe, beam=1, n_best=1, prefix=ids, oracle=oracle, min_length=0, max_length=len(ids)
    )
    return predict(bundles, [row], options, replace_unknown=False, maps=True)[0]


def _label(bundles: Sequence[Bundle], row: Mapping[str, str], target: str, oracle: Weights | None) -> Prediction:
    labels = bundles[0].fields.output.vocabulary.symbols
    if target not in labels:
        raise UserError(f"unknown label '{target}'{nearest(target, labels)}; allowed: {', '.join(labels)}")
    found = predict(bundles, [row], SearchOptions(beam=len(labels), n_best=len(labels), oracle=oracle), maps=True)[0]
    if found.label == target:
        return replace(found, alternatives=[])
    chosen = next(one for one in found.alternatives if one.text == target)
    return replace(
        found,
        label=target,
        tokens=chosen.tokens,
        log_probability=chosen.log_probability,
        score=chosen.score,
        looks=chosen.looks or found.looks,
        alternatives=[],
    )
