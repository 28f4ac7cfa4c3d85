"""From inputs to Predictions: one pipeline behind Python, the command line and the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from seq2see.data.batches import SOS, UNK, Batch
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import UserError
from seq2see.looks import Alternative, Looks, Prediction, Shown, Token
from seq2see.memory import Layout
from seq2see.modalities.video import named
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.fields import Row as ReadRow
from seq2see.pipeline.numeric_outputs import check_as_many, given_back, reconstructed
from seq2see.recipe import Recipe
from seq2see.search import Hypothesis, SearchOptions, Source, classify, search

# ---------------- Rows cut into batches for prediction

BATCH_TOKENS = 4000
BATCH_ROWS = 256

Told = Callable[[int, int], None]
"""Told how many are done, of how many."""


def chunks(
    fields: Fields,
    rows: Sequence[Mapping[str, str]],
    *,
    target: bool = False,
    factor: int = 1,
    told: Told | None = None,
) -> Iterator[tuple[list[int], Batch]]:
    """(numbers of the rows, their batch), longest first; factor: hypotheses per row (beam), which share the budget."""
    rows = [row if isinstance(row, ReadRow) else ReadRow(row) for row in rows]
    lengths = [sum(example.length for example in fields.read(row).values()) + 1 for row in rows]
    order = sorted(range(len(rows)), key=lambda number: -lengths[number])
    start = 0
    while start < len(order):
        longest = lengths[order[start]]
        size = max(1, min(BATCH_ROWS, BATCH_TOKENS // max(longest, 1) // max(factor // 2, 1)))
        numbers = order[start : start + size]
        yield numbers, fields.batch([rows[number] for number in numbers], target=target)
        start += size
        if told is not None:
            told(min(start, len(order)), len(order))


# ---------------- How long an output a model can write at all


def check_reach(recipe: Recipe, length: int, said: str) -> None:
    """Refuse, before anything is written, an output of so many symbols (`<eos>` counted) that positions do not reach.

    said: what asks for it, as the user knows it.
    """
    decoder = recipe.decoder
    if recipe.output.one_step or decoder.kind != "transformer" or decoder.positions != "learned":
        return
    if length > decoder.longest:
        most = decoder.longest
        raise UserError(f"{said}: the model has learned {most} positions and none behind them; allowed: at most {most}")


Row = Mapping[str, str]


def options_of(recipe: Recipe, **given: Any) -> SearchOptions:
    """The recipe's search settings with what the caller gives instead (None: not given).

    A beam as wide as n_best where only n_best is given; a language model, which nothing asks, speaks by chance.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    n_best = int(asked.get("n_best", 1))
    if recipe.output.one_step:
        asked = {name: value for name, value in asked.items() if (name, value) != ("n_best", 1)}
        useless = [name for name in asked if name != "oracle" and name not in ranked(recipe)]
        if useless:
            raise UserError(f"{', '.join(useless)}: {unsearched(recipe)}")
        return SearchOptions(sample=True, **asked)
    if not recipe.inputs and "beam" not in asked:
        asked.setdefault("sample", True)
    settings = recipe.search.model_dump(exclude={"replace_unknown"}) | asked
    if "beam" not in asked:
        settings["beam"] = 1 if settings.get("sample") else max(settings["beam"], n_best)
    return SearchOptions(**settings)


def ranked(recipe: Recipe) -> tuple[str, ...]:
    """Options that mean something though there is no search: the classes of a label are all told in their order."""
    return () if recipe.output.numeric else ("n_best",)


def unsearched(recipe: Recipe) -> str:
    """Why options of a search mean nothing to this recipe's model."""
    if recipe.output.numeric:
        return f"{recipe.output.said} is not searched for: it is given whole, one for each input"
    return f"{recipe.output.said} is not searched for: every class is weighed, and n_best tells the likeliest ones"


