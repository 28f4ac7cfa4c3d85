"""Parameters counted by part, named as in the equations; where a vocabulary is not known yet, as a formula in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import prod

import torch

from seq2see.encoders.layers import DIRECTIONS
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe

Monomial = tuple[str, ...]
Count = dict[Monomial, int]
"""A polynomial in the sizes of vocabularies: {(): 7, ("source",): 128} is 7 + 128 |source|."""

PROBE = 1_000
READING = "sEPWUQVvuwbcn"
LAYERS = {"layers": "", "word_layers": "words, ", "sentence_layers": "sentences, "}
PERCEPTRONS = ("phi", "rho", "dense")
POOLING = {"word_pooling": "w", "sentence_pooling": "s"}
POOLED = {"W_k.weight": "W", "W_k.bias": "b", "v.weight": "u"}
BACKBONE = "backbone"
LEVELS = {"larger": ", sentences", "smaller": ", words"}
HOLDERS = {"score": "", "scope": " of the window"}
"""Parts of an attention, as its parameters are named after them; those of no such part are its heads'."""
DEEP = {"first": "W_1", "out": "v"}


@dataclass(frozen=True)
class Counted:
    """One parameter: the part it belongs to, its name in the equations, its shape and how many numbers it holds."""

    part: str
    name: str
    shape: tuple[str, ...]
    count: Count


def of_network(network: EncoderDecoder) -> list[Counted]:
    """Every parameter of a network, tied ones once."""
    parameters = dict(network.named_parameters())
    return _gathered(
        Counted(*part_and_name(name, parameters), tuple(f"{size:,}" for size in one.shape), {(): one.numel()})
        for name, one in parameters.items()
    )


def of_recipe(recipe: Recipe, known: Mapping[str, int]) -> list[Counted]:
    """Every parameter a recipe leads to. known: sizes of the vocabularies that are known, by `vocabulary_owner`.

    Nothing is allocated: the network is built without numbers, once as it is and once for each unknown vocabulary made
    larger by one, which shows the sizes that grow with it.
    """
    owners = [recipe.vocabulary_owner(name) for name in [*recipe.inputs, "output"]]
    unknown = [name for name in dict.fromkeys(owners) if name not in known and recipe.sized_by_data(name)]
    base = dict.fromkeys(unknown, PROBE) | dict(known)
    shapes = _shapes(recipe, base)
    grown = {name: _shapes(recipe, base | {name: PROBE + 1}) for name in unknown}
    found = []
    for name, shape in shapes.items():
        sizes: list[Count] = []
        for axis, size in enumerate(shape):
            slopes = {(owner,): grown[owner][name][axis] - size for owner in unknown}
            steep = {key: slope for key, slope in slopes.items() if slope}
            rest = size - PROBE * sum(steep.values())
            sizes.append(steep | ({(): rest} if rest or not steep else {}))
        found.append(Counted(*part_and_name(name, shapes), tuple(shown(one) for one in sizes), _product(sizes)))
    return _gathered(found)


def _gathered(counted: Iterable[Counted]) -> list[Counted]:
    """A backbone's hundreds of parameters, which no equation names, as one."""
    found: dict[tuple[str, str, str], Counted] = {}
    for number, one in enumerate(counted):
        key = (one.part, one.name, "" if one.name == BACKBONE else str(number))
        if key in found:
            found[key] = Counted(one.part, one.name, (), total([found[key], one]))
        else:
            found[key] = one
    return list(found.values())


def total(counted: list[Counted]) -> Count:
    found: Count = {(): 0}
    for one in counted:
        for key, number in one.count.items():
            found[key] = found.get(key, 0) + number
    return found


def in_order(counted: list[Counted]) -> list[Counted]:
    """As the equations are read: layer by layer, and in each E, W, U, b."""
    layers = list(dict.fromkeys(one.name.partition(", ")[2] for one in counted))
    return sorted(counted, key=lambda one: (layers.index(one.name.partition(", ")[2]), READING.find(one.name[0])))


def shown(count: Count) -> str:
    """'7 + 128 |source|'"""
    parts = []
    for key in sorted(count, key=lambda one: (len(one), one)):
        symbols = " ".join(f"|{name}|" for name in key)
        number = count[key]
        if key and number == 1:
            parts.append(symbols)
        elif number or len(count) == 1:
            parts.append(f"{number:,} {symbols}".strip())
    return " + ".join(parts)


