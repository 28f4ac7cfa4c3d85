"""Whether a model can be trained in the memory there is: asked before any of it is taken."""

from __future__ import annotations

from typing import Any

from seq2see.data.fields import OUTPUT, Fields
from seq2see.errors import UserError
from seq2see.pipeline.counting import of_recipe, total
from seq2see.pipeline.devices import machine_memory
from seq2see.recipe import Recipe
from seq2see.recipe.schema import CellSettings

BYTES = 4
GIGABYTE = 1e9
SIZES = ("size", "layers", "readout", "positions", "filters", "feedforward", "longest", "pooling_size")
SHOWN = 3
HUGE = 1 << 31


def check_fits(recipe: Recipe, fields: Fields) -> None:
    """Refuse a model whose weights, gradients and optimiser's averages are more than the machine's whole memory.

    What a batch takes beside them is not known beforehand and not counted, so a model that passes may still be large.
    """
    memory = machine_memory()
    if memory is None:
        return
    each = BYTES * _copies(recipe)
    needed = _at_least(recipe) * each
    if needed <= memory:
        needed = parameters_of(recipe, fields) * each
    if needed > memory:
        raise UserError(
            f"the model is too large for this machine: training it takes at least {needed / GIGABYTE:,.0f} GB (weights,"
            f" gradients and what the optimizer keeps), and there are {memory / GIGABYTE:,.1f} GB; what makes it so"
            f" large: {', '.join(_largest(recipe, fields))}"
        )


def parameters_of(recipe: Recipe, fields: Fields) -> int:
    """How many numbers the model would learn; nothing is allocated to find out."""
    known = {recipe.vocabulary_owner(name): field.size for name, field in fields.all.items() if field.size}
    return total(of_recipe(recipe, known))[()]


def _at_least(recipe: Recipe) -> int:
    """A number of parameters that is never too large, for sizes that torch has no numbers for.

    The product of a layer with the state before it alone takes size * size; a size of billions counts at least itself.
    """
    readers = [recipe.encoder_of(name) for name in recipe.inputs if recipe.reader_of(name) == name]
    cells: list[CellSettings] = [settings for settings in readers if isinstance(settings, CellSettings)]
    if recipe.decoder.kind in ("recurrent", "transformer") and not recipe.output.one_step:
        cells.append(recipe.decoder)
    huge = sum(size for _, size in _sizes(recipe.to_dict()) if size > HUGE)
    return huge + sum(cell.layers * cell.size**2 for cell in cells)


def _copies(recipe: Recipe) -> int:
    """Numbers held for each parameter. (On a device of its own, only the weights are ever in this memory.)"""
    settings = recipe.training
    if settings.device.partition(":")[0] != "cpu":
        return 1
    if settings.optimizer == "sgd":
        return 3 if settings.momentum else 2
    return 4


def _largest(recipe: Recipe, fields: Fields) -> list[str]:
    """The keys with the largest numbers, as 'encoder.size 4,096'."""
    found = dict(_sizes(recipe.to_dict()))
    for name, field in fields.all.items():
        key = name if name == OUTPUT else f"inputs.{name}"
        found[f"{key}.vocabulary"] = field.size
    ordered = sorted(found, key=lambda key: -found[key])
    least = found[ordered[0]] // 10
    return [f"{key} {found[key]:,}" for key in ordered[:SHOWN] if found[key] >= least]


def _sizes(settings: Any, path: str = "") -> list[tuple[str, int]]:
    found = []
    for key, value in settings.items():
        inside = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            found += _sizes(value, inside)
        elif key in SIZES and isinstance(value, int):
            found.append((inside, value))
    return found
