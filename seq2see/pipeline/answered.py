"""A model's answers beside what the table says, without measuring them: whoever draws takes them apart first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from seq2see.data.references import group
from seq2see.evaluation import Rows
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.evaluator import Progress, enough_hypotheses, judged_as
from seq2see.pipeline.measures import PERPLEXITY
from seq2see.pipeline.predictor import options_of, predict
from seq2see.pipeline.scoring import Row, score_rows


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
