"""The exponential moving average of the weights: against its formula, in the model that is kept, and when resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from seq2see.errors import UserError
from seq2see.training.optimizer import MovingAverage
from tests.training.tiny import ROWS, last_checkpoint, run, same, weights, words


def with_ema(**settings: Any) -> dict[str, Any]:
    return {**ROWS, "training": {**ROWS["training"], "ema": 0.9, **settings}}


def test_it_is_the_weighted_sum_of_all_weights_so_far() -> None:
    network = nn.Linear(2, 1)
    average = MovingAverage(network, 0.5)
    expected = network.weight.detach().clone()
    for update in range(1, 8):
        with torch.no_grad():
            network.weight += update
        average.update(update)
        decay = min(0.5, (1 + update) / (10 + update))
        expected = decay * expected + (1 - decay) * network.weight.detach()
    assert torch.allclose(average.tensors["weight"], expected)
    assert average.tensors["weight"].ne(network.weight).all()


def test_the_network_gets_its_own_weights_back() -> None:
    network = nn.Linear(2, 1)
    average, first = MovingAverage(network, 0.5), network.weight.detach().clone()
    with torch.no_grad():
        network.weight += 1
    own = network.weight.detach().clone()
    with average.swapped_in():
        assert torch.equal(network.weight, first)
    assert torch.equal(network.weight, own)


def test_the_model_has_the_averages_and_training_goes_on_with_the_weights(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    recipe = with_ema(updates=20, report_every=20)
    run(recipe, data, tmp_path / "averaged")
    run({**ROWS, "training": {**ROWS["training"], "updates": 20, "report_every": 20}}, data, tmp_path / "plain")
    averaged, plain = last_checkpoint(tmp_path / "averaged"), last_checkpoint(tmp_path / "plain")
    assert same(averaged.weights, plain.weights)  # averaging does not touch the training itself
    kept = weights(tmp_path / "averaged")
    assert averaged.averages.keys() <= kept.keys()
    assert all(torch.equal(kept[name], tensor) for name, tensor in averaged.averages.items())
    assert not same(kept, weights(tmp_path / "plain"))


def test_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    how = {"report_every": 10, "schedule": "constant", "warmup": 0}
    run(with_ema(updates=30, **how), data, tmp_path / "whole")
    run(with_ema(updates=15, **how), data, tmp_path / "parts")
    run(None, None, tmp_path / "parts", resume=True, updates=30)
    whole, parts = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "parts")
    assert same(whole.averages, parts.averages)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    with pytest.raises(UserError, match=r"training\.ema"):
        run(None, None, tmp_path / "parts", ["training.ema=0.5"], resume=True, updates=40)
