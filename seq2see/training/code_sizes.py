"""What a code of so many numbers can hold: the error of autoencoders against the size of their code, beside PCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.evaluation.pca import Pca
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.pca import as_learned, check_autoencoder, restored
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.comparing import compare
from seq2see.training.dataset import read_corpus
from seq2see.training.reports import Listener

SIZE, METRIC = "encoder.size", "mse"


@dataclass(frozen=True)
class CodeSize:
    """The mean squared error of one variant ("PCA" is one) with a code of so many numbers, on the dev rows; low, high:
    the interval over seeds, where there are several."""

    model: str
    size: int
    error: float
    low: float | None = None
    high: float | None = None


def code_sizes(
    recipe: str | Path | Mapping[str, Any] | Recipe,
    data: str | Path,
    *,
    sizes: Sequence[int],
    vary: Sequence[str] = (),
    dev: str | Path | None = None,
    columns: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    updates: int | None = None,
    seeds: int = 1,
    out: str | Path | None = None,
    listeners: Sequence[Listener] | None = None,
) -> list[CodeSize]:
    """Train the recipe with each size (and each variant, as `compare` takes them); finished runs are kept in `out`."""
    made = load_recipe(recipe, overrides=[*overrides, f"{SIZE}={sizes[0]}"])
    check_autoencoder(made)
    if METRIC not in made.evaluation.metrics and made.evaluation.metrics:
        raise UserError(f"evaluation.metrics: {METRIC} is what codes are compared by, and it is not among them")
    ranking = compare(
        recipe,
        data,
        vary=[*vary, f"{SIZE}={','.join(map(str, sizes))}"],
        dev=dev,
        columns=columns,
        overrides=overrides,
        updates=updates,
        seeds=seeds,
        out=out,
        listeners=listeners,
    )
    found = _principal(made, data, sizes=sizes, dev=dev, columns=columns)
    for one in ranking.contenders:
        others = [f"{key}={value}" for key, value in one.changes.items() if key != SIZE]
        interval = one.interval(METRIC)
        bounds = (None, None) if interval is None else (interval.low, interval.high)
        name = ", ".join(others) or "autoencoder"
        found.append(CodeSize(name, int(one.changes[SIZE]), one.mean(METRIC), *bounds))
    return found


def _principal(
    recipe: Recipe, data: str | Path, *, sizes: Sequence[int], dev: str | Path | None, columns: Sequence[str] | None
) -> list[CodeSize]:
    """PCA fitted to the rows that models learn from, measured on those that they are measured on."""
    corpus = read_corpus(recipe, data, dev=dev, columns=columns)
    field, train = corpus.fields.numeric_output, corpus.train
    assert isinstance(train, Dataset)
    values = field.pad(train.stores[OUTPUT], np.arange(len(train))).values
    principal = Pca.fit(np.asarray(values.double().numpy()))
    told = [row[OUTPUT] for row in corpus.dev]
    given, learned = np.stack([field.numbers(value) for value in told]), as_learned(field, told)
    fitting = [size for size in sizes if size <= len(principal.mean)]
    return [
        CodeSize("PCA", size, float(np.square(restored(field, principal, learned, size) - given).mean()))
        for size in fitting
    ]