def answer_options(
    recipe: Recipe, *, beam: int | None = None, n_best: int | None = None, sample: bool | None = None, **given: Any
) -> SearchOptions:
    """The same for whoever wants to see all that was found: without n_best, every hypothesis of the beam is told."""
    most = given.get("max_length")
    if isinstance(most, int):
        check_reach(recipe, most, f"max_length {most}")
    if n_best is None and not sample and not recipe.output.one_step and recipe.inputs:
        n_best = max(beam, 1) if beam is not None else recipe.search.beam
    return options_of(recipe, beam=beam, n_best=n_best, sample=sample, **given)


@torch.inference_mode()
def predict(
    bundles: Sequence[Bundle],
    rows: Sequence[Row],
    options: SearchOptions,
    *,
    replace_unknown: bool | None = None,
    first_row: int = 0,
    drawn_as: Sequence[int] | None = None,
    told: Told | None = None,
    maps: bool = False,
) -> list[Prediction]:
    """One prediction per row, in their order; several bundles are an ensemble.

    first_row: the number of the first of these rows in the table they are a part of. What is drawn for a row depends
    on its number, so that a table in parts is drawn like the whole; drawn_as: these numbers one by one, for rows that
    come from several tables. maps: looks also tell heads and layers apart, for those who want to see them: it takes
    memory, and measuring needs none of it.

    A row in which an input is empty that the recipe needs gets a blank prediction with the reason.
    """
    first = bundles[0]
    check_ensemble(bundles)
    replace_unknown = first.recipe.search.replace_unknown if replace_unknown is None else replace_unknown
    found: list[Prediction | None] = [None] * len(rows)
    rows = [row if isinstance(row, ReadRow) else ReadRow(row) for row in rows]
    width = max(options.beam, options.n_best)
    full = []
    for number, row in enumerate(rows):
        reason = lacking(first.recipe, row)
        if reason:
            found[number] = Prediction.blank(shown_input(row), first.recipe.output.kind, reason)
        else:
            full.append(number)
    for places, batch in chunks(first.fields, [rows[number] for number in full], factor=width, told=told):
        numbers = [full[place] for place in places]
        batch.rows = [drawn_as[number] if drawn_as is not None else first_row + number for number in numbers]
        readings = _readings(bundles, rows, numbers, batch)
        its = _for_rows(options, numbers)
        if first.recipe.output.numeric:
            hypotheses = reconstructed(bundles, readings, batch.rows, its, maps=maps)
        elif first.recipe.output.one_step:
            hypotheses = classify(readings, batch.rows, options.n_best, oracle=its.oracle, maps=maps)
        else:
            hypotheses = search(readings, batch.rows, its, maps=maps)
        for number, best in zip(numbers, hypotheses, strict=True):
            found[number] = assemble(
                first, rows[number], best, replace_unknown=replace_unknown, alone=len(bundles) == 1
            )
    return [one for one in found if one is not None]


def lacking(recipe: Recipe, row: Row) -> str:
    """Why a row cannot be answered; nothing where it can."""
    empty = [name for name in recipe.needed if not row[name].strip()]
    if not empty:
        return ""
    return "the input is empty" if len(recipe.inputs) == 1 else f"empty input: {', '.join(empty)}"


def check_ensemble(bundles: Sequence[Bundle]) -> None:
    """Models can speak together only in one vocabulary."""
    first = bundles[0]
    for other in bundles[1:]:
        numeric = first.recipe.output.numeric
        if other.recipe.output.kind != first.recipe.output.kind and (numeric or other.recipe.output.numeric):
            kinds = f"{first.recipe.output.kind} and {other.recipe.output.kind}"
            raise UserError(f"an ensemble needs models with the same kind of output, got {kinds}")
        if numeric:
            check_as_many(first.fields, other.fields)
        elif other.fields.output.vocabulary != first.fields.output.vocabulary:
            raise UserError("an ensemble needs models with the same output vocabulary, and these differ")
        if list(other.recipe.inputs) != list(first.recipe.inputs):
            raise UserError(
                f"an ensemble needs models with the same inputs, got {', '.join(first.recipe.inputs)} "
                f"and {', '.join(other.recipe.inputs)}"
            )
        _check_copied_alike(first.recipe, other.recipe)


