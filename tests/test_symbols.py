"""Parts name their own parameters and write their own equations; nobody parses the names of another package's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from seq2see.attention import normalisers, scores
from seq2see.attention.choices import Hard, Soft, StraightThrough
from seq2see.attention.scopes import Global, LocalMonotonic, LocalPredicted
from seq2see.cells import cells
from seq2see.memory import View
from seq2see.pipeline.bundle import meta_network
from seq2see.recipe import load_recipe, shipped
from seq2see.symbols import Symbol, layer_symbols, symbols_of


class Own(nn.Module):
    """A part of a user's own, which names one of its parameters."""

    symbols = {"first.weight": "A"}

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.W_q = nn.Linear(2, 2)
        self.s = nn.Parameter(torch.zeros(2))


def test_a_part_names_its_parameters_or_they_keep_their_names() -> None:
    told = {name: str(symbol) for name, symbol in symbols_of(Own()).items()}
    assert told == {
        "s": "s",
        "first.weight": "A",
        "first.bias": "b of first",
        "W_q.weight": "W_q",
        "W_q.bias": "b_q",
    }


def test_layers_are_counted_from_one() -> None:
    layers = nn.ModuleList(Own() for _ in range(2))
    assert layer_symbols(layers)["layers.1.first.weight"] == Symbol("A", "layer 2")


@pytest.mark.parametrize("name", shipped())
def test_every_parameter_of_a_model_has_a_symbol_and_a_part(name: str) -> None:
    network = meta_network(load_recipe(name), {})
    symbols = network.parameter_symbols()
    for parameter, _ in network.named_parameters():
        assert symbols[parameter].name
        assert symbols[parameter].part


def test_every_kind_writes_its_equation() -> None:
    view = View(4)
    scopes = [Global(), LocalMonotonic(view, reach=2), LocalPredicted(view, query=4, size=3, reach=2)]
    kinds: list[Any] = [*(normalisers[name]() for name in normalisers), Soft(), Hard(), StraightThrough()]
    kinds += [cells[name]({"x": 3}, 4) for name in cells] + [scores[name](4, 4) for name in scores]
    for kind in kinds:
        assert " = " in kind.equation(), kind
    assert [len(scope.equations()) for scope in scopes] == [0, 2, 2]
