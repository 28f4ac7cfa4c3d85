"""Evaluation of a model on rows with known outputs: metrics, baselines, perplexity, alignment error rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import torch

from seq2see.data.columns import ALIGNMENT, OUTPUT, Question, group_references, place_of
from seq2see.data.split import row_hash
from seq2see.data.tokens import UnicodeForm, in_form
from seq2see.errors import UserError
from seq2see.evaluation import Report, Rows, check, evaluate
from seq2see.evaluation.metrics import Aligned, Measured
from seq2see.looks import Looks, Prediction
from seq2see.pipeline.alignments import Links
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import OnProgress, Progress, chunks, options_of, planned, predict
from seq2see.pipeline.scoring import score_rows, score_stream
from seq2see.recipe import Recipe
from seq2see.recipe.schema import (
    AER,
    OF_LOOKS,
    PERPLEXITY,
    POINTING,
    allowed_metrics,
    also_measured,
    measures_of,
    timed_alignment,
)
from seq2see.search import SearchOptions, evaluating
from seq2see.settings.base import Tokens

Row = Mapping[str, str]


class Spread(Protocol):
    """Does some work on parts (numbers of rows), shared out between processes; every one gets all results."""

    def __call__(self, work: Callable[[list[int]], list[Any]], parts: Sequence[list[int]]) -> list[list[Any]]: ...


def rows_with_links(rows: Sequence[Row]) -> list[Row]:
    """The rows whose true links are known."""
    return [row for row in rows if ALIGNMENT in row]


def align(bundles: Sequence[Bundle], rows: Sequence[Row], *, on_progress: OnProgress | None = None) -> list[Aligned]:
    """The true links of each row, and those of attention: from each symbol to the place with the largest weight.

    The outputs are those of the table (teacher forcing); `<eos>` is no symbol of a text. An ensemble uses the mean of
    its models' weights.
    """
    for number, row in enumerate(rows, start=1):
        _links(bundles[0], row, number, places=1)  # refused before anything is computed
    looks = [_looks(bundle, rows, on_progress) for bundle in bundles]
    alignments = []
    for number, (row, each) in enumerate(zip(rows, zip(*looks, strict=True), strict=True), start=1):
        if len({look.shape for look in each}) > 1:
            raise UserError("alignments: the models of this ensemble cut an input or an output differently")
        steps, places = each[0].shape
        best = torch.stack(each).mean(0).argmax(-1).tolist() if places else []
        predicted = [(place, step) for step, place in enumerate(best[: steps - 1])]
        links = _links(bundles[0], row, number, places=places)
        alignments.append(Aligned(predicted, links.sure, links.possible))
    return alignments


def _links(bundle: Bundle, row: Row, number: int, *, places: int) -> Links:
    if bundle.fields.alignment is None:
        raise UserError("the recipe names no column of links or times; set loss.alignment.column")
    try:
        return bundle.fields.alignment.links(row, bundle.fields.read(row, output=True), places=places)
    except UserError as error:
        raise UserError(f"{place_of(row, number)}: {error}") from None


@torch.inference_mode()
def _looks(bundle: Bundle, rows: Sequence[Row], on_progress: OnProgress | None) -> list[torch.Tensor]:
    """The attention weights of each row, (steps, places), without padding."""
    name = bundle.recipe.looked_at[0]
    looks: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for numbers, batch in chunks(bundle.fields, rows, target=True, on_progress=on_progress):
        batch.rows = numbers
        batch = batch.to(bundle.device)
        with evaluating([bundle.network]):
            step, ready = bundle.network.forward_batch(batch)
        weights, places = step.looks[name].dense().cpu(), ready.looks[name].mask.cpu()
        steps = batch.target.mask.cpu()  # type: ignore[union-attr]
        for place, number in enumerate(numbers):
            looks[number] = weights[place][steps[place]][:, places[place]]
    return looks


@dataclass
class Evaluation:
    """A report with the questions and predictions that it is about, and the rows that its metrics read."""

    report: Report
    questions: list[Question]
    predictions: list[Prediction]
    measured: list[Measured] = field(default_factory=list)


@dataclass(frozen=True)
class EvaluationPlan:
    """What an evaluation does with which rows: it searches for the outputs of `questions` where `searched`, scores the
    outputs of `chosen` where `scored`, and aligns `aligned`."""

    questions: list[Question]
    chosen: list[Row]
    searched: bool
    scored: bool
    aligned: list[Row]

    @property
    def work(self) -> int:
        """Rows that go through the model, each as often as it does."""
        return self.searched * len(self.questions) + self.scored * len(self.chosen) + len(self.aligned)


def plan_evaluation(recipe: Recipe, rows: Sequence[Row], names: Sequence[str], *, most: int) -> EvaluationPlan:
    """The plan of `evaluate_model` for metrics by these names, of a recipe that does not read a stream."""
    questions = choose_questions(rows, most)
    chosen = [rows[number] for question in questions for number in question.rows]
    return EvaluationPlan(
        questions,
        chosen,
        searched=any(name not in (PERPLEXITY, *OF_LOOKS) for name in names),
        scored=not recipe.output.one_step or PERPLEXITY in names,
        aligned=rows_with_links(chosen),
    )


def evaluate_model(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    *,
    options: SearchOptions | None = None,
    most: int = 0,
    bins: int = 0,
    positions: bool = False,
    metrics: Sequence[str] | None = None,
    progress: Progress | None = None,
    scoring: AbstractContextManager[object] | None = None,
    spread: Spread | None = None,
    further: bool = True,
) -> Evaluation:
    """Measure a model (or an ensemble) on rows; rows with equal inputs are references of each other.

    most: at most so many distinct inputs (0: all); bins: of input lengths; positions: with recall by position; scoring:
    a context in which given outputs are scored (the precision of training); spread: shares the batches out between
    processes; further: measure further baselines too. The perplexity of text, and for rows with known
    links or times the alignment error rate or the pointing game, are always measured.
    """
    bundle = bundles[0]
    recipe = bundle.recipe
    names = list(metrics) if metrics is not None else metrics_of(recipe)
    check_metrics(names, recipe)
    scoring = nullcontext() if scoring is None else scoring
    if recipe.data.stream:
        with scoring:
            stream = _score_stream(bundles, rows, _counter(progress, "symbols scored"))
        report = evaluate(stream.names, stream.rows, baselines=bundle.baselines)
        return Evaluation(replace(report, rows=len(rows)), [], [], [stream])
    plan = plan_evaluation(recipe, rows, names, most=most)
    questions, chosen = plan.questions, plan.chosen
    predictions: list[Prediction] = []
    report, measured = Report(len(chosen), {}), list[Measured]()
    if plan.searched:
        options = enough_hypotheses(options if options is not None else options_of(recipe), names)
        inputs = [question.inputs for question in questions]
        counter = _counter(progress, "inputs answered")

        def answer(rows: Sequence[Row]) -> list[Prediction]:
            return predict(bundles, rows, options, on_progress=counter)

        width = max(options.beam, options.n_best)
        predictions = _by_batches(bundle, inputs, answer, spread, factor=width, lighten=_without_looks)
        of_outputs = [name for name in names if name not in (PERPLEXITY, *OF_LOOKS)]
        outputs = Measured(of_outputs, metric_rows(bundle, questions, predictions))
        measured.append(outputs)
        report = evaluate(
            of_outputs, outputs.rows, baselines=bundle.baselines, further=further, bins=bins, positions=positions
        )
    if plan.scored:
        with scoring:
            measured.append(_score(bundles, chosen, _counter(progress, "outputs scored"), spread))
    of_looks = [name for name in OF_LOOKS if name in names] or [POINTING if timed_alignment(recipe) else AER]
    known = plan.aligned and bundle.fields.alignment is not None
    if known or any(name in names for name in of_looks):
        measured.append(_align(bundles, plan.aligned, of_looks, _counter(progress, "outputs aligned"), spread))
    for part in measured[plan.searched :]:
        report = report.join(evaluate(part.names, part.rows, baselines=bundle.baselines))
    ordered = {name: report.metrics[name] for name in [*names, PERPLEXITY, *OF_LOOKS] if name in report.metrics}
    distinct = len(questions) if recipe.inputs else None
    report = replace(report, rows=len(chosen), inputs=distinct, metrics=ordered)
    return Evaluation(report, questions, predictions, measured)


def _by_batches(
    bundle: Bundle,
    rows: Sequence[Row],
    work: Callable[[Sequence[Row]], list[Any]],
    spread: Spread | None,
    *,
    factor: int = 1,
    lighten: Callable[[Any], Any] = lambda result: result,
) -> list[Any]:
    """The result of some work on each row. Whole batches are shared out, never the rows of one, so that the numbers are
    the same bits whoever computes them. lighten: what is sent of a result."""
    if spread is None:
        return work(rows)
    parts = list(planned(bundle.fields, rows, factor=factor))
    done = spread(lambda part: [lighten(result) for result in work([rows[number] for number in part])], parts)
    results: list[Any] = [None] * len(rows)
    for part, each in zip(parts, done, strict=True):
        for number, result in zip(part, each, strict=True):
            results[number] = result
    return results


def _without_looks(prediction: Prediction) -> Prediction:
    alternatives = [replace(other, looks=None) for other in prediction.alternatives]
    return replace(prediction, looks=Looks(), alternatives=alternatives)


def _counter(progress: Progress | None, what: str) -> OnProgress | None:
    """The progress of one task."""
    return None if progress is None else partial(progress, what)


def choose_questions(rows: Sequence[Row], most: int) -> list[Question]:
    """At most so many distinct inputs of the rows (0: all), chosen by a hash of their content, as tables are often
    sorted."""
    questions = group_references(rows)
    if not most or len(questions) <= most:
        return questions

    def number(question: Question) -> int:
        return row_hash(rows[question.rows[0]], sorted(question.inputs) or [OUTPUT])

    return sorted(questions, key=number)[:most]


def enough_hypotheses(options: SearchOptions, names: Sequence[str]) -> SearchOptions:
    """The options with as many hypotheses as `exact@n` needs."""
    needed = max(
        [int(name.split("@")[1].removesuffix("_lc").removesuffix("_plain")) for name in names if "@" in name], default=1
    )
    if needed <= options.n_best:
        return options
    beam = options.beam if options.sample else max(options.beam, needed)
    return replace(options, n_best=needed, beam=beam)


def metric_rows(bundle: Bundle, questions: Sequence[Question], predictions: Sequence[Prediction]) -> Rows:
    """Predictions with their references, as metrics read them."""
    recipe = bundle.recipe
    if recipe.output.numeric:
        field = bundle.fields.numeric_output
        continued = [field.continued(question.inputs, bundle.fields.inputs) for question in questions]
        known = [numbers for numbers in continued if numbers is not None]
        return Rows(
            [""] * len(questions),
            [[""]] * len(questions),
            numbers=[field.answered(prediction) for prediction in predictions],
            true_numbers=[[field.numbers(reference) for reference in question.references] for question in questions],
            continued=known if len(known) == len(continued) else None,
        )
    unit: Tokens = getattr(recipe.output, "tokens", "word")
    form: UnicodeForm = getattr(recipe.output, "unicode", "none")
    main = next(iter(recipe.texts), None)
    return Rows(
        [str(prediction.answer) for prediction in predictions],
        [[in_form(reference, form) for reference in question.references] for question in questions],
        inputs=[question.inputs[main] for question in questions] if main else None,
        unit=unit,
        joined_inputs=[recipe.joined_texts(question.inputs) for question in questions] if main else None,
        input_unit=recipe.texts[main].tokens if main else None,
        alternatives=[
            [str(prediction.answer), *(other.text for other in prediction.alternatives)] for prediction in predictions
        ],
    )


def _score(
    bundles: Sequence[Bundle], rows: Sequence[Row], on_progress: OnProgress | None, spread: Spread | None
) -> Measured:
    """The probability of every row's output (an input may have several)."""
    scored = _by_batches(bundles[0], rows, lambda part: score_rows(bundles, part, on_progress=on_progress), spread)
    return _of_targets([row.symbols for row in scored], [row.log_probability for row in scored])


