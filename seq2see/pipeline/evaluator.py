"""A model measured on rows with known outputs, the trivial models beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from seq2see.data.columns import ALIGNMENT, OUTPUT, Question, group, place_of
from seq2see.data.split import number_of
from seq2see.errors import UserError
from seq2see.evaluation import Report, Rows, evaluate
from seq2see.evaluation.labels import Aligned
from seq2see.looks import Prediction
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.measures import check_metrics, metrics_of
from seq2see.pipeline.numeric_outputs import judged_rows
from seq2see.pipeline.predictor import Told, chunks, options_of, predict
from seq2see.pipeline.scoring import score_rows, score_stream
from seq2see.recipe.measures import AER, PERPLEXITY
from seq2see.search import SearchOptions, evaluating
from seq2see.settings.base import Tokens

# ---------------- Where a model looks while it writes given outputs, beside where their words are known to ...

Row = Mapping[str, str]


def aligned(rows: Sequence[Row]) -> list[Row]:
    """The rows whose links are known."""
    return [row for row in rows if ALIGNMENT in row]


def align(bundles: Sequence[Bundle], rows: Sequence[Row], *, told: Told | None = None) -> list[Aligned]:
    """The links of each row, and those the model makes: from each symbol to the place most looked at.

    The outputs are the given ones, all steps at once; `<eos>` is no symbol of a text. An ensemble looks where the mean
    of its models does.
    """
    known = [_links(bundles[0], row, number) for number, row in enumerate(rows, start=1)]
    looks = [_looks(bundle, rows, told) for bundle in bundles]
    made = []
    for links, each in zip(known, zip(*looks, strict=True), strict=True):
        if len({look.shape for look in each}) > 1:
            raise UserError("aer: the models of this ensemble cut an input or an output differently")
        steps, places = each[0].shape
        best = torch.stack(each).mean(0).argmax(-1).tolist() if places else []
        found = [(place, step) for step, place in enumerate(best[: steps - 1])]
        made.append(Aligned(found, *links))
    return made


def _links(bundle: Bundle, row: Row, number: int) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    if bundle.fields.aligning is None:
        raise UserError("aer: the recipe names no column of links; set loss.alignment.column")
    try:
        links = bundle.fields.aligning.links(row, bundle.fields.read(row, output=True))
    except UserError as error:
        raise UserError(f"{place_of(row, number)}: {error}") from None
    return links.sure, links.possible


@torch.inference_mode()
def _looks(bundle: Bundle, rows: Sequence[Row], told: Told | None) -> list[torch.Tensor]:
    """Of each row its looks, (steps, places), real ones alone."""
    name = bundle.recipe.looked_at[0]
    found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for numbers, batch in chunks(bundle.fields, rows, target=True, told=told):
        batch.rows = numbers
        batch = batch.to(bundle.device)
        with evaluating([bundle.network]):
            step, ready = bundle.network.forward_batch(batch)
        weights, places = step.looks[name].dense().cpu(), ready.looks[name].mask.cpu()
        steps = batch.target.mask.cpu()  # type: ignore[union-attr]
        for place, number in enumerate(numbers):
            found[number] = weights[place][steps[place]][:, places[place]]
    return found


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
    spoken = [name for name in names if name not in (PERPLEXITY, AER)]
    predictions: list[Prediction] = []
    report = Report(len(chosen), {})
    if spoken:
        asked = enough_hypotheses(options if options is not None else options_of(recipe), names)
        inputs = [question.inputs for question in questions]
        predictions = predict(bundles, inputs, asked, told=_told(progress, "inputs answered"))
        judged = judged_as(bundle, questions, predictions)
        report = evaluate(spoken, judged, baselines=bundle.baselines, bins=bins, positions=positions)
    if not recipe.output.one_step or PERPLEXITY in names:
        report = report.join(_perplexity_report(bundles, chosen, _told(progress, "outputs scored")))
    if AER in names or aligned(chosen):
        report = report.join(_aligned_report(bundles, aligned(chosen), _told(progress, "outputs aligned")))
    ordered = {name: report.metrics[name] for name in [*names, PERPLEXITY, AER] if name in report.metrics}
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
        raise UserError(f"metric '{AER}' needs the column '{column}' of links, and the table has none")
    nothing = [""] * len(rows)
    made = Rows(nothing, [[""]] * len(rows), alignments=align(bundles, rows, told=told))
    return evaluate([AER], made, baselines=bundles[0].baselines)


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


# ---------------- A model's answers beside what the table says, without measuring them


def answered(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    *,
    metric: str,
    beam: int | None = None,
    progress: Progress | None = None,
) -> Rows:
    """What a metric needs to know of each distinct input; perplexity, which is taken of outputs, of each row."""
    if metric == PERPLEXITY:
        return _scored(bundles, rows, progress)
    recipe = bundles[0].recipe
    questions = group(rows)
    options = enough_hypotheses(options_of(recipe, beam=beam), [metric])
    told = None if progress is None else partial(progress, "inputs answered")
    predictions = predict(bundles, [question.inputs for question in questions], options, told=told)
    return judged_as(bundles[0], questions, predictions)


def _scored(bundles: Sequence[Bundle], rows: Sequence[Row], progress: Progress | None) -> Rows:
    recipe = bundles[0].recipe
    told = None if progress is None else partial(progress, "outputs scored")
    scored = score_rows(bundles, rows, told=told)
    main = next(iter(recipe.texts))
    nothing = [""] * len(scored)
    return Rows(
        nothing,
        [[""]] * len(scored),
        inputs=[row[main] for row in rows],
        input_unit=recipe.texts[main].tokens,
        targets=[one.symbols for one in scored],
        log_probabilities=[one.log_probability for one in scored],
    )
