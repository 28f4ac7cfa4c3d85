"""Prediction: from rows of inputs to `Prediction`s, for Python, the command line and the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from seq2see.data.batches import Batch
from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.looks import Drawable, Looks, Prediction
from seq2see.memory import Places
from seq2see.modalities.base import Modality
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.fields import Row as ReadRow
from seq2see.pipeline.language_models import SearchLanguageModel, language_model_of
from seq2see.recipe import Recipe
from seq2see.recipe.rules import check_language_model, check_language_model_settings
from seq2see.search import Hypothesis, SearchOptions, Source, classify, reconstruct, search
from seq2see.search.answers import AnswerWriter, grid_names, looks_of
from seq2see.search.options import LANGUAGE_MODEL, merged_options, plan_batches

Row = Mapping[str, str]

OnProgress = Callable[[int, int], None]
"""Called with (how many are done, of how many)."""
Progress = Callable[[str, int, int], None]
"""Called with (what is counted, such as "rows scored", how many are done, of how many)."""


def chunks(
    fields: Fields,
    rows: Sequence[Row],
    *,
    target: bool = False,
    factor: int = 1,
    on_progress: OnProgress | None = None,
) -> Iterator[tuple[list[int], Batch]]:
    """Batch rows for prediction, longest first: (indices of the rows, their batch). factor: hypotheses per row
    (beam)."""
    rows = [row if isinstance(row, ReadRow) else ReadRow(row) for row in rows]
    done = 0
    for numbers in planned(fields, rows, factor=factor):
        yield numbers, fields.batch([rows[number] for number in numbers], target=target)
        done += len(numbers)
        if on_progress is not None:
            on_progress(done, len(rows))


def planned(fields: Fields, rows: Sequence[Row], *, factor: int = 1) -> Iterator[list[int]]:
    """The numbers of the rows of each batch of `chunks`. The rows of one batch, given alone, are the same batch."""
    lengths = [sum(example.length for example in fields.read(row).values()) + 1 for row in rows]
    yield from plan_batches(lengths, factor=factor)


def check_length(recipe: Recipe, length: int, what: str) -> None:
    """Refuse an output of more symbols (`<eos>` counted) than a decoder has learned positions for.

    what: the option that asks for it, for the message.
    """
    most = None if recipe.output.one_step else recipe.decoder.most_steps
    if most is not None and length > most:
        raise UserError(f"{what}: the model has learned {most} positions and none beyond; allowed: at most {most}")


def options_of(recipe: Recipe, *, every: bool = False, **overrides: Any) -> SearchOptions:
    """The recipe's search settings with overrides (None: keep the recipe's): see `merged_options`."""
    if recipe.output.one_step:
        chosen = {name: value for name, value in overrides.items() if value is not None}
        chosen = {name: value for name, value in chosen.items() if (name, value) != ("n_best", 1)}
        useless = [name for name in chosen if name != "oracle" and name not in ranking_options(recipe)]
        if useless:
            raise UserError(f"{', '.join(useless)}: {why_no_search(recipe)}")
        return SearchOptions(sample=True, **chosen)
    options = merged_options(recipe.search.model_dump(), overrides, inputs=bool(recipe.inputs), every=every)
    if any(overrides.get(name) is not None for name in LANGUAGE_MODEL):
        _check_language_model(recipe, options)
    return options


def _check_language_model(recipe: Recipe, options: SearchOptions) -> None:
    """Refuse options that the rules of recipes would refuse as settings."""
    chosen = {name: getattr(options, name) for name in LANGUAGE_MODEL}
    searched = recipe.search.model_copy(update=chosen | {"beam": max(options.beam, options.n_best)})
    recipe = recipe.model_copy(update={"search": searched})
    problems = [str(each) for each in (*check_language_model(recipe), *check_language_model_settings(recipe))]
    if problems:
        raise UserError("; ".join(problems))


def ranking_options(recipe: Recipe) -> tuple[str, ...]:
    """Options that apply even without a search: n_best, as the classes of a label are ranked."""
    return () if recipe.output.numeric else ("n_best",)


def why_no_search(recipe: Recipe) -> str:
    """Why search options do not apply to this recipe's model."""
    if recipe.output.numeric:
        return f"{recipe.output.noun} is not searched for: it is given whole, one for each input"
    return f"{recipe.output.noun} is not searched for: every class is weighed, and n_best tells the likeliest ones"


