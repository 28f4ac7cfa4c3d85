"""Settings of encoders that would be accepted and do nothing."""

from __future__ import annotations

from seq2see.recipe.changed import changed, idle_cell, idle_embedding
from seq2see.recipe.schema import Recipe
from seq2see.recipe.units import idle_units
from seq2see.recipe.unused import unused_encoder
from seq2see.settings.base import CellSettings
from seq2see.settings.encoders import (
    ConvolutionalEncoderSettings,
    DeepSetsEncoderSettings,
    EncoderSettings,
    HierarchicalEncoderSettings,
    OwnEncoderSettings,
    TransformerEncoderSettings,
    embedding_of,
)
from seq2see.settings.plugins import unknown_options


def idle_encoders(recipe: Recipe) -> dict[str, str]:
    given = {f"inputs.{name}.encoder": one.encoder for name, one in recipe.inputs.items() if one.encoder is not None}
    found: dict[str, str] = {}
    if any(recipe.encoder_path(name) == "encoder" for name in recipe.inputs):
        given["encoder"] = recipe.encoder
    else:
        found = unused_encoder(recipe.encoder, given)
    for path, settings in given.items():
        found |= _encoder(path, settings) | idle_units(recipe, path, settings)
        if isinstance(settings, HierarchicalEncoderSettings | DeepSetsEncoderSettings):
            found |= _pooling(recipe, path, settings)
    return found


def _pooling(
    recipe: Recipe, path: str, settings: HierarchicalEncoderSettings | DeepSetsEncoderSettings
) -> dict[str, str]:
    read = [name for name in recipe.inputs if recipe.encoder_path(name) == path]
    used, found = {*recipe.started_by, *recipe.fed_every_step}, dict[str, str]()
    if read and not used.intersection(read):
        reason = "no summary is used; name an input it reads in decoder.start or decoder.every_step"
        found = changed(settings, path, ["pooling"], reason)
        if isinstance(settings, DeepSetsEncoderSettings) and settings.summary_layers:
            found[f"{path}.summary_layers"] = reason
    if isinstance(settings, HierarchicalEncoderSettings) and "attention" not in (settings.words, settings.pooling):
        found |= changed(settings, path, ["pooling_size"], "no states are weighed")
    return found


def _encoder(path: str, settings: EncoderSettings) -> dict[str, str]:
    if isinstance(settings, OwnEncoderSettings):
        return _own_encoder(path, settings)
    embedding = embedding_of(settings)
    found = {} if embedding is None else idle_embedding(f"{path}.embedding", embedding)
    if isinstance(settings, HierarchicalEncoderSettings):
        found |= _levels(path, settings)
    elif isinstance(settings, CellSettings):
        found |= idle_cell(path, settings)
    elif isinstance(settings, ConvolutionalEncoderSettings) and settings.recurrent is not None:
        found |= idle_cell(f"{path}.recurrent", settings.recurrent)
    elif isinstance(settings, TransformerEncoderSettings):
        found |= _unlimited(path, settings)
    return found


def _levels(path: str, settings: HierarchicalEncoderSettings) -> dict[str, str]:
    """Settings of a kind of level that the encoder does not have."""
    kinds = (settings.word_level, settings.sentence_level)
    if "transformer" not in kinds:
        keys = ["heads", "feedforward", "positions", "longest"]
        return idle_cell(path, settings) | changed(settings, path, keys, "levels recurrent have no such setting")
    found = _unlimited(path, settings)
    if "recurrent" in kinds:
        return found | idle_cell(path, settings)
    keys = ["cell", "activation", "reset", "bidirectional"]
    return found | changed(settings, path, keys, "levels transformer have no cell")


def _unlimited(path: str, settings: TransformerEncoderSettings | HierarchicalEncoderSettings) -> dict[str, str]:
    if settings.positions == "learned":
        return {}
    return changed(settings, path, ["longest"], f"positions {settings.positions} have no limit")


def _own_encoder(path: str, settings: OwnEncoderSettings) -> dict[str, str]:
    own = settings.own
    missing = [key for key in own.keys if key not in own.arguments]
    found = changed(settings, path, missing, f"{own.name} takes no such argument")
    if "embedding" in own.given:
        found |= idle_embedding(f"{path}.embedding", settings.embedding)
    else:
        found |= changed(settings, path, ["embedding"], f"{own.name} takes no such argument")
    unknown = unknown_options(own, settings.options, own.name)
    return found | {f"{path}.{key}": reason for key, reason in unknown.items()}
