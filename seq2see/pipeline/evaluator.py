"""A model measured on rows with known outputs, the trivial models beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from seq2see.data.batches import Batch, Labels
from seq2see.data.columns import OUTPUT
from seq2see.data.references import Question, group
from seq2see.data.split import number_of
from seq2see.data.streams import Stream
from seq2see.evaluation import Report, Rows, check, default_metrics, evaluate
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
        return Judged(_stream_report(bundle, rows), [], [])
    questions = some(group(rows), most)
    chosen = [rows[number] for question in questions for number in question.rows]
    spoken = [name for name in names if name != "perplexity"]
    predictions: list[Prediction] = []
    report = Report(len(chosen), {})
    if spoken and recipe.inputs:
        asked = enough_hypotheses(options if options is not None else options_of(recipe), names)
        predictions = predict(bundles, [question.inputs for question in questions], asked)
        judged = _rows(recipe, questions, predictions)
        report = evaluate(spoken, judged, baselines=bundle.baselines, bins=bins, positions=positions)
    if recipe.output.kind == "text" and len(bundles) == 1:
        report = report.joined(_perplexity_report(bundle, chosen))
    ordered = {name: report.metrics[name] for name in [*names, "perplexity"] if name in report.metrics}
    return Judged(replace(report, rows=len(chosen), metrics=ordered), questions, predictions)


def some(questions: list[Question], most: int) -> list[Question]:
    """At most so many (0: all), chosen by what they ask and not by where they stand: tables are often sorted."""
    if not most or len(questions) <= most:
        return questions

    def number(question: Question) -> int:
        asked = question.inputs or {OUTPUT: question.references[0]}
        return number_of(asked, sorted(asked))

    return sorted(questions, key=number)[:most]


def enough_hypotheses(options: SearchOptions, names: Sequence[str]) -> SearchOptions:
    """The options with as many hypotheses as `exact@n` asks for."""
    wanted = max([int(name.split("@")[1].removesuffix("_lc")) for name in names if "@" in name], default=1)
    if wanted <= options.n_best:
        return options
    beam = options.beam if options.sample else max(options.beam, wanted)
    return replace(options, n_best=wanted, beam=beam)


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


def _perplexity_report(bundle: Bundle, rows: Sequence[Row]) -> Report:
    """Perplexity of every row's output (an input may have several), the unigram model beside it."""
    scored = score_rows(bundle, rows)
    return _likelihoods(bundle, [one.symbols for one in scored], [one.log_probability for one in scored])


def _stream_report(bundle: Bundle, rows: Sequence[Row]) -> Report:
    """Perplexity of one contiguous text."""
    lines = [row[OUTPUT] for row in rows]
    total, count = score_stream(bundle, lines)
    field = bundle.fields.text_output
    known = field.vocabulary
    symbols = [symbol for line in lines for symbol in known.decode(known.encode(field.stream_symbols(line)))]
    return replace(_likelihoods(bundle, [symbols[:count]], [total]), rows=len(rows))


def _likelihoods(bundle: Bundle, targets: list[list[str]], log_probabilities: list[float]) -> Report:
    nothing = [""] * len(targets)
    rows = Rows(nothing, [[""]] * len(targets), targets=targets, log_probabilities=log_probabilities)
    return evaluate(["perplexity"], rows, baselines=bundle.baselines)
