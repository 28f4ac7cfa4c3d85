"""What follows from the rest of a recipe and need not be written down."""

from __future__ import annotations

from seq2see.recipe.schema import Recipe


def implied(recipe: Recipe) -> Recipe:
    """Defaults that depend on other keys, where the recipe is silent; a contradiction asked for stays, to be refused.

    Without inputs there is nothing to look at, so attention is off; a label is written by the label decoder.

    >>> implied(Recipe()).attention.score
    'none'
    """
    attention, decoder = recipe.attention, recipe.decoder
    if not recipe.inputs and "score" not in attention.model_fields_set:
        attention = attention.model_copy(update={"score": "none"})
    if recipe.output.kind == "label" and "kind" not in decoder.model_fields_set:
        decoder = decoder.model_copy(update={"kind": "label"})
    return recipe.model_copy(update={"attention": attention, "decoder": decoder})


def resolved(recipe: Recipe) -> Recipe:
    """A checked recipe made complete: what is looked at, and `start` where nothing else conditions the decoder."""
    attention, decoder = recipe.attention, recipe.decoder
    if attention.score != "none" and attention.over is None:
        attention = attention.model_copy(update={"over": recipe.looked_at})
    conditioned = recipe.looked_at or recipe.started_by or recipe.fed_every_step
    if recipe.inputs and not conditioned:
        decoder = decoder.model_copy(update={"start": list(recipe.inputs)})
    return recipe.model_copy(update={"attention": attention, "decoder": decoder})