def _align(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    names: list[str],
    on_progress: OnProgress | None,
    spread: Spread | None,
) -> Measured:
    """The alignments of the rows with known links, for metrics by these names."""
    if not rows:
        column = bundles[0].recipe.loss.alignment.column
        raise UserError(f"metric '{names[0]}' needs the column '{column}' of alignments, and the table has none")
    aligned = _by_batches(bundles[0], rows, lambda part: align(bundles, part, on_progress=on_progress), spread)
    return Measured(names, Rows([""] * len(rows), [[""]] * len(rows), alignments=aligned))


def _score_stream(bundles: Sequence[Bundle], rows: Sequence[Row], on_progress: OnProgress | None) -> Measured:
    """The probability of one contiguous text."""
    lines = [row[OUTPUT] for row in rows]
    total, count = score_stream(bundles, lines, on_progress=on_progress)
    field = bundles[0].fields.text_output
    known = field.vocabulary
    symbols = [symbol for line in lines for symbol in known.decode(known.encode(field.stream_symbols(line)))]
    return _of_targets([symbols[:count]], [total])


def _of_targets(targets: list[list[str]], log_probabilities: list[float]) -> Measured:
    """Rows whose outputs have a probability, which perplexity is taken of."""
    blank = [""] * len(targets)
    return Measured(
        [PERPLEXITY], Rows(blank, [[""]] * len(targets), targets=targets, log_probabilities=log_probabilities)
    )


