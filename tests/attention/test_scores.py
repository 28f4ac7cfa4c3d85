"""Every score against its equation, written down once more in NumPy from the specification."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seq2see.attention import Candidates, Score, build_score, register, scores
from seq2see.attention.scores import Concat, Cosine, Deep, Location, options
from seq2see.errors import UserError
from seq2see.looks import Layout
from seq2see.recipe import load_recipe

Array = NDArray[np.float64]
QUERY, KEY, PLACES = 4, 6, 5
SAME_SIZE = {"dot", "scaled-dot", "cosine"}
CASES: dict[str, tuple[str, dict[str, object]]] = {
    **{name: (name, {}) for name in scores.settings},
    "cosine with temperature": ("cosine", {"learned_temperature": True}),
    "deep of one layer": ("deep", {"layers": 1, "size": 3}),
    "deep of three layers": ("deep", {"layers": 3, "size": 3}),
    "coverage of an even width": ("coverage", {"kernel": 4, "filters": 3, "size": 3}),
    "location of exactly so many": ("location", {"positions": PLACES}),
}


def array(x: Tensor) -> Array:
    return x.detach().double().numpy()


def weight(score: Score, path: str) -> Array:
    return array(dict(score.named_parameters())[path])


def mlp(score: Score, x: Array) -> Array:
    layers = ["first", *(f"hidden.{i}" for i in range(len(score.hidden) if isinstance(score, Deep) else 0))]
    for layer in layers:
        x = np.tanh(weight(score, f"{layer}.weight") @ x + weight(score, f"{layer}.bias"))
    return weight(score, "out.weight") @ x + weight(score, "out.bias")


def temperature(score: Score) -> float:
    return score.temperature.item() if isinstance(score, Cosine) and score.temperature is not None else 1.0


def convolved(score: Score, looked: Array) -> Array:
    """f = F * looked, place by place: (places, filters)."""
    filters = weight(score, "F")
    before, width = (filters.shape[1] - 1) // 2, filters.shape[1]
    rows = []
    for j in range(len(looked)):
        reached = [looked[i] if 0 <= i < len(looked) else 0.0 for i in range(j - before, j - before + width)]
        rows.append(filters @ np.array(reached))
    return np.stack(rows)


EQUATIONS: dict[str, Callable[[Score, Array, Array, int], float | Array]] = {
    "dot": lambda score, q, k, j: q @ k,
    "scaled-dot": lambda score, q, k, j: q @ k / np.sqrt(len(k)),
    "cosine": lambda score, q, k, j: temperature(score) * (q @ k) / (np.linalg.norm(q) * np.linalg.norm(k)),
    "general": lambda score, q, k, j: q @ weight(score, "W.weight") @ k,
    "additive": lambda score, q, k, j: (
        weight(score, "v.weight") @ np.tanh(weight(score, "W_q.weight") @ q + weight(score, "W_k.weight") @ k)
    ),
    "concat": lambda score, q, k, j: (
        weight(score, "v.weight") @ np.tanh(weight(score, "W.weight") @ np.concatenate([q, k]))
    ),
    "deep": lambda score, q, k, j: mlp(score, np.concatenate([q, k])),
    "location": lambda score, q, k, j: (weight(score, "W.weight") @ q)[j],
    "coverage": lambda score, q, k, j: (
        weight(score, "v.weight")
        @ np.tanh(
            weight(score, "W_q.weight") @ q
            + weight(score, "W_k.weight") @ k
            + weight(score, "W_f.weight") @ convolved(score, array(past()))[j]
        )
    ),
    "static": lambda score, q, k, j: (
        weight(score, "v.weight") @ np.tanh(weight(score, "W_k.weight") @ k + weight(score, "W_k.bias"))
    ),
    "uniform": lambda score, q, k, j: 0.0,
}


def made(case: str, *, query: int = QUERY, key: int = KEY) -> Score:
    """A score with random parameters; query and key differ in size wherever they may."""
    name, settings = CASES[case]
    score = build_score(name, key if name in SAME_SIZE else query, key, settings)
    for parameter in score.parameters():
        nn.init.normal_(parameter)
    return score


def drawn(score: Score, case: str, *, batch: int = 3, queries: int = 2) -> tuple[Tensor, Tensor]:
    size = KEY if CASES[case][0] in SAME_SIZE else QUERY
    return torch.randn(batch, queries, size), torch.randn(batch, PLACES, KEY)


def past() -> Tensor:
    """Earlier looks, the same whenever they are asked for."""
    return torch.arange(PLACES, dtype=torch.float32).sin().abs()


def asked(score: Score, query: Tensor, states: Tensor) -> Tensor:
    """Energies as an attention asks for them, some looks having been taken before."""
    looked = past()[: states.shape[1]].expand(*query.shape[:2], -1) if score.remembers else None
    energies: Tensor = score(query, Candidates(score.keys(states), Layout(), past=looked))
    return energies


@pytest.mark.parametrize("case", CASES)
def test_a_score_is_its_equation(case: str) -> None:
    score = made(case)
    query, states = drawn(score, case)
    energies = asked(score, query, states)
    assert energies.shape == (3, 2, PLACES)
    for b in range(3):
        for t in range(2):
            for j in range(PLACES):
                expected = EQUATIONS[CASES[case][0]](score, array(query[b, t]), array(states[b, j]), j)
                np.testing.assert_allclose(energies[b, t, j].item(), np.squeeze(expected), atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_batch_gives_what_each_row_gives_alone(case: str) -> None:
    score = made(case)
    query, states = drawn(score, case)
    together = asked(score, query, states)
    for b in range(3):
        for t in range(2):
            alone = asked(score, query[b : b + 1, t : t + 1], states[b : b + 1])
            torch.testing.assert_close(alone[0, 0], together[b, t], atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_every_parameter_of_a_score_learns(case: str) -> None:
    score = made(case)
    query, states = drawn(score, case)
    weights = torch.softmax(asked(score, query, states), dim=-1)
    if weights.requires_grad:
        (weights * torch.randn_like(weights)).sum().backward()
    for name, parameter in score.named_parameters():
        if (name, CASES[case][0]) == ("out.bias", "deep"):
            continue  # adds the same to every energy: softmax does not see it
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 1e-6, name


@pytest.mark.parametrize("name", sorted(SAME_SIZE))
def test_products_of_query_and_place_need_one_size(name: str) -> None:
    with pytest.raises(UserError, match=rf"attention\.score {name} needs a query and places of one size, got 4 and 6"):
        build_score(name, 4, 6)


def test_location_refuses_inputs_longer_than_it_knows() -> None:
    score = Location(QUERY, KEY, positions=4)
    asked(score, torch.zeros(1, 1, QUERY), torch.zeros(1, 4, KEY))
    with pytest.raises(UserError, match=r"at most 4 places, got one of 5; raise attention\.positions"):
        asked(score, torch.zeros(1, 1, QUERY), torch.zeros(1, 5, KEY))


def test_location_does_not_see_what_places_hold() -> None:
    score = made("location")
    query, states = drawn(score, "location")
    assert asked(score, query, states).equal(asked(score, query, -3 * states))
    assert score.ordered


@pytest.mark.parametrize("name", ["static", "uniform"])
def test_the_controls_do_not_depend_on_the_query(name: str) -> None:
    score = made(name)
    query, states = drawn(score, name)
    assert asked(score, query, states).equal(asked(score, -3 * query, states))


def test_the_keys_half_of_a_product_is_taken_once_per_input() -> None:
    assert Concat(QUERY, KEY, size=3).keys(torch.zeros(1, PLACES, KEY)).shape == (1, PLACES, 3)
    assert Deep(QUERY, KEY, size=3).keys(torch.zeros(1, PLACES, KEY)).shape == (1, PLACES, 3)


def test_an_unknown_score_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match=r"unknown score 'aditive' \(did you mean 'additive'\?\); allowed: dot, "):
        build_score("aditive", 4, 4)


def test_the_settings_of_scores_are_the_arguments_of_their_constructors() -> None:
    for name in scores:
        assert set(scores.settings[name].model_fields) == options(name), name


def test_every_setting_of_a_score_is_a_key_of_the_recipe_with_the_same_default() -> None:
    for name in scores:
        for option in options(name):
            default = inspect.signature(scores[name].__init__).parameters[option].default
            assert scores.settings[name].model_fields[option].default == default, (name, option)


@pytest.fixture
def _own_scores() -> Iterator[None]:
    """What a test registers is forgotten after it."""
    kinds, known = dict(scores._kinds), dict(scores.settings)
    yield
    scores._kinds = kinds
    scores.settings.clear()
    scores.settings.update(known)


@pytest.mark.usefixtures("_own_scores")
def test_a_score_of_ones_own_can_be_asked_for_by_name() -> None:
    @register("nearest")
    class Nearest(Score):
        """e_j = -|q - k_j|"""

        def energies(self, query: Tensor, keys: Tensor) -> Tensor:
            return -torch.cdist(query, keys)

    assert load_recipe({"inputs": {"source": {}}, "attention": "nearest"}).attention.score == "nearest"
    assert isinstance(build_score("nearest", 4, 4), Nearest)
