"""What looks cost, against loops over rows, steps and places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2see.attention import Look
from seq2see.recipe.schema import LossSettings
from seq2see.training.losses import look_terms

PLACES = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
STEPS = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]], dtype=torch.bool)


def looks(*, heads: int = 0) -> Look:
    shape = (3, 5, heads, 4) if heads else (3, 5, 4)
    mask = PLACES[:, None, None] if heads else PLACES[:, None]
    energies = torch.randn(shape).masked_fill(~mask, -1e9)
    weights = (torch.softmax(energies, -1) * mask).requires_grad_()
    return Look(torch.zeros(3, 5, 2), weights, None, 4, heads=heads)


def expected(look: Look) -> dict[str, float]:
    found = dict.fromkeys(("doubly_stochastic", "entropy", "coverage"), 0.0)
    for row in range(3):
        real, count = int(STEPS[row].sum()), int(PLACES[row].sum())
        a = look.dense()[row].detach().double().numpy()
        for j in range(count):
            found["doubly_stochastic"] += (real / count - sum(a[t, j] for t in range(real))) ** 2
            for t in range(real):
                found["entropy"] -= a[t, j] * np.log(a[t, j])
                found["coverage"] += min(a[t, j], sum(a[i, j] for i in range(t)))
    return found


@pytest.mark.parametrize("heads", [0, 2])
def test_terms_are_their_equations(heads: int) -> None:
    look = looks(heads=heads)
    settings = LossSettings(doubly_stochastic=0.5, entropy=2.0, coverage=3.0)
    terms = look_terms(settings, look, places=PLACES, steps=STEPS)
    for name, value in expected(look).items():
        assert terms[name].item() == pytest.approx(getattr(settings, name) * value, rel=1e-4), name
    sum(terms.values(), torch.zeros(())).backward()
    assert look.weights.grad is not None
    assert torch.isfinite(look.weights.grad).all()


def test_terms_of_a_window_are_those_of_all_places() -> None:
    numbers = torch.tensor([2, 0, 1]).expand(3, 5, 3)
    weights = torch.softmax(torch.randn(3, 5, 3), -1)
    window = Look(torch.zeros(3, 5, 2), weights, None, 4, numbers)
    settings, everywhere = LossSettings(doubly_stochastic=1.0, entropy=1.0, coverage=1.0), torch.ones_like(PLACES)
    spread = Look(window.context, window.dense(), None, 4)
    ours = look_terms(settings, window, places=everywhere, steps=STEPS)
    theirs = look_terms(settings, spread, places=everywhere, steps=STEPS)
    for name, term in ours.items():
        torch.testing.assert_close(term, theirs[name])


@pytest.mark.parametrize("name", ["doubly_stochastic", "entropy", "coverage"])
def test_only_the_terms_that_are_asked_for_are_there(name: str) -> None:
    assert look_terms(LossSettings(), looks(), places=PLACES, steps=STEPS) == {}
    terms = look_terms(LossSettings.model_validate({name: 0.1}), looks(), places=PLACES, steps=STEPS)
    assert set(terms) == {name}