def _check_copied_alike(first: Recipe, other: Recipe) -> None:
    """Words beyond the vocabulary are counted as they appear in an input: models must see the same ones in it."""

    def seen(recipe: Recipe) -> dict[str, Any]:
        name = recipe.copied_from
        if name is None:
            return {"decoder.copy_from": "none"}
        how = recipe.inputs[name].model_dump(include={"tokens", "case", "unicode", "max_length"})
        return {"decoder.copy_from": name} | {f"inputs.{name}.{key}": value for key, value in how.items()}

    one, two = seen(first), seen(other)
    differing = [f"{key} is {one[key]} and {two[key]}" for key in one if key in two and one[key] != two[key]]
    if differing:
        raise UserError(f"an ensemble needs models that copy the same words, and here {', '.join(differing)}")


def _readings(bundles: Sequence[Bundle], rows: Sequence[Row], numbers: list[int], batch: Batch) -> list[Source]:
    """Each model with the inputs as it reads them (models of an ensemble may have vocabularies of their own)."""
    chosen = [rows[number] for number in numbers]
    readings: list[Source] = [(bundles[0].network, batch.to(bundles[0].device).inputs)]
    for bundle in bundles[1:]:
        readings.append((bundle.network, bundle.fields.batch(chosen).to(bundle.device).inputs))
    return readings


def _for_rows(options: SearchOptions, numbers: list[int]) -> SearchOptions:
    """Prefixes and oracles given per row, in the order of the batch."""
    oracle = options.oracle
    if isinstance(oracle, Sequence):
        oracle = [oracle[number] for number in numbers]
    rows = [prefix for prefix in options.prefix if not isinstance(prefix, int)]
    if rows:
        return replace(options, prefix=[rows[number] for number in numbers], oracle=oracle)
    return replace(options, oracle=oracle)


def assemble(
    bundle: Bundle,
    row: Row,
    hypotheses: Sequence[Hypothesis],
    *,
    replace_unknown: bool = False,
    alone: bool = True,
) -> Prediction:
    """A Prediction from the hypotheses of one input, best first; alone: one model said them, not several together."""
    if bundle.recipe.output.numeric:
        looks = looks_of(bundle, hypotheses[0], [bundle.recipe.output.kind])
        looks.pictures, looks.beside = shown_in(bundle, row), read_beside(bundle.recipe, row, looks)
        return given_back(bundle.fields, shown_input(row), hypotheses[0], looks)
    made = [_said(bundle, row, one, replace_unknown) for one in hypotheses]
    if alone and bundle.recipe.attention.choice == "hard":
        for other in made:
            if other.looks is not None:
                other.looks.chosen = _chosen(bundle.recipe, other.looks)
    best = made[0]
    return Prediction(
        input=shown_input(row),
        text=None if bundle.recipe.output.one_step else best.text,
        label=best.text if bundle.recipe.output.one_step else None,
        tokens=best.tokens,
        log_probability=best.log_probability,
        score=best.score,
        looks=best.looks or Looks(),
        alternatives=made[1:],
        given=bundle.recipe.attention.conditions,
    )


def shown_input(row: Row) -> str | dict[str, str] | None:
    """The one input itself, several by name."""
    shown = {name: named(value) for name, value in row.items()}
    return next(iter(shown.values())) if len(shown) == 1 else shown or None


