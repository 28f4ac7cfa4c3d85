"""Dropout drops the share it is told to, scales the rest, and passes gradients where it passed numbers."""

from __future__ import annotations

import pytest
import torch

from seq2see.dropout import dropout


@pytest.mark.parametrize("share", [0.1, 0.4, 0.75])
def test_the_share_is_dropped_and_the_mean_stays(share: float) -> None:
    dropped = dropout(torch.ones(500, 401), share, True)
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / (1 - share)], rel=1e-3)


def test_neighbours_are_dropped_independently() -> None:
    """All four numbers that come from the same random word."""
    dropped = (dropout(torch.ones(20_000, 4), 0.5, True) == 0).float()
    correlations = torch.corrcoef(dropped.t())
    assert (correlations - torch.eye(4)).abs().max() < 0.03
    assert (dropped.mean(0) - 0.5).abs().max() < 0.02


def test_gradients_pass_where_numbers_did() -> None:
    x = torch.ones(7, 5, requires_grad=True)
    dropped = dropout(x, 0.5, True)
    dropped.sum().backward()
    assert torch.equal(x.grad, dropped.detach())  # type: ignore[arg-type]


def test_the_seed_fixes_what_is_dropped() -> None:
    masks = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(dropout(torch.ones(40), 0.5, True))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_nothing_is_dropped_in_predictions_or_of_a_share_of_none() -> None:
    x = torch.randn(3, 4)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x
    assert not dropout(x, 1.0, True).any()
    assert dropout(torch.empty(0, 4), 0.5, True).shape == (0, 4)