def predict_rows(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    *,
    metric: str,
    beam: int | None = None,
    progress: Progress | None = None,
) -> Rows:
    """The rows that a metric reads: the predictions of each distinct input, or for perplexity the probability of each
    row's output."""
    if metric == PERPLEXITY:
        return _scored(bundles, rows, progress)
    recipe = bundles[0].recipe
    questions = group_references(rows)
    options = enough_hypotheses(options_of(recipe, beam=beam), [metric])
    counter = _counter(progress, "inputs answered")
    predictions = predict(bundles, [question.inputs for question in questions], options, on_progress=counter)
    return metric_rows(bundles[0], questions, predictions)


def _scored(bundles: Sequence[Bundle], rows: Sequence[Row], progress: Progress | None) -> Rows:
    recipe = bundles[0].recipe
    scored = score_rows(bundles, rows, on_progress=_counter(progress, "outputs scored"))
    main = next(iter(recipe.texts))
    return Rows(
        [""] * len(scored),
        [[""]] * len(scored),
        inputs=[row[main] for row in rows],
        input_unit=recipe.texts[main].tokens,
        targets=[row.symbols for row in scored],
        log_probabilities=[row.log_probability for row in scored],
    )


# ---------------------------------------------------------------- metrics of a recipe


def check_metrics(names: Sequence[str], recipe: Recipe, *, key: str = "metrics") -> None:
    """Refuse names that are unknown, given twice, or do not fit the recipe's output; key: of the names in the
    recipe."""
    try:
        check(names, recipe.output.measured_as)
    except UserError as error:
        raise UserError(f"{key}: {error}") from None
    of_looks = next((name for name in names if name in OF_LOOKS), None)
    if of_looks is not None and recipe.loss.alignment.column is None:
        raise UserError(
            f"{key}: metric '{of_looks}' needs to know which word comes from which, and the recipe names no column of "
            "links or times; set loss.alignment.column (and loss.alignment.weight=0 to measure without learning from "
            "it)"
        )
    if AER in names and timed_alignment(recipe):
        raise UserError(f"{key}: metric '{AER}' counts links between symbols, not times; allowed: {POINTING}")
    unfit = [name for name in names if name != PERPLEXITY] if not recipe.inputs else []
    if unfit:
        raise UserError(
            f"{key}: metric '{unfit[0]}' cannot be taken of a language model, which answers no input; "
            f"allowed: {', '.join(allowed_metrics(recipe))}"
        )


def metrics_of(recipe: Recipe) -> list[str]:
    """The metrics of a recipe, the leading one first."""
    names = measures_of(recipe)
    check_metrics(names, recipe, key="evaluation.metrics")
    return names


def report_metrics(recipe: Recipe) -> tuple[list[str], str]:
    """(the metrics of a run's reports, the one that selects the best model)."""
    names, chosen = metrics_of(recipe), recipe.training.metric
    if chosen is None:
        return names, names[0]
    check_metrics([chosen], recipe, key="training.metric")
    if chosen not in [*names, *also_measured(recipe)]:
        raise UserError(
            f"training.metric: '{chosen}' is not among evaluation.metrics ({', '.join(names)}); add it there"
        )
    return (names if chosen in names else [*names, chosen]), chosen