def _said(bundle: Bundle, row: Row, one: Hypothesis, replace_unknown: bool) -> Alternative:
    vocabulary = bundle.fields.output.vocabulary
    symbols = vocabulary.decode(one.ids, one.words)
    looks = looks_of(bundle, one, symbols)
    looks.pictures, looks.beside = shown_in(bundle, row), read_beside(bundle.recipe, row, looks)
    if replace_unknown and looks.maps and looks.name in looks.inputs and looks.name not in looks.rows:
        where = looks.weights
        for t, i in enumerate(one.ids):
            if i == UNK and where.shape[1]:
                symbols[t] = looks.inputs[looks.name][int(np.argmax(where[t]))]
        looks.outputs = symbols
    tokens = [
        Token(symbol, float(np.exp(log_prob)), [(vocabulary.decode([i], one.words)[0], p) for i, p in others])
        for symbol, log_prob, others in zip(symbols, one.log_probs, one.runners_up, strict=True)
    ]
    looks.probabilities = [token.probability for token in tokens]
    text = bundle.fields.output.text_of(symbols, one.ids)
    return Alternative(text, one.score, one.log_probability, tokens, looks)


def looks_of(bundle: Bundle, one: Hypothesis, outputs: list[str]) -> Looks:
    """Where the model looked for this hypothesis, as a record that needs no model."""
    if not (bundle.recipe.looked_at or one.inner or one.inward):
        return Looks(outputs=outputs, reason=why_no_looks(bundle.recipe))
    looks = Looks({**one.looks, **one.maps}, dict(one.places), list(outputs), dict(one.layouts))
    if not (looks.maps or one.inner or one.inward):
        looks.reason = "the models of this ensemble divide the input into different places: looks have no mean"
    looks.default = next(iter(bundle.recipe.looked_at), None)
    for name, layout in looks.layouts.items():
        looks.inputs.setdefault(name, places_named(layout))
    for name, inner in one.inner.items():
        told = f"{name} (encoder)" if name in looks.maps else name
        looks.maps[told], looks.layouts[told] = inner.weights, inner.layout
        looks.inputs[told] = inner.inputs or [str(place + 1) for place in range(inner.weights.shape[-1])]
        looks.rows[told] = inner.asking or [str(row + 1) for row in range(inner.weights.shape[-2])]
    for name, weights in one.inward.items():
        read = [SPECIALS[SOS], *outputs[:-1]]
        looks.maps[name], looks.rows[name], looks.inputs[name] = weights, read, read
        looks.layouts[name] = Layout("tokens").to_dict(len(read))
    return looks


def _chosen(recipe: Recipe, looks: Looks) -> dict[str, list[int]]:
    """The place each step went by: the likeliest. Of several heads each chose for itself: no one place is theirs."""
    own = {
        name for name in looks.maps if any(name == one or name.startswith(f"{one}.layer-") for one in recipe.looked_at)
    }
    flat = {name: looks.maps[name] for name in looks.maps if name in own and looks.maps[name].ndim == 2}
    if recipe.attention.heads > 1:
        return {}
    return {name: weights.argmax(1).tolist() for name, weights in flat.items() if weights.shape[1]}


def shown_in(bundle: Bundle, row: Row) -> dict[str, Callable[[], Shown | None]]:
    """What draws the inputs of a row, where they can be drawn."""
    fields = {name: field for name, field in bundle.fields.inputs.items() if field.drawable and name in row}
    return {name: partial(field.shown, row[name]) for name, field in fields.items()}


def read_beside(recipe: Recipe, row: Row, looks: Looks) -> dict[str, str]:
    """The texts of a row that no map is about: without the question, looks at a picture say little."""
    about = {name.partition(".")[0] for name in recipe.looked_at or looks.maps}
    read = {name: row.get(name, "") for name in recipe.texts if about and name not in about}
    return {name: text for name, text in read.items() if text.strip()}


def places_named(layout: Mapping[str, Any]) -> list[str]:
    """Names for places that are no symbols: cells by row and column, others by number, from 1.

    >>> places_named({"kind": "grid", "shape": [2, 2]}), places_named({"kind": "frames", "shape": [2]})
    (['1,1', '1,2', '2,1', '2,2'], ['1', '2'])
    """
    ranges = (range(1, size + 1) for size in layout["shape"])
    return [",".join(map(str, place)) for place in product(*ranges)]


def why_no_looks(recipe: Recipe) -> str:
    if not recipe.inputs:
        return "a language model has no input to look at"
    return "this model was trained without attention (attention.score is none): there is nothing to look at"
