"""Reconstruction error of autoencoders against the size of their code, beside PCA."""

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
from seq2see.pipeline.vectors import check_autoencoder, model_scale, reconstruct
from seq2see.recipe import Recipe, load_recipe
from seq2see.training.comparing import compare
from seq2see.training.dataset import read_corpus
from seq2see.training.reports import Listener

SIZE, METRIC = "encoder.size", "mse"


@dataclass(frozen=True)
class CodeSize:
    """The mean squared error of one variant (or of PCA) with a code of that size, on the dev rows; low, high: the
    interval over seeds, where there are several."""

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
    base = load_recipe(recipe, overrides=[*overrides, f"{SIZE}={sizes[0]}"])
    check_autoencoder(base)
    if METRIC not in base.evaluation.metrics and base.evaluation.metrics:
        raise UserError(f"evaluation.metrics: {METRIC} is the metric that codes are compared by, and it is missing")
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
    errors = _pca_errors(base, data, sizes=sizes, dev=dev, columns=columns)
    for contender in ranking.contenders:
        others = [f"{key}={value}" for key, value in contender.changes.items() if key != SIZE]
        interval = contender.interval(METRIC)
        bounds = (None, None) if interval is None else (interval.low, interval.high)
        name = ", ".join(others) or "autoencoder"
        errors.append(CodeSize(name, int(contender.changes[SIZE]), contender.mean(METRIC), *bounds))
    return errors


def _pca_errors(
    recipe: Recipe, data: str | Path, *, sizes: Sequence[int], dev: str | Path | None, columns: Sequence[str] | None
) -> list[CodeSize]:
    """The errors of PCA, fitted to the training rows and measured on the dev rows."""
    corpus = read_corpus(recipe, data, dev=dev, columns=columns)
    field, train = corpus.fields.numeric_output, corpus.train
    assert isinstance(train, Dataset)
    targets = field.pad(train.stores[OUTPUT], np.arange(len(train))).values
    pca = Pca.fit(np.asarray(targets.double().numpy()))
    values = [row[OUTPUT] for row in corpus.dev]
    true, scaled = np.stack([field.numbers(value) for value in values]), model_scale(field, values)
    possible = [size for size in sizes if size <= len(pca.mean)]
    return [
        CodeSize("PCA", size, float(np.square(reconstruct(field, pca, scaled, size) - true).mean()))
        for size in possible
    ]