def part_and_name(name: str, known: Collection[str] = ()) -> tuple[str, str]:
    """('attention over source', 'W_q') for decoder.looking.over.source.score.W_q.weight.

    known: the names of all parameters. Heads that look at words through sentences hold the projections of sentences as
    `larger`, those of words just so: beside a `larger` they are named as the words'.
    """
    room, *rest = name.split(".")
    if ".".join([room, *rest[:-2], "larger.W_q.weight"]) in known and rest[-2] != "W_o":
        rest = [*rest[:-2], "smaller", *rest[-2:]]
    if room == "encoders" and rest[1] == BACKBONE:
        return f"encoder of {rest[0]}", BACKBONE
    if room == "encoders":
        return f"encoder of {rest[0]}", _cell_name(rest[1:])
    if room in ("head", "ctc"):
        return "output layer" if room == "head" else "output along the places", _plain(rest)
    if rest[:2] == ["looking", "over"]:
        return f"attention over {rest[2].replace('/', '.')}", _look_name(rest[3:])
    if rest[0] == "layers" and rest[2:4] == ["looking", "over"]:
        return f"attention over {rest[4].replace('/', '.')}", f"{_look_name(rest[5:])}, layer {int(rest[1]) + 1}"
    if rest[0] == "start":
        return "decoder", _plain(rest[1:])
    return "decoder", _cell_name(rest)


def _cell_name(path: list[str]) -> str:
    """W, U, b of a layer (and direction); E of an embedding; W, b, u of a pooling; W, b of a perceptron's layers."""
    if path[0] in POOLING and ".".join(path[-2:]) in POOLED:
        return f"{POOLED['.'.join(path[-2:])]}_{POOLING[path[0]]}"
    if path[0] in PERCEPTRONS and len(path) == 3 and path[1].isdigit():
        return f"{'b' if path[-1] == 'bias' else 'W'}_{int(path[1]) + 1}, {path[0]}"
    if path[0] in LAYERS and path[1] == "layers":  # a level of self-attention holds its layers beside a norm
        path = [path[0], *path[2:]]
    if path[0] not in LAYERS or len(path) < 3 or not path[1].isdigit():
        return _inner_name(path) + f", {LAYERS.get(path[0], '').removesuffix(', ')}".removesuffix(", ")
    where = [f"{LAYERS[path[0]]}layer {int(path[1]) + 1}"]
    rest = path[2:]
    looks_back = rest[1:2] == ["inward"]  # a part of a cell that looks at what it has read
    if rest[-1] in ("weight", "bias") and not looks_back:  # a layer of self-attention: its parts are layers of torch
        return f"{_plain(rest[-2:])}, {where[0]}"
    if rest[0] in ("0", "1") and len(rest) > 1:
        where.append(DIRECTIONS[int(rest[0])])
        rest = rest[1:]
    if looks_back:
        return f"{_look_name(rest[1:], others='')}, {' '.join(where)}, self-attention"
    if rest[0] == "cell":
        rest = rest[1:]
    short = "_".join(rest) if rest[0] == "W" and rest[-1] != "x" else rest[0]
    return f"{short}, {' '.join(where)}"


def _inner_name(path: list[str]) -> str:
    """The name of a part's own parameter, or of the layer whose weight it is; of one among several, with their name."""
    if path[-1] not in ("weight", "bias"):
        return path[-1]
    named = next((i for i in range(len(path) - 2, -1, -1) if not path[i].isdigit()), 0)
    return _plain([".".join(path[named:-1]), path[-1]]) if len(path) > 1 else path[0]


def _look_name(path: list[str], *, others: str = " of heads") -> str:
    """A parameter of an attention, with the part that holds it if that is not its score; of two levels with its own."""
    level = next((said for part, said in LEVELS.items() if part in path), "")
    holder = next((said for part, said in HOLDERS.items() if part in path), others)
    return _plain([part for part in path if part not in ("inner", *HOLDERS, *LEVELS)]) + holder + level


def _plain(path: list[str]) -> str:
    """A layer's weight under the layer's name, its bias as b with the same index."""
    if path[0] == "hidden":
        path = [f"W_{int(path[1]) + 2}", *path[2:]]
    name = DEEP.get(path[0], path[0])
    if path[-1] != "bias":
        return name
    return "b" + name[1:] if name[1:].startswith("_") else f"b of {name}"


def skeleton(recipe: Recipe, known: Mapping[str, int]) -> EncoderDecoder:
    """The network without its numbers, vocabularies that are not known of some size."""
    sizes = {name: known.get(recipe.vocabulary_owner(name), PROBE) for name in [*recipe.inputs, "output"]}
    with torch.device("meta"):
        return EncoderDecoder(recipe, Sizes(sizes, sizes["output"]))


def _shapes(recipe: Recipe, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    network = skeleton(recipe, sizes)
    return {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}


def _product(sizes: list[Count]) -> Count:
    found: Count = {(): 1}
    for one in sizes:
        multiplied: Count = {}
        for left, a in found.items():
            for right, b in one.items():
                key = tuple(sorted((*left, *right)))
                multiplied[key] = multiplied.get(key, 0) + prod((a, b))
        found = multiplied
    return found
