"""Going on from another model: what has to stay as it is there, and what the recipe may say anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from torch import Tensor

from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.pipeline.weights import tensors_of
from seq2see.recipe import Recipe, load_recipe

# ---------------- Settings one by one, each by its path


def leaves(value: Any, path: str, *, free: Collection[str] = ()) -> Iterator[tuple[str, Any]]:
    """(path, value) of every setting below, but for keys that are free, wherever they stand.

    >>> dict(leaves({"size": 3, "embedding": {"size": 4, "dropout": 0.1}}, "encoder", free=["dropout"]))
    {'encoder.size': 3, 'encoder.embedding.size': 4}
    """
    if not isinstance(value, dict):
        yield path, value
        return
    for key, inside in value.items():
        if key not in free:
            yield from leaves(inside, f"{path}.{key}", free=free)


STRUCTURE = ("inputs", "encoder", "attention", "decoder", "output")
"""Parts that decide on names and sizes of weights, and on vocabularies ..."""
FREE = ("dropout", "column", "max_length")
"""... but for these keys, wherever they stand."""
SHOWN = 5
ASIDE = "ctc."
"""Weights that only a term of the loss uses: new where it is new, dropped where it is no longer asked for."""


def fine_tuned(begun: Recipe, recipe: Recipe, changes: Sequence[str]) -> tuple[Recipe, list[str]]:
    """(the recipe for going on from a model, what to tell the user).

    The structure is the model's, the rest the recipe's, and the whole is checked like any other recipe. `changes` are
    the overrides: one that asks for another structure is refused; where the recipe merely differs, it is said.
    """
    _check_same_task(begun, recipe)
    _check_changes(begun, changes)
    kept, asked = begun.to_dict(), recipe.to_dict()
    differing: list[str] = []
    merged = {**asked, **{part: _kept(kept[part], asked[part], part, differing) for part in STRUCTURE}}
    return load_recipe(merged), _notes(differing)


def carried_over(network: EncoderDecoder, begun: EncoderDecoder) -> dict[str, Tensor]:
    """The weights with which a network goes on from another of the same structure."""
    own, theirs = tensors_of(network), tensors_of(begun)
    aside = {name: theirs.get(name, tensor) for name, tensor in own.items() if name.startswith(ASIDE)}
    return {name: tensor for name, tensor in theirs.items() if not name.startswith(ASIDE)} | aside


def _check_same_task(begun: Recipe, recipe: Recipe) -> None:
    if recipe.output.kind != begun.output.kind:
        raise UserError(
            f"--from: the recipe's output.kind is {recipe.output.kind}, and the model writes a {begun.output.kind}; "
            "give a recipe of the same kind"
        )
    if list(recipe.inputs) != list(begun.inputs):
        said = [", ".join(one.inputs) or "none" for one in (recipe, begun)]
        raise UserError(f"--from: the recipe's inputs are {said[0]}, and those of the model are {said[1]}")


def _check_changes(begun: Recipe, changes: Sequence[str]) -> None:
    structural = [change for change in changes if change.partition("=")[0].strip().split(".")[0] in STRUCTURE]
    old, new = (dict(_fixed(one.to_dict())) for one in (begun, load_recipe(begun, overrides=structural)))
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            raise UserError(
                f"{key}: the model has {old.get(key)}, got {new.get(key)}; --from goes on with a model as it was "
                f"built, but for {', '.join(FREE)}"
            )


def _fixed(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of what decides on the structure."""
    for part in STRUCTURE:
        yield from leaves(settings[part], part, free=FREE)


def _kept(kept: Any, asked: Any, path: str, differing: list[str]) -> Any:
    """The model's settings with the recipe's free keys; paths at which the recipe says otherwise go to `differing`."""
    if isinstance(kept, dict) and isinstance(asked, dict):
        return {
            key: asked[key]
            if key in FREE and key in asked
            else _kept(value, asked.get(key), f"{path}.{key}", differing)
            for key, value in kept.items()
        }
    if kept != asked:
        differing.append(path if isinstance(kept, dict) else f"{path} {kept} (the recipe: {asked})")
    return kept


def _notes(differing: list[str]) -> list[str]:
    if not differing:
        return []
    more = f" and {len(differing) - SHOWN} more" if len(differing) > SHOWN else ""
    return [f"as in the model that is gone on from: {', '.join(differing[:SHOWN])}{more}"]
