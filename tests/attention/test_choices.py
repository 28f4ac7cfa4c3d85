"""Hard looks: the likeliest place at rest, draws by their weights in training, and what each estimator passes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import Attention, build_score
from seq2see.attention.choices import Hard, StraightThrough, choices
from seq2see.attention.scopes import LocalMonotonic
from seq2see.errors import UserError
from seq2see.memory import Places, View

CHANCES = torch.tensor([0.4, 0.0, 0.3, 0.2, 0.1])
DRAWS = 20_000
CHI_SQUARE_3_AT_1_PERCENT = 11.345
"""Three degrees of freedom: four places that can be drawn. Exceeded by chance once in a hundred seeds."""
CHI_SQUARE_9_AT_1_PERCENT = 21.666


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("choice", [Hard(), StraightThrough()], ids=["score-function", "gumbel"])
def test_draws_follow_the_weights(choice: nn.Module) -> None:
    weights = CHANCES.expand(1, DRAWS, -1)
    chosen = choice.train()(weights, generator=generator(3))
    counts = torch.bincount(chosen.place[0], minlength=5).double()
    assert counts[1] == 0
    real = CHANCES > 0
    expected = DRAWS * CHANCES[real].double()
    assert float(((counts[real] - expected).square() / expected).sum()) < CHI_SQUARE_3_AT_1_PERCENT
    torch.testing.assert_close(chosen.shares.sum(-1), torch.ones(1, DRAWS))
    torch.testing.assert_close(chosen.log_prob, CHANCES[chosen.place].log())


@pytest.mark.parametrize("estimator", ["score-function", "gumbel"])
def test_draws_follow_the_weights_in_bfloat16_too(estimator: str) -> None:
    """Of 1,000 places, ten runs of a hundred: coarse weights or noise would tie, and ties fall on the first runs."""
    places, draws, runs = 1000, 4000, 10
    attention = Attention(
        build_score("dot", 6, 6), choice=Hard() if estimator == "score-function" else StraightThrough()
    ).train()
    given = Places(torch.randn(1, places, 6, generator=generator(1)), torch.ones(1, places, dtype=torch.bool))
    query = (0.5 * torch.randn(1, 1, 6, generator=generator(2))).expand(-1, draws, -1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        look = attention(query, attention.prepare(given), generator=generator(3))
    assert look.energies.dtype == torch.bfloat16
    expected = draws * torch.softmax(look.energies[0, 0].double(), -1).view(runs, -1).sum(1)
    counts = torch.bincount(look.place[0], minlength=places).view(runs, -1).sum(1).double()
    assert float(((counts - expected).square() / expected).sum()) < CHI_SQUARE_9_AT_1_PERCENT
    chances = torch.softmax(look.energies[0, 0].double(), -1)
    torch.testing.assert_close(look.place_log_prob[0].double(), chances[look.place[0]].log(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("choice", [Hard(), StraightThrough()], ids=["score-function", "gumbel"])
def test_at_rest_the_likeliest_place_is_chosen(choice: nn.Module) -> None:
    weights = torch.softmax(torch.randn(4, 6, 9), -1)
    chosen = choice.eval()(weights)
    assert chosen.place.equal(weights.argmax(-1))
    assert chosen.shares.equal(nn.functional.one_hot(weights.argmax(-1), 9).float())


@pytest.mark.parametrize("choice", [Hard(), StraightThrough()], ids=["score-function", "gumbel"])
def test_a_generator_decides_on_the_draws(choice: nn.Module) -> None:
    weights = CHANCES.expand(1, 50, -1)
    one, same, other = (choice.train()(weights, generator=generator(seed)).place for seed in (1, 1, 2))
    assert one.equal(same)
    assert not one.equal(other)


@pytest.mark.parametrize("choice", [Hard(), StraightThrough()], ids=["score-function", "gumbel"])
def test_where_no_place_is_real_none_is_chosen(choice: nn.Module) -> None:
    for mode in (True, False):
        weights = torch.zeros(1, 2, 4, requires_grad=True)
        chosen = choice.train(mode)(weights)
        assert (chosen.shares == 0).all()
        assert (chosen.log_prob == 0).all()
        if chosen.shares.requires_grad:
            chosen.shares.sum().backward()
            assert torch.isfinite(weights.grad).all()


def test_the_score_function_passes_nothing_through_the_draw() -> None:
    weights = torch.softmax(torch.randn(2, 3, 5, requires_grad=True), -1)
    chosen = Hard().train()(weights)
    assert chosen.by_score
    assert not chosen.shares.requires_grad
    assert chosen.log_prob.requires_grad


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_straight_through_gradient_is_the_relaxed_draws(temperature: float) -> None:
    """d shares / d energies as if shares were softmax((log a + g) / temperature), g drawn by the same generator."""
    energies, upstream = torch.randn(4, 2, 6), torch.randn(4, 2, 6)
    ours = energies.clone().requires_grad_()
    chosen = StraightThrough(temperature).train()(torch.softmax(ours, -1), generator=generator(5))
    assert set(chosen.shares.detach().round(decimals=5).unique().tolist()) == {0.0, 1.0}
    chosen.shares.backward(upstream)

    uniform = torch.rand(energies.shape, generator=generator(5)).double()
    gumbel = torch.from_numpy(-np.log(-np.log(uniform.numpy())))
    theirs = energies.clone().double().requires_grad_()
    relaxed = torch.softmax((torch.log_softmax(theirs, -1) + gumbel) / temperature, -1)
    assert chosen.place.equal(relaxed.argmax(-1))
    relaxed.backward(upstream.double())
    torch.testing.assert_close(ours.grad, theirs.grad.float(), atol=1e-5, rtol=1e-4)


def looked(local: bool, **given: Tensor) -> tuple[Attention, Places, Tensor]:
    scope = LocalMonotonic(View(6), reach=1) if local else None
    attention = Attention(build_score("additive", 6, 6), scope=scope, choice=Hard())
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    return attention, Places(torch.randn(2, 5, 6), mask), torch.randn(2, 3, 6)


@pytest.mark.parametrize("local", [False, True])
def test_the_context_is_the_chosen_place_itself(local: bool) -> None:
    attention, places, query = looked(local)
    prepared = attention.prepare(places)
    for mode in (True, False):
        look = attention.train(mode)(query, prepared, positions=torch.arange(3))
        for row in range(2):
            torch.testing.assert_close(look.context[row], places.states[row, look.place[row]])
            assert places.mask[row, look.place[row]].all()
        chance = look.dense().gather(-1, look.place[..., None]).squeeze(-1)
        torch.testing.assert_close(look.place_log_prob, chance.log())
        if not mode:
            assert look.place.equal(look.dense().argmax(-1))


@pytest.mark.parametrize("local", [False, True])
def test_a_forced_place_is_looked_at_and_keeps_its_own_probability(local: bool) -> None:
    attention, places, query = looked(local)
    prepared = attention.prepare(places)
    free = attention.eval()(query, prepared, positions=torch.arange(3))
    forced = torch.full((2, 3, 5), torch.nan)
    forced[0, 1] = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    look = attention(query, prepared, positions=torch.arange(3), forced=forced)
    assert look.place[0, 1] == 2
    torch.testing.assert_close(look.context[0, 1], places.states[0, 2])
    torch.testing.assert_close(look.place_log_prob[0, 1], free.dense()[0, 1, 2].log())
    others = torch.ones(2, 3, dtype=torch.bool)
    others[0, 1] = False
    assert look.place[others].equal(free.place[others])
    torch.testing.assert_close(look.context[others], free.context[others])
    torch.testing.assert_close(look.place_log_prob[others], free.place_log_prob[others])


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown choice 'firm'.*allowed: soft, hard"):
        choices["firm"]
