"""Vectors of inputs: nearest neighbours, a map by PCA, and an autoencoder beside PCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch.nn.functional import normalize

from seq2see.data.columns import OUTPUT
from seq2see.decoders.reconstruction import hidden_sizes, output_activation
from seq2see.encoders.dense import DenseEncoderSettings
from seq2see.errors import UserError
from seq2see.evaluation.pca import Pca, principal_angles
from seq2see.modalities.base import NumericOutput
from seq2see.modalities.vector import written
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.predictor import options_of, predict
from seq2see.recipe import Recipe

BLOCK_ROWS = 1024
"""Rows compared with all others at once, so that memory does not grow with the square of their number."""


def nearest_others(vectors: Sequence[Sequence[float]], k: int) -> list[list[tuple[int, float]]]:
    """The k nearest neighbours of each vector by cosine, as (index, cosine), nearest first.

    >>> nearest_others([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 1)
    [[(2, 0.70711)], [(2, 0.70711)], [(0, 0.70711)]]
    """
    if k < 1:
        raise UserError(f"neighbours must be at least 1, got {k}")
    if len(vectors) < 2:
        raise UserError("neighbours are searched among the given inputs: give at least two")
    unit = normalize(torch.tensor(vectors, dtype=torch.float64), dim=-1)
    neighbours: list[list[tuple[int, float]]] = []
    for start in range(0, len(unit), BLOCK_ROWS):
        cosines = unit[start : start + BLOCK_ROWS] @ unit.T
        rows = torch.arange(len(cosines))
        cosines[rows, start + rows] = -torch.inf
        best = cosines.topk(min(k, len(unit) - 1), dim=1)
        for numbers, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            neighbours.append(list(zip(numbers, values, strict=True)))
    return neighbours


@dataclass(frozen=True)
class VectorMap:
    """A map of vectors in two dimensions.

    points (inputs, 2); shares of the variance that each axis explains; neighbours: the nearest neighbours of each input
    by the cosine of the whole vectors, as (index, cosine), which may differ from those on the map.
    """

    points: Float[np.ndarray, "inputs 2"]
    shares: tuple[float, float]
    neighbours: list[list[tuple[int, float]]]


def vector_map(vectors: Sequence[Sequence[float]], *, neighbours: int = 0) -> VectorMap:
    """The map of at least three vectors by PCA; neighbours: how many nearest ones of each to find (0: none)."""
    if len(vectors) < 3:
        raise UserError(f"a map needs three different inputs or more, got {len(vectors)}")
    rows = np.asarray(vectors, dtype=np.float64)
    pca = Pca.fit(rows)
    first, second = [*pca.shares.tolist(), 0.0][:2]
    near = nearest_others(vectors, neighbours) if neighbours else [[] for _ in vectors]
    return VectorMap(pca.transform(rows, 2), (first, second), near)


# ---------------------------------------------------------------- an autoencoder beside PCA

Matrix = Float[np.ndarray, "rows numbers"]
Row = Mapping[str, str]


@dataclass(frozen=True)
class PcaComparison:
    """The reconstructions of an autoencoder and of PCA.

    size: of the code; rows, reconstructed, principal (rows, numbers): the rows of the table, and their reconstructions
    by the autoencoder and by PCA; mean (numbers,): of the rows that PCA was fitted to; shape: of a row that is an
    image; angles: degrees between the subspace of a linear autoencoder's outputs and the principal subspace; why_not:
    why there are none.
    """

    size: int
    rows: Matrix
    reconstructed: Matrix
    principal: Matrix
    mean: Float[np.ndarray, " numbers"]
    shape: tuple[int, ...] | None = None
    angles: tuple[float, ...] = ()
    why_not: str = ""

    def errors(self) -> dict[str, Float[np.ndarray, " rows"]]:
        """The mean squared error of each row by method; the mean stands for a code of no numbers."""
        outputs = {"autoencoder": self.reconstructed, "PCA": self.principal, "the mean (no code)": self.mean[None]}
        return {name: np.square(output - self.rows).mean(1) for name, output in outputs.items()}


def check_autoencoder(recipe: Recipe) -> str:
    """The name of the input that is reconstructed; a UserError where the recipe is no autoencoder."""
    if not recipe.output.numeric:
        raise UserError(f"PCA needs numbers, and this model gives {recipe.output.noun}")
    target = recipe.output.column or OUTPUT
    columns = [settings.column or name for name, settings in recipe.inputs.items()]
    if columns != [target]:
        raise UserError(
            f"no autoencoder: it reads {', '.join(columns)} and gives {target}; PCA gives back what it reads"
        )
    return next(iter(recipe.inputs))


def model_scale(field: NumericOutput, values: Sequence[str]) -> Matrix:
    """Rows as the loss sees them (standardised, where the recipe says so), where PCA is the best linear code."""
    return np.asarray(field.batch(values).values.double().numpy())


def reconstruct(field: NumericOutput, pca: Pca, rows: Matrix, size: int) -> Matrix:
    """Rows on the model's scale, reconstructed by so many components, on the scale of the table."""
    return field.restored(pca.reconstruct(rows, size))


def compare_with_pca(bundle: Bundle, fitted: Sequence[Row], rows: Sequence[Row]) -> PcaComparison:
    """Compare the reconstructions of an autoencoder and of PCA. fitted: the rows that PCA is fitted to, best the
    training rows; rows: to be reconstructed."""
    name = check_autoencoder(bundle.recipe)
    field = bundle.fields.numeric_output
    size = bundle.network.encoder(name).summary_size
    pca = Pca.fit(model_scale(field, [row[OUTPUT] for row in fitted]))
    if size > len(pca.mean):
        raise UserError(
            f"the code has {size:,} numbers and the rows have {len(pca.mean):,}: PCA with as many gives back all"
        )
    values = [row[OUTPUT] for row in rows]
    angles, why_not = _angles(bundle, pca, fitted, size)
    return PcaComparison(
        size,
        rows=np.stack([field.numbers(value) for value in values]),
        reconstructed=_reconstructions(bundle, rows),
        principal=reconstruct(field, pca, model_scale(field, values), size),
        mean=field.restored(pca.mean[None])[0],
        shape=getattr(field.settings, "shape", None),
        angles=angles,
        why_not=why_not,
    )


def _reconstructions(bundle: Bundle, rows: Sequence[Row]) -> Matrix:
    inputs = [{name: row[name] for name in bundle.recipe.inputs} for row in rows]
    predictions = predict([bundle], inputs, options_of(bundle.recipe))
    return np.stack([bundle.fields.numeric_output.answered(prediction) for prediction in predictions])


def _angles(bundle: Bundle, pca: Pca, rows: Sequence[Row], size: int) -> tuple[tuple[float, ...], str]:
    """(principal angles, why there are none): the outputs of a linear autoencoder lie in a subspace of as many
    dimensions as its code has, which their first components span."""
    field = bundle.fields.numeric_output
    why_not = _not_linear(bundle.recipe)
    if why_not or bundle.recipe.output.file:
        return (), why_not or "it gives pictures, whose pixels are bounded"
    own = Pca.fit(model_scale(field, [written(row) for row in _reconstructions(bundle, rows)]))
    angles = principal_angles(own.components[:size], pca.components[:size])
    return tuple(angles.tolist()), ""


def _not_linear(recipe: Recipe) -> str:
    """Why a model is not linear; empty where it is."""
    encoder = recipe.encoder_of(next(iter(recipe.inputs)))
    if not isinstance(encoder, DenseEncoderSettings):
        return f"its encoder is {encoder.kind}"
    if encoder.hidden or hidden_sizes(recipe):
        return "it has hidden layers"
    if encoder.code != "linear" or output_activation(recipe) != "linear":
        return f"its code is {encoder.code} and its output {output_activation(recipe)}"
    return ""
