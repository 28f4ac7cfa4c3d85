"""Where a model learned something: the training rows nearest to an input, or to a step of an output."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float16, Int64
from numpy import ndarray
from torch import Tensor

from seq2see.data.batches import Batch, Sequences
from seq2see.data.columns import OUTPUT, as_written
from seq2see.data.vocabulary import EOS
from seq2see.errors import UserError, counted
from seq2see.pipeline import row_index
from seq2see.pipeline.bundle import ROW_INDEX, WEIGHTS, Bundle
from seq2see.pipeline.packing import file_stamp
from seq2see.pipeline.predictor import OnProgress, chunks, missing_input
from seq2see.pipeline.row_index import (
    FEWER,
    MAKE,
    MAX_STEPS,
    MAX_SYMBOL,
    MAX_VALUE,
    RowIndex,
    Texts,
    bounds_of,
    is_large,
)
from seq2see.pipeline.scoring import TextOrSymbols, prefix_ids
from seq2see.pipeline.trained_rows import RowHasher
from seq2see.pipeline.vector_cells import Cells, check_library
from seq2see.pipeline.weights import file_digest
from seq2see.search import evaluating

MAX_ROWS = 50_000
"""Rows of an index unless the caller says otherwise."""

Row = Mapping[str, str]


@dataclass(frozen=True)
class NearestRow:
    """A training row near an input or a step of an output.

    input: as predictions name it; output: the row's own; cosine: the similarity, at most 1; step, symbol: the step of
    the row's output that is nearest (from 0) and the symbol written there, where a step was asked for.
    """

    input: str | dict[str, str] | None
    output: str
    cosine: float
    step: int | None = None
    symbol: str | None = None
    symbols: list[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """One JSON object, without what there is not."""
        return {name: value for name, value in asdict(self).items() if value is not None}


# ---------------------------------------------------------------- vectors of a model


def _vectors(bundle: Bundle, batch: Batch, *, steps: bool) -> tuple[Tensor | None, list[Tensor]]:
    """(the joined summaries of the inputs (rows, size), for each row the features of its steps (steps, size))."""
    batch = batch.to(bundle.device)
    names = list(bundle.recipe.inputs)
    memory, each = bundle.network.encode(batch.inputs, len(batch.rows)), []
    if steps:
        step, _ = bundle.network.forward_batch(batch)
        features = step.features if step.features.ndim == 3 else step.features[:, None]
        if isinstance(batch.target, Sequences):
            each = [row[mask] for row, mask in zip(features, batch.target.mask, strict=True)]
        else:
            each = list(features)
    return (torch.cat([memory.summaries[name] for name in names], dim=-1) if names else None), each


def _unit(vectors: Float[Tensor, "rows size"]) -> Float16[ndarray, "rows size"]:
    return np.asarray(torch.nn.functional.normalize(vectors.float(), dim=-1).half().cpu().numpy())


def check_indexable(bundle: Bundle) -> None:
    """Refuse a model without rows: one that reads one contiguous text."""
    if bundle.recipe.data.stream:
        raise UserError("the model was trained on one contiguous text, which has no rows")


def build_index(
    bundle: Bundle, rows: Sequence[Row], *, most: int | None = None, on_progress: OnProgress | None = None
) -> RowIndex:
    """The index of those of the rows that the model was trained on; of more than `most`, a sample at even distances. By
    default MAX_ROWS rows, and no more steps than are compared one by one."""
    check_indexable(bundle)
    if most is not None and most < 1:
        raise UserError(f"rows must be at least 1, got {most}")
    symbolic = not bundle.recipe.output.numeric
    rows = [row for row in _trained(bundle, rows) if not missing_input(bundle.recipe, row)]
    if not rows:
        raise UserError("none of these rows is one that the model was trained on; give the table of its training")
    rows = _sample(bundle, rows, most)
    lengths = [0] * len(rows)
    inputs: list[Any] = [np.zeros(0, np.float16)] * len(rows)
    features: list[Any] = [np.zeros((0, 0), np.float16)] * len(rows)
    symbols: list[list[str]] = [[] for _ in rows]
    with evaluating([bundle.network]):
        for numbers, batch in chunks(bundle.fields, rows, target=symbolic, on_progress=on_progress):
            summaries, each = _vectors(bundle, batch, steps=symbolic)
            for place, number in enumerate(numbers):
                if summaries is not None:
                    inputs[number] = _unit(summaries[place : place + 1])[0]
                if symbolic:
                    features[number] = _unit(each[place][:MAX_STEPS])
                    symbols[number] = _written(bundle, rows[number], batch, place)[:MAX_STEPS]
                    lengths[number] = len(features[number])
    steps = np.concatenate(features) if symbolic else np.zeros((0, 0), np.float16)
    vectors: dict[str, Any] = {"inputs": np.stack(inputs), "steps": steps}
    numbers_of: dict[str, int] = {}
    written = [numbers_of.setdefault(symbol, len(numbers_of)) for row in symbols for symbol in row]
    return RowIndex(
        columns=[*bundle.recipe.inputs],
        values=Texts.of([value for row in rows for value in _values(bundle, row)], longest=MAX_VALUE),
        vocabulary=Texts.of([*numbers_of], longest=MAX_SYMBOL),
        symbols=np.array(written, dtype=np.int32),
        **vectors,
        starts=bounds_of(lengths),
        cells={name: Cells.of(array) for name, array in vectors.items() if is_large(array.shape)},
    )


def _values(bundle: Bundle, row: Row) -> list[str]:
    return [as_written(row, name) for name in (*bundle.recipe.inputs, OUTPUT)]


def _sample(bundle: Bundle, rows: Sequence[Row], most: int | None) -> list[Row]:
    """At most so many of the rows, at even distances, whose steps and texts an index can hold."""
    vectors = row_index.EXACT_VECTORS if most is None else row_index.MOST_VECTORS
    number = min(MAX_ROWS if most is None else most, vectors, len(rows))
    rows = [rows[place] for place in _places(number, len(rows)).tolist()]
    costs = np.array([_cost(bundle, row) for row in rows])
    row_bytes, step_bytes = _vector_bytes(bundle, rows[0])
    costs = np.column_stack([costs, costs @ (step_bytes, 1) + row_bytes])
    limits = (vectors, row_index.MAX_TEXTS, row_index.MAX_BYTES * 0.95)
    number = len(rows)
    while number > 1:
        total = costs[_places(number, len(rows))].sum(0)
        share = (total / limits).max()
        if share <= 1:
            break
        number = max(min(number - 1, int(number / share)), 1)
    places = _places(number, len(rows))
    count = max(number, int(costs[places, 0].sum()))
    if is_large((count, 1)):
        check_library(count, otherwise=FEWER)
    return [rows[place] for place in places.tolist()]


def _places(number: int, count: int) -> Int64[ndarray, " number"]:
    """So many of `count` places, at even distances."""
    return np.arange(number) * count // number


def _cost(bundle: Bundle, row: Row) -> tuple[int, int]:
    """(steps, bytes of texts) that a row takes up in an index."""
    output = bundle.recipe.output
    steps = 1 if output.numeric or output.one_step else bundle.fields.output.read(row[OUTPUT]).length + 1
    size = sum(len(value[:MAX_VALUE].encode(errors="replace")) for value in _values(bundle, row))
    return min(steps, MAX_STEPS), size


def _vector_bytes(bundle: Bundle, row: Row) -> tuple[int, int]:
    """Bytes of the vector and the numbers of (a row's input, one step of its output)."""
    symbolic = not bundle.recipe.output.numeric
    with evaluating([bundle.network]):
        summary, each = _vectors(bundle, bundle.fields.batch([row], target=symbolic), steps=symbolic)
    sizes = [0 if vectors is None else vectors.shape[-1] for vectors in (summary, each[0] if each else None)]
    return 2 * sizes[0] + 8 * (len(bundle.recipe.inputs) + 3), 2 * sizes[1] + 8


def _written(bundle: Bundle, row: Row, batch: Batch, place: int) -> list[str]:
    """The symbols of a row's output: those of a text with `<eos>`, or the label."""
    if not isinstance(batch.target, Sequences):
        return [row[OUTPUT]]
    ids = batch.target.ids[place][batch.target.mask[place]].tolist()
    return bundle.fields.output.vocabulary.decode(ids, bundle.fields.copied_words(row))


def _trained(bundle: Bundle, rows: Sequence[Row]) -> list[Row]:
    """The rows that the model was trained on, as far as that is known: a table may have others, set aside for dev."""
    trained = bundle.trained
    if trained is None:
        return list(rows)
    hasher = RowHasher(bundle.recipe)
    hashes = np.array([hasher(row) for row in rows], dtype=np.uint64).reshape(-1, 2)
    kept = np.isin(hashes[:, 1], trained.pairs) | (hashes[:, 0] > np.uint64(trained.highest))
    return [row for row, keep in zip(rows, kept.tolist(), strict=True) if keep]


# ---------------------------------------------------------------- the index of a model's folder


def save_index(bundle: Bundle, index: RowIndex) -> Path | None:
    """Keep the index with the model, and in its folder if it has one: the path of the file."""
    if bundle.folder is None:
        bundle.row_index = index
        return None
    index = replace(index, weights=file_digest(bundle.folder / WEIGHTS))
    index.save(bundle.folder / ROW_INDEX)
    bundle.row_index = index
    return bundle.folder / ROW_INDEX


def has_index(bundle: Bundle) -> bool:
    """Whether an index was made for the model."""
    return bundle.row_index is not None or (bundle.folder is not None and (bundle.folder / ROW_INDEX).is_file())


_loading = Lock()


def index_of(bundle: Bundle) -> RowIndex:
    """The index of a model, read when it is first needed; a UserError says how to make one.

    A file that was refused is not read again until it, or the weights, are written anew: reading takes a while."""
    check_indexable(bundle)
    index = bundle.row_index
    if index is not None:
        return index
    folder = bundle.folder
    if folder is None or not has_index(bundle):
        raise UserError(f"the model has no index of its training rows; {MAKE}")
    with _loading:
        index = bundle.row_index  # another thread may have read it meanwhile
        if index is not None:
            return index
        stamps = tuple(file_stamp(folder / name) for name in (ROW_INDEX, WEIGHTS))
        if bundle.refused_index is not None and bundle.refused_index[0] == stamps:
            raise UserError(bundle.refused_index[1])
        try:
            weights = file_digest(folder / WEIGHTS)
            index = RowIndex.load(folder / ROW_INDEX, columns=[*bundle.recipe.inputs], weights=weights)
        except UserError as error:  # clients of a server are not told of its folders
            bundle.refused_index = stamps, str(error).replace(f"{folder}{os.sep}", "")
            raise UserError(bundle.refused_index[1]) from None
        bundle.row_index = index
        return index


def nearest_rows(
    bundle: Bundle, row: Row, *, step: int | None = None, target: TextOrSymbols | None = None, k: int = 5
) -> list[NearestRow]:
    """The k training rows nearest to a row's input, or to a step (from 0) of an output, which is then given."""
    numbers: dict[str, object] = {"k": k, "step": 0 if step is None else step}
    for name, value in numbers.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{name} must be a whole number, got {value!r}")
    if not 1 <= k <= row_index.MOST_VECTORS:
        raise UserError(f"k must be a number from 1 to {row_index.MOST_VECTORS:,}, got {k}")
    if step is None and not bundle.recipe.inputs:
        raise UserError("a language model has no input; give a step of its output")
    if step is not None and bundle.recipe.output.numeric:
        raise UserError(f"step: the model gives {bundle.recipe.output.noun}, which has no steps")
    index = index_of(bundle)
    with evaluating([bundle.network]):
        if step is None:
            summary, _ = _vectors(bundle, bundle.fields.batch([row]), steps=False)
            assert summary is not None
            near = index.nearest_inputs(summary[0].float().cpu().numpy(), k)
            return [_nearest(bundle, index, number, cosine) for number, cosine in near]
        features = _features(bundle, row, target)
    if not 0 <= step < len(features):
        raise UserError(f"step {step}: the output has {counted(len(features), 'step')}, counted from 0")
    return [
        replace(
            _nearest(bundle, index, number, cosine),
            step=at,
            symbol=index.output_symbols(number)[at],
            symbols=index.output_symbols(number),
        )
        for number, at, cosine in index.nearest_steps(features[step].float().cpu().numpy(), k)
    ]


def _features(bundle: Bundle, row: Row, target: TextOrSymbols | None) -> Float[Tensor, "steps size"]:
    """What the output layer sees at each step while the target is followed; a label has one step and no target."""
    batch = bundle.fields.batch([row])
    if not bundle.recipe.output.one_step:
        assert target is not None, "an output is followed"
        ids = prefix_ids(bundle, row, target, what="target")
        ids = ids if ids[-1:] == [EOS] else [*ids, EOS]
        batch.target = Sequences(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))
    return _vectors(bundle, batch, steps=True)[1][0]


def _nearest(bundle: Bundle, index: RowIndex, number: int, cosine: float) -> NearestRow:
    values = index.row(number)
    shown = next(iter(values.values())) if len(values) == 1 else values or None
    return NearestRow(shown, index.output(number), cosine)
