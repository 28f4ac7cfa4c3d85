"""Fine-tuning: the structure and the weights of a trained model, with the other settings of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from seq2see.dropout import DROPOUTS
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder
from seq2see.pipeline.bundle import RECIPE
from seq2see.pipeline.weights import tensors_of
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.schema import DistillationSettings, flatten

STRUCTURE = ("inputs", "encoder", "attention", "decoder", "output")
"""Parts that determine the names and sizes of weights, and the vocabularies ..."""
FREE = (*DROPOUTS, "column", "max_length")
"""... except these keys, at any depth."""
MOST_LISTED = 5
LOSS_ONLY = "ctc."
"""Weights that only a term of the loss uses: new where the term is new, dropped where it is no longer used."""


def is_own_recipe(recipe: object, start: object) -> bool:
    """Whether a model is fine-tuned by its own recipe: none is given, or the file in its folder."""
    if not isinstance(recipe, str | Path) or not isinstance(start, str | Path):
        return recipe is None
    return Path(recipe).resolve() == Path(start).resolve() / RECIPE


def fine_tuning_recipe(
    start: Recipe, recipe: Recipe, overrides: Sequence[str], *, own: bool = False
) -> tuple[Recipe, list[str]]:
    """(the recipe for fine-tuning a model, notes for the user).

    The structure is that of the model, the rest that of the recipe, and the whole is checked like any other recipe. An
    override that changes the structure is refused; where only the recipe differs, a note says so.
    own: the recipe is the model's own; its distillation is over, unless an override names it.
    """
    _check_same_task(start, recipe)
    _check_overrides(start, overrides)
    kept, other = start.to_dict(), recipe.to_dict()
    differing: list[str] = []
    merged = {**other, **{part: _merge(kept[part], other[part], part, differing) for part in STRUCTURE}}
    fitted = {path: why for path, why in recipe.fitted.items() if _is_free(path)}  # sizes are the model's
    differing = [text for text in differing if text.partition(" ")[0] not in recipe.fitted]
    notes = _notes(differing)
    teachers = recipe.loss.distillation.teachers
    if own and teachers and not any(_names_distillation(override) for override in overrides):
        merged["loss"] = {**merged["loss"], "distillation": DistillationSettings().model_dump()}
        notes.append(
            f"fine-tuned without the teachers of the model ({', '.join(teachers)}); to distil from them again, set "
            "loss.distillation.teachers"
        )
    return load_recipe({**merged, "fitted": fitted}), notes


def _names_distillation(override: str) -> bool:
    path = override.partition("=")[0].strip()
    return path == "loss" or path.split(".")[:2] == ["loss", "distillation"]


def _is_free(path: str) -> bool:
    return path.split(".")[0] not in STRUCTURE or path.split(".")[-1] in FREE


def initial_weights(network: EncoderDecoder, start: EncoderDecoder) -> dict[str, Tensor]:
    """The weights of the model to start from, for a network of the same structure."""
    own, trained = tensors_of(network), tensors_of(start)
    loss_only = {name: trained.get(name, tensor) for name, tensor in own.items() if name.startswith(LOSS_ONLY)}
    return {name: tensor for name, tensor in trained.items() if not name.startswith(LOSS_ONLY)} | loss_only


def _check_same_task(start: Recipe, recipe: Recipe) -> None:
    if recipe.output.kind != start.output.kind:
        raise UserError(
            f"--from: the recipe's output.kind is {recipe.output.kind}, and the model writes a {start.output.kind}; "
            "give a recipe of the same kind"
        )
    if list(recipe.inputs) != list(start.inputs):
        names = [", ".join(settings.inputs) or "none" for settings in (recipe, start)]
        raise UserError(f"--from: the recipe's inputs are {names[0]}, and those of the model are {names[1]}")


def _check_overrides(start: Recipe, overrides: Sequence[str]) -> None:
    structural = [override for override in overrides if override.partition("=")[0].strip().split(".")[0] in STRUCTURE]
    changed = load_recipe(start, overrides=structural)
    old, new = (dict(_structure(recipe.to_dict())) for recipe in (start, changed))
    for key in dict.fromkeys([*old, *new]):
        if old.get(key) != new.get(key):
            raise UserError(
                f"{key}: the model has {old.get(key)}, got {new.get(key)}; --from continues with a model as it "
                f"was built, except for {', '.join(FREE)}"
            )


def _structure(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of the settings that determine the structure."""
    for part in STRUCTURE:
        yield from flatten(settings[part], part, free=FREE)


def _merge(kept: Any, other: Any, path: str, differing: list[str]) -> Any:
    """The model's settings with the recipe's free keys; paths at which the recipe differs are added to `differing`."""
    if isinstance(kept, dict) and isinstance(other, dict):
        return {
            key: other[key]
            if key in FREE and key in other
            else _merge(value, other.get(key), f"{path}.{key}", differing)
            for key, value in kept.items()
        }
    if kept != other:
        differing.append(path if isinstance(kept, dict) else f"{path} {kept} (the recipe: {other})")
    return kept


def _notes(differing: list[str]) -> list[str]:
    if not differing:
        return []
    more = f" and {len(differing) - MOST_LISTED} more" if len(differing) > MOST_LISTED else ""
    return [f"kept as in the model that is fine-tuned: {', '.join(differing[:MOST_LISTED])}{more}"]
