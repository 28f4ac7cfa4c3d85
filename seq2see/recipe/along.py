"""A loss along the places themselves (CTC): where it has a meaning, and where it would do nothing."""

from __future__ import annotations

from seq2see.recipe.schema import Recipe

LINES = ("tokens", "frames", "grid")
"""Places that are read one after the other; those of a grid column by column."""


def out_of_line(recipe: Recipe) -> list[str]:
    """'path: what is wrong' where the places that a text should be read off have no order."""
    name = recipe.read_along
    if name is None or idle_along(recipe):
        return []
    if recipe.search.ctc and recipe.copied_from is not None:
        return ["search.ctc: words that are copied cannot be read along the places; allowed: 0"]
    layout = recipe.view_of(name)[1]
    if layout in (*LINES, None):  # None: only the built encoder knows
        return []
    return [f"loss.ctc: the places of '{name}' lie as {layout}, not one after the other; allowed: 0"]


def idle_along(recipe: Recipe) -> dict[str, str]:
    """{path: reason} where there is no text, or nothing to read it off."""
    if not recipe.loss.ctc:
        return {"search.ctc": "loss.ctc is 0: nothing is read along the places"} if recipe.search.ctc else {}
    if recipe.output.kind != "text":
        return {"loss.ctc": f"a {recipe.output.kind} has no symbols to be read one after the other"}
    return {} if recipe.inputs else {"loss.ctc": "a model without inputs has no places to read"}
