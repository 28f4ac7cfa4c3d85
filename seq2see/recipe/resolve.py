"""What follows from the rest of a recipe and need not be written down."""

from __future__ import annotations

from seq2see.recipe.schema import Recipe


def resolved(recipe: Recipe) -> Recipe:
    """The recipe made complete where it is silent. A contradiction that was asked for stays as it is, to be refused.

    Without inputs there is nothing to look at, so attention is off; a label is written by the label decoder; all inputs
    are looked at; without attention, `start` gives the decoder every input that nothing else gives it.

    >>> resolved(Recipe()).attention.score
    'none'
    """
    recipe = _kinds(recipe)
    attention, decoder = recipe.attention, recipe.decoder
    if attention.score != "none" and attention.over is None:
        attention = attention.model_copy(update={"over": list(recipe.inputs)})
    unused = [name for name in recipe.inputs if name not in recipe.used]
    if attention.score == "none" and unused:
        decoder = decoder.model_copy(update={"start": [*recipe.started_by, *unused]})
    return recipe.model_copy(update={"attention": attention, "decoder": decoder})


def _kinds(recipe: Recipe) -> Recipe:
    attention, decoder = recipe.attention, recipe.decoder
    if not recipe.inputs and "score" not in attention.model_fields_set:
        attention = attention.model_copy(update={"score": "none"})
    if recipe.output.kind == "label" and "kind" not in decoder.model_fields_set:
        decoder = decoder.model_copy(update={"kind": "label"})
    return recipe.model_copy(update={"attention": attention, "decoder": decoder})
