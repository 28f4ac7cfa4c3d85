"""Inputs that are rows of numbers, and the noise that a model learns to take away."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seq2see.recipe.basics import Amount, Settings
from seq2see.recipe.encoder_settings import EncoderSettings


class NoiseSettings(Settings):
    """How a vector is spoilt at random while a model is trained; what it should give stays as it is (denoising)."""

    kind: Literal["none", "gaussian", "masking"] = Field(
        "none", description="gaussian: added to every number; masking: some become 0 (standardised: their mean)"
    )
    amount: Amount = Field(
        0.0, description="gaussian: its deviation (standardised: of theirs); masking: the share of the numbers, below 1"
    )


class VectorInput(Settings):
    """One input that is a row of numbers, always as many: how many is learned from the first row."""

    kind: Literal["vector"] = Field(
        "vector", description="what the column holds: numbers between spaces or commas, or a list of numbers"
    )
    column: str | None = Field(None, description="column of the table; not given: the input's name")
    standardise: bool = Field(True, description="read (x - mean) / deviation, of the rows trained on")
    noise: NoiseSettings = NoiseSettings()
    encoder: EncoderSettings | None = Field(None, description="how its encoder differs from the recipe's `encoder`")
