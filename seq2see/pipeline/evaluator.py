"""A model measured on rows with known outputs, the trivial models beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from seq2see.data.batches import Batch, Labels
from seq2see.data.columns import OUTPUT
from seq2see.data.references import Question, group
from seq2see.data.streams import Stream
from seq2see.evaluation import Report, Rows, beside, check, default_metrics, evaluate, lookup, perplexity
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.chunks import chunks
from seq2see.pipeline.predictor import options_of, predict
from seq2see.recipe import Recipe
from seq2see.recipe.schema import Tokens
from seq2see.search import SearchOptions, score_given

Row = Mapping[str, str]
STREAM_CHUNK = 256
LEAST_LANE = 4096


def metrics_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first."""
    tokens = getattr(recipe.output, "tokens", None)
    names = recipe.evaluation.metrics or default_metrics(recipe.output.kind, tokens, inputs=bool(recipe.inputs))
    check(names, recipe.output.kind)
    return names


@dataclass
class Scored:
    """log P of one given output: total, and one per symbol (`<eos>` included)."""

    log_probability: float
    symbols: list[str]
    log_probs: list[float]


@torch.inference_mode()
def score_rows(bundle: Bundle, rows: Sequence[Row]) -> list[Scored]:
    """The probability the model gives to the outputs in the rows."""
    found: list[Scored | None] = [None] * len(rows)
    vocabulary = bundle.fields.output.vocabulary
    for numbers, batch in chunks(bundle.fields, rows, target=True):
        batch.rows = numbers
        scored = score_given(bundle.network, batch.to(bundle.device))
        for place, (number, given) in enumerate(zip(numbers, scored, strict=True)):
            found[number] = Scored(given.total, vocabulary.decode(_target_ids(batch, place)), given.log_probs)
    return [one for one in found if one is not None]


def _target_ids(batch: Batch, place: int) -> list[int]:
    target = batch.target
    if isinstance(target, Labels):
        return [int(target.ids[place])]
    if target is None:
        raise ValueError("a batch without targets has nothing to score")
    ids: list[int] = target.ids[place][target.mask[place]].tolist()
    return ids


@torch.inference_mode()
def score_stream(bundle: Bundle, lines: Sequence[str]) -> tuple[float, int]:
    """(log P, symbols) of one contiguous text; long texts are read in lanes side by side, each begun anew."""
    stream = Stream.build(bundle.fields.text_output, lines)
    lanes = max(1, min(16, len(stream) // LEAST_LANE))
    total, count = 0.0, 0
    network = bundle.network
    ready = network.ready({}, lanes)
    state = network.begin(ready)
    for chunk in stream.chunks(bptt=STREAM_CHUNK, lanes=lanes):
        inputs, targets = chunk.inputs.to(bundle.device), chunk.targets.to(bundle.device)
        step = network.read_on(ready, inputs, state)
        state = step.state
        everywhere = torch.ones_like(targets, dtype=torch.bool)
        total -= float(network.head.loss(step, ready, targets, mask=everywhere))
        count += targets.numel()
    return total, count


@dataclass
class Judged:
    """A report with the questions and the predictions behind it."""

    report: Report
    questions: list[Question]
    predictions: list[Prediction]


def judge(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    *,
    options: SearchOptions | None = None,
    most: int = 0,
    bins: int = 0,
    positions: bool = False,
    metrics: Sequence[str] | None = None,
) -> Judged:
    """Measure on rows; those with equal inputs are references of each other. most: at most so many distinct inputs."""
    bundle = bundles[0]
    recipe = bundle.recipe
    names = list(metrics) if metrics is not None else metrics_of(recipe)
    check(names, recipe.output.kind)
    if recipe.data.stream:
        return Judged(_judge_stream(bundle, rows), [], [])
    questions = group(rows)[: most or None]
    chosen = [rows[number] for question in questions for number in question.rows]
    spoken = [name for name in names if lookup(name).of_outputs or lookup(name).name.startswith("exact@")]
    predictions: list[Prediction] = []
    report = Report(rows=len(rows if not most else chosen), metrics={})
    if spoken and recipe.inputs:
        options = options if options is not None else options_of(recipe)
        predictions = predict(bundles, [question.inputs for question in questions], options)
        judged = _rows(recipe, questions, predictions)
        report = evaluate(spoken, judged, baselines=bundle.baselines, bins=bins, positions=positions)
    if recipe.output.kind == "text":
        report = _with_perplexity(bundle, report, chosen)
    ordered = {name: report.metrics[name] for name in [*names, "perplexity"] if name in report.metrics}
    return Judged(
        Report(len(chosen), ordered, report.baseline, report.said, report.by_length, report.positions),
        questions,
        predictions,
    )


def _rows(recipe: Recipe, questions: Sequence[Question], predictions: Sequence[Prediction]) -> Rows:
    unit: Tokens = getattr(recipe.output, "tokens", "word")
    main = next(iter(recipe.inputs), None)
    return Rows(
        [str(one.answer) for one in predictions],
        [question.references for question in questions],
        inputs=[question.inputs[main] for question in questions] if main else None,
        unit=unit,
        input_unit=recipe.inputs[main].tokens if main else None,
        alternatives=[[str(one.answer), *(other.text for other in one.alternatives)] for one in predictions],
    )


def _with_perplexity(bundle: Bundle, report: Report, rows: Sequence[Row]) -> Report:
    scored = score_rows(bundle, rows)
    value = perplexity(sum(one.log_probability for one in scored), sum(len(one.symbols) for one in scored))
    targets = [one.symbols for one in scored]
    against = Rows([""] * len(scored), [[""]] * len(scored), targets=targets, log_probabilities=[0.0] * len(scored))
    others = beside(bundle.baselines, ["perplexity"], against)
    said = report.said
    if others and not report.baseline:
        said = "the unigram model"
    return Report(
        report.rows,
        {**report.metrics, "perplexity": value},
        {**report.baseline, **others},
        said,
        report.by_length,
        report.positions,
    )


def _judge_stream(bundle: Bundle, rows: Sequence[Row]) -> Report:
    lines = [row[OUTPUT] for row in rows]
    total, count = score_stream(bundle, lines)
    field = bundle.fields.text_output
    known = field.vocabulary
    targets = [known.decode(known.encode(field.stream_symbols(line))) for line in lines]
    against = Rows([""] * len(lines), [[""]] * len(lines), targets=targets, log_probabilities=[0.0] * len(lines))
    value = perplexity(total, count)
    return Report(count, {"perplexity": value}, beside(bundle.baselines, ["perplexity"], against), "the unigram model")
