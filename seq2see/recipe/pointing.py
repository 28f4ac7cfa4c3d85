"""Settings that point from symbols of the output to places of an input: copying, and alignments to learn from."""

from __future__ import annotations

from seq2see.modalities.text import TextOutput
from seq2see.recipe.schema import Recipe
from seq2see.settings.base import TextSettings

IN_A_ROW = ("text", "set")
"""Kinds of inputs whose symbols are their places, one by one."""


def idle(recipe: Recipe) -> dict[str, str]:
    """{path: reason} of such settings in recipes that have nothing to point at, or nothing to point from."""
    alignment, found = recipe.loss.alignment, dict[str, str]()
    if recipe.output.one_step:
        reason = f"{recipe.output.said} has no symbols"
    elif not recipe.looked_at:
        reason = "without attention no place is looked at"
    else:
        reason = ""
    if recipe.copied_from is not None and (reason or _at_sentences_alone(recipe)):
        found["decoder.copy_from"] = reason or f"its words are not looked at (attention.over={recipe.copied_places})"
    if reason and alignment.column is not None:
        found["loss.alignment.column"] = reason
    if alignment.column is None and alignment.weight != type(alignment).model_fields["weight"].default:
        found["loss.alignment.weight"] = "loss.alignment.column is not given"
    return found


def _at_sentences_alone(recipe: Recipe) -> bool:
    """Whether a document is looked at whose words could be copied, but not at them."""
    name = recipe.copied_from
    return recipe.copied_places != name in recipe.looked_at and recipe.copied_places not in recipe.looked_at


def impossible(recipe: Recipe) -> list[str]:
    """'path: what is wrong' where a recipe has looks to point with, and they cannot serve."""
    if not recipe.looked_at or not isinstance(recipe.output, TextOutput):
        return []
    return [*_copying(recipe, recipe.output), *_alignment(recipe, recipe.output)]


def _copying(recipe: Recipe, output: TextSettings) -> list[str]:
    name, path = recipe.copied_from, "decoder.copy_from"
    if name is None or name not in recipe.inputs:
        return []
    texts = [one.removesuffix(".words") for one in recipe.looked_at if one.removesuffix(".words") in recipe.texts]
    if name not in texts:
        return [f"{path}: '{name}' is no text that is looked at; allowed: {', '.join([*texts, 'none'])}"]
    separator = getattr(recipe.inputs[name], "separator", None)
    if separator is not None:
        return [f"{path}: elements of {name} stand between {separator!r}, symbols of the output do not; allowed: none"]
    tokens = recipe.texts[name].tokens
    if tokens != output.tokens:
        return [f"{path}: tokens are {tokens} in {name} and {output.tokens} in the output: must be the same"]
    if tokens == "bpe" and recipe.vocabulary_owner(name) != recipe.vocabulary_owner("output"):
        return [f"{path}: pieces (bpe) are those of the output only where they are shared; set output.share={name}"]
    return []


def _alignment(recipe: Recipe, output: TextSettings) -> list[str]:
    column, first, path = recipe.loss.alignment.column, recipe.looked_at[0], "loss.alignment.column"
    if column is None:
        return []
    found = []
    settings = _in_a_row(recipe).get(first)
    if settings is None:
        found.append(f"{path}: links count the words of a text, and '{first}', the first input looked at, is none")
    elif "bpe" in (settings.tokens, output.tokens):
        found.append(
            f"{path}: links count words, and tokens are bpe: pieces of words; allowed: word, symbol, character"
        )
    if recipe.loss.alignment.weight:
        found += _unteachable(recipe)
    columns = {f"inputs.{name}": given.column or name for name, given in recipe.inputs.items()}
    taken = next((key for key, one in (columns | {"output": output.column or "output"}).items() if one == column), None)
    if taken is not None:
        found.append(f"{path}: '{column}' is the column of {taken}")
    return found


def _unteachable(recipe: Recipe) -> list[str]:
    """Looks that links cannot change."""
    path, attention = "loss.alignment.weight", recipe.attention
    if attention.constant:
        return [f"{path}: {recipe.loss.alignment.weight:g}, and uniform weights are not learned; allowed: 0"]
    if attention.zeros:
        instead = "attention.normaliser softmax and attention.scope global"
        return [f"{path}: {attention.zeros}, which has no logarithm to learn from; allowed: 0, or {instead}"]
    return []


def remarks(recipe: Recipe) -> list[str]:
    """What holds of copying with such looks, and is better known than found out."""
    if recipe.copied_from is None or not recipe.attention.zeros:
        return []
    where = f"at such a place of {recipe.copied_from}"
    return [f"{recipe.attention.zeros}: a word that only copying can write, {where}, has no probability to learn from"]


def _in_a_row(recipe: Recipe) -> dict[str, TextSettings]:
    return {name: given for name, given in recipe.texts.items() if recipe.inputs[name].kind in IN_A_ROW}
