"""A model measured on rows with known outputs, the trivial models beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from seq2see.data.columns import OUTPUT
from seq2see.data.references import Question, group
from seq2see.data.split import number_of
from seq2see.errors import UserError
from seq2see.evaluation import Report, Rows, evaluate
from seq2see.looks import Prediction
from seq2see.pipeline.aligning import align, aligned
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.chunks import Told
from seq2see.pipeline.measures import PERPLEXITY, check_metrics, metrics_of
from seq2see.pipeline.numbers import judged_rows
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.scoring import Row, score_rows, score_stream
from seq2see.recipe.measures import LOOKS
from seq2see.recipe.schema import Tokens
from seq2see.search import SearchOptions

__all__ = ["Judged", "enough_hypotheses", "judge", "judged_as", "metrics_of", "some"]

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many of it are done, of how many."""


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
    progress: Progress | None = None,
) -> Judged:
    """Measure on rows; those with equal inputs are references of each other. most: at most so many distinct inputs.

    The perplexity of text is measured unasked: it is comparable where outputs are not. So is the alignment error rate
    of rows whose links are known.
    """
    bundle = bundles[0]
    recipe = bundle.recipe
    names = list(metrics) if metrics is not None else metrics_of(recipe)
    check_metrics(names, recipe)
    if recipe.data.stream:
        return Judged(_stream_report(bundles, rows, _told(progress, "symbols scored")), [], [])
    questions = some(rows, most)
    chosen = [rows[number] for question in questions for number in question.rows]
    spoken = [name for name in names if name not in (PERPLEXITY, LOOKS)]
    predictions: list[Prediction] = []
    report = Report(len(chosen), {})
    if spoken:
        asked = enough_hypotheses(options if options is not None else options_of(recipe), names)
        inputs = [question.inputs for question in questions]
        predictions = predict(bundles, inputs, asked, told=_told(progress, "inputs answered"))
        judged = judged_as(bundle, questions, predictions)
        report = evaluate(spoken, judged, baselines=bundle.baselines, bins=bins, positions=positions)
    if recipe.output.kind == "text" or PERPLEXITY in names:
        report = report.joined(_perplexity_report(bundles, chosen, _told(progress, "outputs scored")))
    if LOOKS in names or aligned(chosen):
        report = report.joined(_aligned_report(bundles, aligned(chosen), _told(progress, "outputs aligned")))
    ordered = {name: report.metrics[name] for name in [*names, PERPLEXITY, LOOKS] if name in report.metrics}
    distinct = len(questions) if recipe.inputs else None
    return Judged(replace(report, rows=len(chosen), inputs=distinct, metrics=ordered), questions, predictions)


def _told(progress: Progress | None, what: str) -> Told | None:
    return None if progress is None else partial(progress, what)


def some(rows: Sequence[Row], most: int) -> list[Question]:
    """At most so many distinct inputs of the rows (0: all), chosen by what they hold and not by where they stand:
    tables are often sorted."""
    questions = group(rows)
    if not most or len(questions) <= most:
        return questions

    def number(question: Question) -> int:
        return number_of(rows[question.rows[0]], sorted(question.inputs) or [OUTPUT])

    return sorted(questions, key=number)[:most]


def enough_hypotheses(options: SearchOptions, names: Sequence[str]) -> SearchOptions:
    """The options with as many hypotheses as `exact@n` asks for."""
    wanted = max(
        [int(name.split("@")[1].removesuffix("_lc").removesuffix("_plain")) for name in names if "@" in name], default=1
    )
    if wanted <= options.n_best:
        return options
    beam = options.beam if options.sample else max(options.beam, wanted)
    return replace(options, n_best=wanted, beam=beam)


def judged_as(bundle: Bundle, questions: Sequence[Question], predictions: Sequence[Prediction]) -> Rows:
    """Predictions beside their references, as metrics read them."""
    recipe = bundle.recipe
    if recipe.output.numeric:
        return judged_rows(bundle.fields, questions, predictions)
    unit: Tokens = getattr(recipe.output, "tokens", "word")
    main = next(iter(recipe.texts), None)
    return Rows(
        [str(one.answer) for one in predictions],
        [question.references for question in questions],
        inputs=[question.inputs[main] for question in questions] if main else None,
        unit=unit,
        input_unit=recipe.texts[main].tokens if main else None,
        alternatives=[[str(one.answer), *(other.text for other in one.alternatives)] for one in predictions],
    )


def _perplexity_report(bundles: Sequence[Bundle], rows: Sequence[Row], told: Told | None) -> Report:
    """Perplexity of every row's output (an input may have several), the unigram model beside it."""
    scored = score_rows(bundles, rows, told=told)
    return _likelihoods(bundles[0], [one.symbols for one in scored], [one.log_probability for one in scored])


def _aligned_report(bundles: Sequence[Bundle], rows: Sequence[Row], told: Told | None) -> Report:
    """The alignment error rate of the rows whose links are known."""
    if not rows:
        column = bundles[0].recipe.loss.alignment.column
        raise UserError(f"metric '{LOOKS}' needs the column '{column}' of links, and the table has none")
    nothing = [""] * len(rows)
    made = Rows(nothing, [[""]] * len(rows), alignments=align(bundles, rows, told=told))
    return evaluate([LOOKS], made, baselines=bundles[0].baselines)


def _stream_report(bundles: Sequence[Bundle], rows: Sequence[Row], told: Told | None) -> Report:
    """Perplexity of one contiguous text."""
    lines = [row[OUTPUT] for row in rows]
    total, count = score_stream(bundles, lines, told=told)
    field = bundles[0].fields.text_output
    known = field.vocabulary
    symbols = [symbol for line in lines for symbol in known.decode(known.encode(field.stream_symbols(line)))]
    return replace(_likelihoods(bundles[0], [symbols[:count]], [total]), rows=len(rows))


def _likelihoods(bundle: Bundle, targets: list[list[str]], log_probabilities: list[float]) -> Report:
    nothing = [""] * len(targets)
    rows = Rows(nothing, [[""]] * len(targets), targets=targets, log_probabilities=log_probabilities)
    return evaluate([PERPLEXITY], rows, baselines=bundle.baselines)
