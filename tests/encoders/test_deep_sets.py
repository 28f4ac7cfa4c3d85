"""Deep sets: phi and rho by hand, every pooling, rows in batches, and what learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from seq2see.encoders import DeepSetsEncoder, Encoded
from seq2see.encoders.deep_sets import DeepSetsEncoderSettings

IDS = torch.tensor([[5, 6, 7, 5], [8, 4, 0, 0], [0, 0, 0, 0]])
MASK = IDS > 0
POOLED = {"sum": np.sum, "mean": np.mean, "max": np.max}


def encoder(**given: Any) -> DeepSetsEncoder:
    torch.manual_seed(1)
    raw = {"size": 6, "summary_layers": 2, "embedding": {"size": 3}, **given}
    made = DeepSetsEncoder(DeepSetsEncoderSettings.model_validate(raw), symbols=10).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.6)
    return made


def mapped(made: DeepSetsEncoder, name: str, x: np.ndarray) -> np.ndarray:
    """W_2 max(W_1 x + b_1, 0) + b_2, for as many layers as there are."""
    layers = [(one.weight.detach().numpy(), one.bias.detach().numpy()) for one in getattr(made, name)]
    for number, (weight, bias) in enumerate(layers):
        x = (np.maximum(x, 0) if number else x) @ weight.T + bias
    return x


@pytest.mark.parametrize("pooling", POOLED)
@pytest.mark.parametrize("layers", [(1, 0), (2, 1), (3, 2)])
def test_it_is_the_equation(pooling: str, layers: tuple[int, int]) -> None:
    made = encoder(pooling=pooling, layers=layers[0], summary_layers=layers[1])
    found: Encoded = made(IDS, MASK)
    table = made.embedding.E.detach().numpy()
    for row, length in enumerate([4, 2]):
        states = mapped(made, "phi", table[IDS[row, :length].numpy()])
        np.testing.assert_allclose(found.places.states[row, :length].detach(), states, atol=1e-5)
        summary = mapped(made, "rho", POOLED[pooling](states, axis=0))
        np.testing.assert_allclose(found.summary[row].detach(), summary, atol=1e-5)
    np.testing.assert_allclose(found.summary[2].detach(), mapped(made, "rho", np.zeros(6)), atol=1e-5)


@pytest.mark.parametrize(("pooling", "counts"), [("sum", True), ("mean", True), ("max", False)])
def test_an_element_that_is_there_twice_counts_twice(pooling: str, counts: bool) -> None:
    made, both = encoder(pooling=pooling), torch.ones(1, 3, dtype=torch.bool)
    once, twice = made(torch.tensor([[5, 6]]), both[:, :2]).summary, made(torch.tensor([[5, 6, 5]]), both).summary
    assert torch.allclose(once, twice, atol=1e-5) != counts
    four = made(torch.tensor([[5, 6, 5, 6]]), torch.ones(1, 4, dtype=torch.bool)).summary
    assert torch.allclose(once, four, atol=1e-5) == (pooling != "sum")


@pytest.mark.parametrize("pooling", POOLED)
def test_every_parameter_learns_and_padding_does_not(pooling: str) -> None:
    made = encoder(pooling=pooling)
    encoded = made(IDS, MASK)
    (encoded.places.states[MASK].square().sum() + encoded.summary.square().sum()).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name
    assert made.embedding.E.grad is not None
    assert (made.embedding.E.grad[0] == 0).all()


def test_dropout_is_on_what_every_layer_gives() -> None:
    made = encoder(dropout=0.5, layers=1, summary_layers=0, pooling="sum").train()
    torch.manual_seed(3)
    states = made(IDS, MASK).places.states
    assert (states == 0).float().mean() == pytest.approx(0.5, abs=0.2)