def answer_options(
    recipe: Recipe, *, beam: int | None = None, n_best: int | None = None, sample: bool | None = None, **overrides: Any
) -> SearchOptions:
    """The options of `predict` in Python, on the command line and on the server: without n_best, all hypotheses of the
    beam are returned."""
    most = overrides.get("max_length")
    if isinstance(most, int):
        check_length(recipe, most, f"max_length {most}")
    return options_of(recipe, every=True, beam=beam, n_best=n_best, sample=sample, **overrides)


@torch.inference_mode()
def predict(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    options: SearchOptions,
    *,
    replace_unknown: bool | None = None,
    first_row: int = 0,
    drawn_as: Sequence[int] | None = None,
    on_progress: OnProgress | None = None,
    maps: bool = False,
) -> list[Prediction]:
    """One prediction per row, in their order; several bundles are an ensemble.

    first_row: the index of the first row in its table. Random numbers depend on a row's index, so that a table in parts
    gives the samples of the whole; drawn_as: these indices one by one, for rows of several tables. maps: keep heads and
    layers apart in looks, which takes memory.

    A row in which a required input is empty gets a blank prediction with the reason.
    """
    first = bundles[0]
    check_ensemble(bundles)
    for bundle in bundles:
        bundle.packed.refresh()
    replace_unknown = first.recipe.search.replace_unknown if replace_unknown is None else replace_unknown
    language_model = language_model_of(first, options)
    predictions: list[Prediction | None] = [None] * len(rows)
    rows = [row if isinstance(row, ReadRow) else ReadRow(row) for row in rows]
    width = max(options.beam, options.n_best)
    full = []
    for number, row in enumerate(rows):
        reason = missing_input(first.recipe, row)
        if reason:
            predictions[number] = Prediction.blank(first.fields.display(row), first.recipe.output.answer_field, reason)
        else:
            full.append(number)
    for places, batch in chunks(first.fields, [rows[number] for number in full], factor=width, on_progress=on_progress):
        numbers = [full[place] for place in places]
        batch.rows = [drawn_as[number] if drawn_as is not None else first_row + number for number in numbers]
        sources = _sources(bundles, rows, numbers, batch)
        row_options = _for_rows(options, numbers)
        if first.recipe.output.numeric:
            hypotheses = _reconstruct(bundles, sources, batch.rows, row_options, maps=maps)
        elif first.recipe.output.one_step:
            hypotheses = classify(sources, batch.rows, options.n_best, oracle=row_options.oracle, maps=maps)
        else:
            hypotheses = _search(
                bundles, sources, batch.rows, row_options, language_model, maps=maps, replace_unknown=replace_unknown
            )
        for number, best in zip(numbers, hypotheses, strict=True):
            predictions[number] = assemble(
                first, rows[number], best, replace_unknown=replace_unknown, alone=len(bundles) == 1
            )
    return [prediction for prediction in predictions if prediction is not None]


def _search(
    bundles: Sequence[Bundle],
    sources: Sequence[Source],
    rows: Sequence[int],
    options: SearchOptions,
    language_model: SearchLanguageModel | None,
    *,
    maps: bool,
    replace_unknown: bool,
) -> list[list[Hypothesis]]:
    """Texts; a language model that rescores ranks all that the beam has found."""
    packed = [bundle.packed for bundle in bundles]
    if language_model is None:
        return search(sources, rows, options, maps=maps, packed=packed)
    if not options.rescoring:
        return search(sources, rows, options, maps=maps, packed=packed, language_model=language_model.own)
    wide = replace(options, n_best=max(options.n_best, options.beam), consensus=0.0, language_model=None)
    found = search(sources, rows, wide, maps=maps, packed=packed)
    return language_model.rescore(found, _writer(bundles[0]), options, replaced=replace_unknown)


def missing_input(recipe: Recipe, row: Row) -> str:
    """Why a row cannot be predicted; empty where it can."""
    empty = [name for name in recipe.needed if not row[name].strip()]
    if not empty:
        return ""
    return "the input is empty" if len(recipe.inputs) == 1 else f"empty input: {', '.join(empty)}"


