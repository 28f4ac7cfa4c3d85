"""The output layer: probabilities, the loss against its formula, padding, tied weights, class weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.decoders import Ready, SoftmaxHead, State, Step

FEATURES, SYMBOLS = 6, 5
MASK = torch.tensor([[1, 1, 1], [1, 0, 0]], dtype=torch.bool)
TARGETS = torch.tensor([[4, 2, 3], [1, 0, 0]])
READY = Ready(rows=2)


def step(features: Tensor) -> Step:
    return Step(State(2), features)


def head(**settings: object) -> SoftmaxHead:
    made = SoftmaxHead(FEATURES, SYMBOLS, **settings)  # type: ignore[arg-type]
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.eval()


@pytest.mark.parametrize("readout", [0, 4])
def test_probabilities_are_the_softmax_of_the_features(readout: int) -> None:
    made, features = head(readout=readout), torch.randn(2, FEATURES)
    inner = features.double().numpy()
    if made.W_o is not None:
        inner = np.tanh(inner @ made.W_o.weight.detach().double().numpy().T + made.W_o.bias.detach().double().numpy())
    powers = np.exp(inner @ made.V.detach().double().numpy().T + made.c.detach().double().numpy())
    given = made.log_probs(step(features), READY).detach()
    np.testing.assert_allclose(given.exp(), powers / powers.sum(-1, keepdims=True), atol=1e-5)
    torch.testing.assert_close(given.exp().sum(-1), torch.ones(2))


def test_a_whole_target_has_the_probabilities_of_its_steps() -> None:
    made, features = head(), torch.randn(2, 3, FEATURES)
    whole = made.log_probs(step(features), READY)
    for t in range(3):
        torch.testing.assert_close(whole[:, t], made.log_probs(step(features[:, t]), READY))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 0.5, 2.0, 3.0, 0.1])], ids=["plain", "weighted"])
def test_the_loss_is_minus_the_sum_of_log_probabilities(smoothing: float, weights: Tensor | None) -> None:
    """Smoothed, a share of the target is spread over all symbols; a class counts by its weight; padding not at all."""
    made, features = head(), torch.randn(2, 3, FEATURES)
    log_p = made.log_probs(step(features), READY)
    scale = torch.ones(SYMBOLS) if weights is None else weights
    expected = torch.zeros(())
    for b, t in MASK.nonzero().tolist():
        true = int(TARGETS[b, t])
        wanted = torch.full((SYMBOLS,), smoothing / SYMBOLS)
        wanted[true] += 1 - smoothing
        expected = expected - (wanted * scale * log_p[b, t]).sum()
    given = made.loss(step(features), READY, TARGETS, mask=MASK, smoothing=smoothing, weights=weights)
    torch.testing.assert_close(given, expected)


def test_padding_has_no_part_in_loss_or_gradient() -> None:
    made, features = head(), torch.randn(2, 3, FEATURES, requires_grad=True)
    loss = made.loss(step(features), READY, TARGETS, mask=MASK)
    loss.backward()
    assert features.grad is not None
    assert (features.grad[~MASK] == 0).all()
    assert (features.grad[MASK] != 0).all()
    with torch.no_grad():
        features[~MASK] = torch.nan
        assert made.loss(step(features), READY, TARGETS, mask=MASK).equal(loss.detach())


def test_a_label_has_a_loss_of_one_step() -> None:
    made, features = head(), torch.randn(2, FEATURES)
    labels = torch.tensor([3, 0])
    loss = made.loss(step(features), READY, labels, mask=torch.ones(2, dtype=torch.bool))
    torch.testing.assert_close(loss, -made.log_probs(step(features), READY)[[0, 1], labels].sum())


def test_tied_weights_are_one_tensor() -> None:
    E = nn.Parameter(torch.randn(SYMBOLS, 4))
    made = SoftmaxHead(FEATURES, SYMBOLS, tied=E)
    assert made.V is E
    assert made.W_o is not None
    assert made.W_o.out_features == 4
    assert made.logits(torch.randn(2, FEATURES)).shape == (2, SYMBOLS)


@pytest.mark.parametrize(("symbols", "fans"), [(50, 50 + 400), (20_000, 400 + 400)])
def test_rows_do_not_get_shorter_with_more_symbols_than_numbers(symbols: int, fans: int) -> None:
    """The variance is Glorot's, 2 / (fan in + fan out), where the fan out counts at most the numbers of a row."""
    head = SoftmaxHead(400, symbols)
    assert float(head.V.detach().var()) == pytest.approx(2 / fans, rel=0.05)
