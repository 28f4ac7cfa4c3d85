"""Parameters counted by part, with their symbols; a vocabulary of unknown size stays a variable of the count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import torch

from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe
from seq2see.symbols import Symbol

Monomial = tuple[str, ...]
Count = dict[Monomial, int]
"""A polynomial in the sizes of vocabularies: {(): 7, ("source",): 128} is 7 + 128 |source|."""

PROBE = 1_000
READING = "sEPWUQVvuwbcn"
"""The order in which the symbols of a part are listed, by their first letters."""


@dataclass(frozen=True)
class Counted:
    """One parameter: the part it belongs to, its name in the equations, its shape and how many numbers it holds."""

    part: str
    name: str
    shape: tuple[str, ...]
    count: Count


def of_network(network: EncoderDecoder) -> list[Counted]:
    """Every parameter of a network, tied ones once."""
    symbols = network.parameter_symbols()
    return _merged(
        (symbols[name], tuple(f"{size:,}" for size in parameter.shape), {(): parameter.numel()})
        for name, parameter in network.named_parameters()
    )


def of_recipe(recipe: Recipe, known: Mapping[str, int]) -> list[Counted]:
    """Every parameter of a recipe's model; known: the sizes of known vocabularies, by `vocabulary_owner`.

    No memory is allocated: the network is built on the meta device, once with every unknown vocabulary of size PROBE
    and once for each of them with one symbol more, which shows the sizes that grow with it.
    """
    owners = [recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"]]
    unknown = [name for name in dict.fromkeys(owners) if name not in known and recipe.sized_by_data(name)]
    base = dict.fromkeys(unknown, PROBE) | dict(known)
    network = skeleton(recipe, base)
    symbols, shapes = network.parameter_symbols(), _shapes(network)
    grown = {name: _shapes(skeleton(recipe, base | {name: PROBE + 1})) for name in unknown}
    counted: list[tuple[Symbol, tuple[str, ...], Count]] = []
    for name, shape in shapes.items():
        sizes: list[Count] = []
        for axis, size in enumerate(shape):
            slopes = {(owner,): grown[owner][name][axis] - size for owner in unknown}
            steep = {key: slope for key, slope in slopes.items() if slope}
            rest = size - PROBE * sum(steep.values())
            sizes.append(steep | ({(): rest} if rest or not steep else {}))
        counted.append((symbols[name], tuple(shown(size) for size in sizes), _product(sizes)))
    return _merged(counted)


def _merged(counted: Iterable[tuple[Symbol, tuple[str, ...], Count]]) -> list[Counted]:
    """One entry for each parameter; those that no equation names (a backbone's) are counted together."""
    result: dict[tuple[str, str, str], Counted] = {}
    for number, (symbol, shape, count) in enumerate(counted):
        entry = Counted(symbol.part, str(symbol), shape, count)
        key = (entry.part, entry.name, "" if symbol.merged else str(number))
        if key in result:
            entry = Counted(entry.part, entry.name, (), total([result[key], entry]))
        result[key] = entry
    return list(result.values())


def total(counted: list[Counted]) -> Count:
    """The sum of all counts."""
    result: Count = {(): 0}
    for entry in counted:
        for key, number in entry.count.items():
            result[key] = result.get(key, 0) + number
    return result


def in_order(counted: list[Counted]) -> list[Counted]:
    """Layer by layer, and in each E, W, U, b."""
    layers = list(dict.fromkeys(entry.name.partition(", ")[2] for entry in counted))
    return sorted(counted, key=lambda each: (layers.index(each.name.partition(", ")[2]), READING.find(each.name[0])))


def shown(count: Count) -> str:
    """'7 + 128 |source|'"""
    parts = []
    for key in sorted(count, key=lambda names: (len(names), names)):
        symbols = " ".join(f"|{name}|" for name in key)
        number = count[key]
        if key and number == 1:
            parts.append(symbols)
        elif number or len(count) == 1:
            parts.append(f"{number:,} {symbols}".strip())
    return " + ".join(parts)


def skeleton(recipe: Recipe, known: Mapping[str, int]) -> EncoderDecoder:
    """The network on the meta device, without numbers; unknown vocabularies have the size PROBE."""
    sizes = {name: known.get(recipe.vocabulary_owner(name), PROBE) for name in [*recipe.inputs, "output"]}
    with torch.device("meta"):
        return EncoderDecoder(recipe, Sizes(sizes, sizes["output"]))


def _shapes(network: EncoderDecoder) -> dict[str, tuple[int, ...]]:
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def _product(sizes: list[Count]) -> Count:
    result: Count = {(): 1}
    for size in sizes:
        multiplied: Count = {}
        for left, a in result.items():
            for right, b in size.items():
                key = tuple(sorted((*left, *right)))
                multiplied[key] = multiplied.get(key, 0) + prod((a, b))
        result = multiplied
    return result
