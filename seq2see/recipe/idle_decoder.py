"""Settings of a decoder that would be accepted and do nothing."""

from __future__ import annotations

from seq2see.recipe.changed import changed, idle_cell, idle_embedding
from seq2see.recipe.schema import Recipe
from seq2see.settings.decoders import ONE_STEP, WRITERS, DecoderSettings
from seq2see.settings.plugins import unknown_options

SELF = ["heads", "feedforward", "positions", "longest", "memory"]
"""What only layers of self-attention have."""


def idle_decoder(recipe: Recipe) -> dict[str, str]:
    settings = recipe.decoder
    unknown = unknown_options(settings.own, settings.options, f"decoder {settings.kind}")
    found = {f"decoder.{key}": reason for key, reason in unknown.items()}
    if settings.kind in ONE_STEP:
        found |= _at_once(recipe)
    elif settings.kind == "transformer" and recipe.output.one_step:
        found |= _answered(settings)
    elif settings.own is not None and settings.own.one_step:
        found |= changed(settings, "decoder", ["embedding", "tied"], f"{settings.kind} reads no symbol")
    else:
        found |= _written(settings) | idle_embedding("decoder.embedding", settings.embedding)
    if settings.kind != "reconstruction":
        keys = ["reconstruction"]
        found |= changed(settings, "decoder", keys, "only decoder.kind reconstruction has such settings")
    if not recipe.started_by:
        found |= changed(settings, "decoder", ["start_by"], "decoder.start is none")
        if not recipe.fed_every_step:
            found |= changed(settings, "decoder", ["join"], "no summaries are joined")
    if settings.tied:
        found |= changed(settings, "decoder", ["readout"], "tied: the readout has the size of the embedding")
    return found


def _at_once(recipe: Recipe) -> dict[str, str]:
    """A decoder that has a state and no cell."""
    settings = recipe.decoder
    keys = ["cell", "activation", "reset", "layers", "embedding", "every_step", "tied"]
    keys += SELF
    found = changed(settings, "decoder", keys, f"a {settings.kind} decoder has no cell and reads no symbol")
    if not recipe.looked_at:
        reason = f"without attention a {settings.kind} decoder has its state alone"
        found |= changed(settings, "decoder", ["output"], reason)
    if settings.kind == "reconstruction":
        reason = "decoder.reconstruction says what lies between the code and the output"
        found |= changed(settings, "decoder", ["readout"], reason)
        if recipe.started_by:
            found |= changed(settings, "decoder", ["size", "start_by"], "it starts from the code as it is")
    return found


def _written(settings: DecoderSettings) -> dict[str, str]:
    """Settings of the other kind of decoder that writes; what a decoder of the user's own makes of them is its own."""
    if settings.kind not in WRITERS:
        return {}
    if settings.kind == "transformer":
        found = changed(settings, "decoder", ["cell", "activation", "reset"], "a transformer has no cell")
        found |= changed(settings, "decoder", ["output"], "the output layer of a transformer sees s_t")
        if settings.positions != "learned":
            found |= changed(settings, "decoder", ["longest"], f"positions {settings.positions} have no limit")
        return found
    return idle_cell("decoder", settings) | changed(settings, "decoder", SELF, "only a transformer has such a setting")


def _answered(settings: DecoderSettings) -> dict[str, str]:
    """A transformer that answers in one step: its layers look at places and think, there is nothing written before."""
    found = changed(settings, "decoder", ["cell", "activation", "reset"], "a transformer has no cell")
    alone = "a label is decoded in one step, with no symbol before it to look at"
    found |= changed(settings, "decoder", ["positions", "longest", "memory", "embedding", "tied"], alone)
    found |= changed(settings, "decoder", ["heads"], f"{alone}; attention.heads are those of its looks")
    found |= changed(settings, "decoder", ["every_step"], "there is one step: decoder.start says what it begins with")
    return found | changed(settings, "decoder", ["output"], "the output layer of a transformer sees s")