def check_ensemble(bundles: Sequence[Bundle]) -> None:
    """Refuse models that cannot be an ensemble: they need the same inputs and the same output vocabulary."""
    first = bundles[0]
    for number, other in enumerate(bundles[1:], start=2):
        numeric = first.recipe.output.numeric
        if other.recipe.output.kind != first.recipe.output.kind and (numeric or other.recipe.output.numeric):
            kinds = f"{first.recipe.output.kind} and {other.recipe.output.kind}"
            raise UserError(f"an ensemble needs models with the same kind of output, got {kinds}")
        if numeric:
            _check_same_size(first.fields, other.fields)
        elif other.fields.output.vocabulary != first.fields.output.vocabulary:
            raise UserError("an ensemble needs models with the same output vocabulary, and these differ")
        if list(other.recipe.inputs) != list(first.recipe.inputs):
            raise UserError(
                f"an ensemble needs models with the same inputs, got {', '.join(first.recipe.inputs)} "
                f"and {', '.join(other.recipe.inputs)}"
            )
        _check_same_values(first.fields, other.fields, number)
        _check_copied_alike(first.recipe, other.recipe)


def _check_same_values(first: Fields, other: Fields, number: int) -> None:
    """Refuse models that cannot read the same values; number: of the other model, the first being 1."""

    def read(field: Modality) -> str:
        if field.settings.file:
            return f"files ({field.settings.kind})"
        return f"{field.required_numbers:,} {field.counted}" if field.required_numbers else field.settings.kind

    for name, own in first.inputs.items():
        theirs = other.inputs[name]
        if (own.settings.file, own.required_numbers) != (theirs.settings.file, theirs.required_numbers):
            raise UserError(
                f"an ensemble needs models that read the same values, and of input '{name}' model 1 reads {read(own)} "
                f"and model {number} {read(theirs)}"
            )


def _check_same_size(first: Fields, other: Fields) -> None:
    """Refuse models whose numbers cannot be averaged."""
    if first.output.size != other.output.size:
        raise UserError(
            f"an ensemble needs models that give as many numbers, got {first.output.size:,} and {other.output.size:,}"
        )


def _check_copied_alike(first: Recipe, other: Recipe) -> None:
    """Words outside the vocabulary are numbered as they appear in an input: all models must split it the same way."""

    def copying(recipe: Recipe) -> dict[str, Any]:
        name = recipe.copied_from
        if name is None:
            return {"decoder.copy_from": "none"}
        how = recipe.inputs[name].model_dump(include={"tokens", "case", "unicode", "max_length"})
        return {"decoder.copy_from": name} | {f"inputs.{name}.{key}": value for key, value in how.items()}

    own, theirs = copying(first), copying(other)
    differing = [f"{key} is {own[key]} and {theirs[key]}" for key in own if key in theirs and own[key] != theirs[key]]
    if differing:
        raise UserError(f"an ensemble needs models that copy the same words, and here {', '.join(differing)}")


def _sources(bundles: Sequence[Bundle], rows: Sequence[Row], numbers: list[int], batch: Batch) -> list[Source]:
    """Each model with its own batch of the inputs (models of an ensemble may have different vocabularies)."""
    chosen = [rows[number] for number in numbers]
    sources: list[Source] = [(bundles[0].network, batch.to(bundles[0].device).inputs)]
    for bundle in bundles[1:]:
        sources.append((bundle.network, bundle.fields.batch(chosen).to(bundle.device).inputs))
    return sources


def _reconstruct(
    bundles: Sequence[Bundle], sources: Sequence[Source], rows: Sequence[int], options: SearchOptions, *, maps: bool
) -> list[list[Hypothesis]]:
    """Outputs that are numbers, on the scale of the table; of an ensemble the mean, with the looks of its first
    model."""
    outputs = [
        reconstruct(source, rows, oracle=options.oracle if number == 0 else None, maps=maps and number == 0)
        for number, source in enumerate(sources)
    ]
    averaged = []
    for hypotheses in zip(*outputs, strict=True):
        numbers = [_restored(bundle, hypothesis) for bundle, hypothesis in zip(bundles, hypotheses, strict=True)]
        averaged.append([replace(hypotheses[0], numbers=np.mean(numbers, axis=0))])
    return averaged


