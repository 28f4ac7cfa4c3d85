"""An autoencoder beside principal components of the same code size, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from seq2see.data.columns import OUTPUT
from seq2see.errors import UserError
from seq2see.evaluation.pca import Pca, principal_angles
from seq2see.modalities.base import NumericOutput
from seq2see.modalities.vector import written
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.numeric_outputs import plain_numbers
from seq2see.pipeline.predictor import options_of, predict
from seq2see.recipe import Recipe
from seq2see.recipe.resolve import hidden_of, output_of
from seq2see.settings.encoders import DenseEncoderSettings

Matrix = Float[np.ndarray, "rows numbers"]
Row = Mapping[str, str]


@dataclass(frozen=True)
class BesidePca:
    """size: numbers of the code; given, made, principal: rows as the table has them, as the autoencoder and as PCA
    give them back; mean (numbers,): of the rows that PCA was fitted to; shape: of a row that is a picture;
    angles: degrees between what the autoencoder can write and the principal subspace, where it is linear; why_not: why
    there are none elsewhere."""

    size: int
    given: Matrix
    made: Matrix
    principal: Matrix
    mean: Float[np.ndarray, " numbers"]
    shape: tuple[int, ...] | None = None
    angles: tuple[float, ...] = ()
    why_not: str = ""

    def errors(self) -> dict[str, Float[np.ndarray, " rows"]]:
        """Mean squared error of each row, by who made it; the mean stands for a code of no numbers."""
        told = {"autoencoder": self.made, "PCA": self.principal, "the mean (no code)": self.mean[None]}
        return {name: np.square(made - self.given).mean(1) for name, made in told.items()}


def check_autoencoder(recipe: Recipe) -> str:
    """The name of the input that is to be given back, or an error that says why there is none."""
    if not recipe.output.numeric:
        raise UserError(f"PCA is of numbers, and this model gives {recipe.output.said}")
    given_back = recipe.output.column or OUTPUT
    if len(recipe.inputs) != 1 or next((one.column or name) for name, one in recipe.inputs.items()) != given_back:
        read = ", ".join(one.column or name for name, one in recipe.inputs.items())
        raise UserError(f"no autoencoder: it reads {read} and gives {given_back}; PCA gives back what it reads")
    return next(iter(recipe.inputs))


def as_learned(field: NumericOutput, values: Sequence[str]) -> Matrix:
    """Rows as the loss sees them (standardised, where the recipe says so): there PCA is what a linear code comes to."""
    return np.asarray(field.batch(values).values.double().numpy())


def restored(field: NumericOutput, principal: Pca, rows: Matrix, size: int) -> Matrix:
    """Rows, as learned, through so many components and back, as plain numbers."""
    return field.restored(principal.reconstruct(rows, size))


def beside_pca(bundle: Bundle, fitted: Sequence[Row], rows: Sequence[Row]) -> BesidePca:
    """fitted: the rows whose components are taken, best those that the model learned from; rows: to be given back."""
    name = check_autoencoder(bundle.recipe)
    field = bundle.fields.numeric_output
    size = bundle.network.encoder(name).summary_size
    principal = Pca.fit(as_learned(field, [row[OUTPUT] for row in fitted]))
    if size > len(principal.mean):
        raise UserError(
            f"the code has {size:,} numbers and the rows have {len(principal.mean):,}: PCA with as many gives back all"
        )
    values = [row[OUTPUT] for row in rows]
    angles, why_not = _angles(bundle, principal, fitted, size)
    return BesidePca(
        size,
        given=np.stack([field.numbers(value) for value in values]),
        made=_given_back(bundle, rows),
        principal=restored(field, principal, as_learned(field, values), size),
        mean=field.restored(principal.mean[None])[0],
        shape=getattr(field.settings, "shape", None),
        angles=angles,
        why_not=why_not,
    )


def _given_back(bundle: Bundle, rows: Sequence[Row]) -> Matrix:
    inputs = [{name: row[name] for name in bundle.recipe.inputs} for row in rows]
    return np.stack([plain_numbers(one) for one in predict([bundle], inputs, options_of(bundle.recipe))])


def _angles(bundle: Bundle, principal: Pca, rows: Sequence[Row], size: int) -> tuple[tuple[float, ...], str]:
    """What a linear autoencoder writes lies in a subspace of as many dimensions as its code has: the first so many
    directions of what it gives back span it."""
    field = bundle.fields.numeric_output
    why_not = _not_linear(bundle.recipe)
    if why_not or bundle.recipe.output.file:
        return (), why_not or "it gives pictures, whose pixels are bounded"
    made = Pca.fit(as_learned(field, [written(row) for row in _given_back(bundle, rows)]))
    found = principal_angles(made.components[:size], principal.components[:size])
    return tuple(found.tolist()), ""


def _not_linear(recipe: Recipe) -> str:
    """Why a model is not linear; nothing where it is."""
    encoder = recipe.encoder_of(next(iter(recipe.inputs)))
    if not isinstance(encoder, DenseEncoderSettings):
        return f"its encoder is {encoder.kind}"
    if encoder.hidden or hidden_of(recipe):
        return "it has hidden layers"
    if encoder.code != "linear" or output_of(recipe) != "linear":
        return f"its code is {encoder.code} and its output {output_of(recipe)}"
    return ""
