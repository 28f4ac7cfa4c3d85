"""The ways to look, as they combine: what can be chosen, which choices go together, and a few that meet every pair."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from seq2see.attention import scores
from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe, load_recipe

Combination = dict[str, str]

AXES: dict[str, list[str]] = {
    "score": list(scores.settings),
    "normaliser": ["softmax", "sparsemax", "entmax15"],
    "scope": ["global", "local-monotonic", "local-predicted"],
    "choice": ["soft", "score-function", "gumbel"],
    "heads": ["1", "2"],
    "encoder": ["recurrent", "deep-sets", "transformer"],
    "cell": ["rnn", "gru", "gru-before", "lstm"],
    "query": ["previous", "current", "current-unfed"],
    "task": ["text", "text of two", "label", "label of two"],
}
ENCODERS: dict[str, dict[str, Any]] = {
    "deep-sets": {"kind": "deep-sets", "size": 8, "embedding": {"size": 3}},
    "transformer": {"kind": "transformer", "size": 8, "heads": 2, "feedforward": 6, "dropout": 0.0, "layers": 1},
}
"""Those that read sets."""

PLACES, STEPS, SYMBOLS, CLASSES = 7, 5, 12, 9
LENGTHS = {"source": [7, 3, 1, 0, 5], "other": [2, 5, 4, 3, 0]}
"""Real places of each row: long ones, a single one, and none at all."""


def fits(one: Mapping[str, str]) -> bool:
    """Whether the recipe allows it; what is refused would have no effect, or goes by the order that a set, which the
    last two encoders read, does not have."""
    if one["encoder"] != "recurrent" and (one["scope"] != "global" or scores[one["score"]].ordered):
        return False
    constant = one["score"] == "uniform" and one["scope"] != "local-predicted"
    if one["score"] == "uniform" and one["scope"] == "global" and one["normaliser"] != "softmax":
        return False
    if one["task"].startswith("label") and (one["query"] != "previous" or one["score"] == "coverage"):
        return False
    return not (constant and one["choice"] == "gumbel")


def every(axes: Mapping[str, Sequence[str]]) -> Iterator[Combination]:
    """The full product of those axes, as far as its members fit; of an axis that is not named the values take turns."""
    rest = {name: itertools.cycle(values) for name, values in AXES.items() if name not in axes}
    for values in itertools.product(*axes.values()):
        one = dict(zip(axes, values, strict=True))
        turns = ({**one, **{name: next(turn) for name, turn in rest.items()}} for _ in range(30))
        found = next(filter(fits, turns), None)
        if found is not None:
            yield found


def pairs(one: Mapping[str, str]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Every two of its values, each with its axis, in the order of the axes."""
    return list(itertools.combinations([(axis, one[axis]) for axis in AXES if axis in one], 2))


def covering() -> list[Combination]:
    """Few combinations in which every pair of values that can meet does.

    Greedily: the next one holds a pair that is still missing, and of a few such the most that are.
    """
    draw = random.Random(0)
    pool = [one for one in _sparse_product() if fits(one)]
    missing = dict.fromkeys(pair for one in pool for pair in pairs(one))
    chosen: list[Combination] = []
    while missing:
        wanted = set(next(iter(missing)))
        holding = [one for one in pool if wanted <= one.items()]
        few = draw.sample(holding, min(40, len(holding)))
        best = max(few, key=lambda one: sum(pair in missing for pair in pairs(one)))
        chosen.append(best)
        for pair in pairs(best):
            missing.pop(pair, None)
    return chosen


def _sparse_product() -> Iterator[Combination]:
    """Every 7th member of the whole product: no axis has 7 values, so that all pairs are still among them."""
    members = itertools.islice(itertools.product(*AXES.values()), 0, None, 7)
    return (dict(zip(AXES, values, strict=True)) for values in members)


def name_of(one: Mapping[str, str]) -> str:
    return ", ".join(one.values())


def recipe_of(one: Mapping[str, str]) -> Recipe:
    """A recipe of small sizes; the cell is the encoder's and the decoder's, as far as they have one."""
    cell, _, reset = one["cell"].partition("-")
    cells: dict[str, Any] = {"cell": cell, "embedding": {"size": 3}} | ({"reset": reset} if reset else {})
    attention: dict[str, Any] = {key: one[key] for key in ("score", "normaliser", "scope", "heads")}
    attention["choice"] = "soft" if one["choice"] == "soft" else "hard"
    if one["choice"] == "gumbel":
        attention["estimator"] = "gumbel"
    if one["scope"] != "global":
        attention["window"] = 2
    query, _, unfed = one["query"].partition("-")
    attention |= {"query": query} | ({"input_feeding": False} if unfed else {})
    label = one["task"].startswith("label")
    return load_recipe(
        {
            "inputs": {name: {"kind": "text" if one["encoder"] == "recurrent" else "set"} for name in inputs_of(one)},
            "output": {"kind": "label" if label else "text"},
            "encoder": {"size": 4, **cells} if one["encoder"] == "recurrent" else ENCODERS[one["encoder"]],
            "attention": attention,
            "decoder": {"size": 8} if label else {"size": 8, **cells},
        }
    )


def inputs_of(one: Mapping[str, str]) -> list[str]:
    return ["source", "other"] if one["task"].endswith("of two") else ["source"]


def model_of(recipe: Recipe) -> EncoderDecoder:
    """Weights that are far from zero, biases too, so that what they do shows."""
    made = EncoderDecoder(recipe, Sizes(dict.fromkeys(recipe.inputs, SYMBOLS), CLASSES))
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made


def batch_of(one: Mapping[str, str]) -> Batch:
    """Rows of very different lengths, one of them empty; targets of different lengths too."""
    inputs = {}
    for name in inputs_of(one):
        mask = torch.tensor([[j < length for j in range(PLACES)] for length in LENGTHS[name]])
        inputs[name] = Sequences(torch.randint(4, SYMBOLS, mask.shape) * mask, mask)
    rows = list(range(len(LENGTHS["source"])))
    if one["task"].startswith("label"):
        return Batch(inputs, Labels(torch.randint(0, CLASSES, (len(rows),))), rows)
    real = torch.tensor([[t < STEPS - row % 3 for t in range(STEPS)] for row in rows])
    return Batch(inputs, Sequences(torch.randint(4, CLASSES, real.shape) * real, real), rows)


def alone(batch: Batch, row: int) -> Batch:
    """One row without its padding (one padded place, where it has no real one)."""

    def cut(column: Sequences) -> Sequences:
        length = max(int(column.mask[row].sum()), 1)
        return Sequences(column.ids[row : row + 1, :length], column.mask[row : row + 1, :length])

    target = batch.target
    own = Labels(target.ids[row : row + 1]) if isinstance(target, Labels) else cut(target) if target else None
    return Batch({name: cut(column) for name, column in batch.inputs.items()}, own, [row])