def _restored(bundle: Bundle, hypothesis: Hypothesis) -> NDArray[np.float64]:
    assert hypothesis.numbers is not None
    return bundle.fields.numeric_output.restored(hypothesis.numbers)


def _for_rows(options: SearchOptions, numbers: list[int]) -> SearchOptions:
    """The options with prefixes and oracles of single rows in the order of the batch."""
    chosen: dict[str, Any] = {}
    if isinstance(options.oracle, Sequence):
        chosen["oracle"] = [options.oracle[number] for number in numbers]
    prefixes = [prefix for prefix in options.prefix if not isinstance(prefix, int)]
    if prefixes:
        chosen["prefix"] = [prefixes[number] for number in numbers]
    if options.avoid_prefixes and options.avoided_by_input:
        chosen["avoid_prefixes"] = [options.avoid_prefixes[number] for number in numbers]
    return replace(options, **chosen)


def assemble(
    bundle: Bundle,
    row: Row,
    hypotheses: Sequence[Hypothesis],
    *,
    replace_unknown: bool = False,
    alone: bool = True,
) -> Prediction:
    """A Prediction from the hypotheses of one input, best first; alone: of one model, not of an ensemble."""
    recipe = bundle.recipe
    if recipe.output.numeric:
        looks = looks_of(hypotheses[0], [recipe.output.kind], list(recipe.looked_at), why_no_looks(recipe))
        looks.pictures, looks.beside = drawable_inputs(bundle, row), other_texts(bundle.recipe, row, looks)
        numbers = hypotheses[0].numbers
        assert numbers is not None
        field = bundle.fields.numeric_output
        looks.pictures[OUTPUT] = partial(field.drawn, numbers)
        return Prediction(bundle.fields.display(row), **field.answer(numbers), looks=looks)
    writer = _writer(bundle)
    ranked = [writer.alternative(each, replace_unknown=replace_unknown, alone=alone) for each in hypotheses]
    for other in ranked:
        if other.looks is not None:
            other.looks.pictures = drawable_inputs(bundle, row)
            other.looks.beside = other_texts(bundle.recipe, row, other.looks)
    best = ranked[0]
    return Prediction(
        input=bundle.fields.display(row),
        text=None if bundle.recipe.output.one_step else best.text,
        label=best.text if bundle.recipe.output.one_step else None,
        tokens=best.tokens,
        log_probability=best.log_probability,
        score=best.score,
        looks=best.looks or Looks(),
        alternatives=ranked[1:],
        given=bundle.recipe.attention.conditions,
        tree=writer.tree(hypotheses),
    )


def _writer(bundle: Bundle) -> AnswerWriter:
    recipe, field = bundle.recipe, bundle.fields.output
    return AnswerWriter(
        field.vocabulary,
        field.text_of,
        list(recipe.looked_at),
        heads=recipe.attention.heads,
        hard=recipe.attention.choice == "hard",
        reason="" if recipe.looked_at else why_no_looks(recipe),
    )


def drawable_inputs(bundle: Bundle, row: Row) -> dict[str, Callable[[], Drawable | None]]:
    """What draws the inputs of a row, where they can be drawn."""
    fields = {name: field for name, field in bundle.fields.inputs.items() if field.drawable and name in row}
    return {name: partial(field.to_drawable, row[name]) for name, field in fields.items()}


def other_texts(recipe: Recipe, row: Row, looks: Looks) -> dict[str, str]:
    """The texts of a row that no attention map is about, such as the question about an image."""
    about = {name.partition(".")[0] for name in recipe.looked_at or looks.maps}
    read = {name: row.get(name, "") for name in recipe.texts if about and name not in about}
    return {name: text for name, text in read.items() if text.strip()}


def place_names(places: Places) -> list[str]:
    """The names of the places of the first row: its symbols, or positions where there are none."""
    return places.tokens[0] if places.tokens else grid_names(places.layout.to_dict(int(places.mask.sum())))


def why_no_looks(recipe: Recipe) -> str:
    if not recipe.inputs:
        return "a language model has no input to look at"
    return "this model was trained without attention (attention.score is none): there is nothing to look at"
