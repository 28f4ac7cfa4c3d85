"""A recurrent encoder that looks back: its equations once more in NumPy, padding, the batch, gradients and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from seq2see.attention import scores
from seq2see.attention.build import reading_scores
from seq2see.encoders import RecurrentEncoder
from seq2see.encoders.recurrent import RecurrentEncoderSettings
from seq2see.errors import UserError

Array = NDArray[np.float64]
SYMBOLS, SIZE, WIDTH = 9, 4, 3
IDS = torch.tensor([[4, 5, 6, 7], [8, 4, 0, 0], [6, 0, 0, 0], [0, 0, 0, 0]])
MASK = IDS > 0
FITTING = ("dot", "scaled-dot", "cosine", "general", "additive", "concat", "deep", "static", "uniform")
FORMS: list[dict[str, Any]] = [{"self_attention": score} for score in FITTING] + [
    {"self_attention": "additive", "cell": "lstm", "bidirectional": False, "layers": 2},
    {"self_attention": "general", "cell": "rnn", "layers": 2},
    {"self_attention": "scaled-dot", "cell": "gru", "reset": "before"},
]
NAMES = ["-".join(map(str, form.values())) for form in FORMS]


def encoder(**settings: Any) -> RecurrentEncoder:
    torch.manual_seed(5)
    settings = {"size": SIZE, "embedding": {"size": WIDTH}, **settings}
    made = RecurrentEncoder(RecurrentEncoderSettings.model_validate(settings), symbols=SYMBOLS)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.7)
    return made.eval()


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def energies(score: str) -> Callable[[Array, Array, dict[str, Array]], float]:
    """score(q, k) with the score's own weights, as the specification writes them."""
    formulas: dict[str, Callable[[Array, Array, dict[str, Array]], Any]] = {
        "dot": lambda q, k, w: q @ k,
        "scaled-dot": lambda q, k, w: q @ k / np.sqrt(SIZE),
        "cosine": lambda q, k, w: q @ k / (np.linalg.norm(q) * np.linalg.norm(k)),
        "general": lambda q, k, w: q @ w["W.weight"] @ k,
        "additive": lambda q, k, w: w["v.weight"][0] @ np.tanh(w["W_q.weight"] @ q + w["W_k.weight"] @ k),
        "concat": lambda q, k, w: w["v.weight"][0] @ np.tanh(w["W.weight"] @ np.concatenate([q, k])),
        "deep": lambda q, k, w: (
            w["out.weight"][0]
            @ np.tanh(
                w["hidden.0.weight"] @ np.tanh(w["first.weight"] @ np.concatenate([q, k]) + w["first.bias"])
                + w["hidden.0.bias"]
            )
            + w["out.bias"][0]
        ),
        "static": lambda q, k, w: w["v.weight"][0] @ np.tanh(w["W_k.weight"] @ k + w["W_k.bias"]),
        "uniform": lambda q, k, w: 0.0,
    }
    return formulas[score]


def by_hand(made: RecurrentEncoder, score: str, x: Array, direction: int) -> tuple[Array, Array]:
    """h_1 .. h_M of one direction and its weights (M, M), in the order of the input, by a GRU that looks back."""
    named = {name: value.detach().double().numpy() for name, value in made.named_parameters()}
    p = {name.removeprefix(f"layers.0.{direction}."): value for name, value in named.items()}
    own = {name.removeprefix("inward.score."): value for name, value in p.items()}
    score_of = energies(score)
    order = range(len(x)) if direction == 0 else range(len(x) - 1, -1, -1)
    h, weights, s, before = np.zeros((len(x), SIZE)), np.zeros((len(x), len(x))), np.zeros(SIZE), list[int]()
    for j in order:
        c = np.zeros(SIZE)
        if before:
            q = p["inward.Q_x.weight"] @ x[j] + p["inward.Q_h.weight"] @ s if "inward.Q_x.weight" in p else np.zeros(0)
            powers = np.exp([score_of(q, h[i], own) for i in before])
            weights[j, before] = powers / powers.sum()
            c = weights[j] @ h
        wx = p["cell.W.x"] @ x[j] + p["cell.W.c"] @ c + p["cell.b"]
        us = p["cell.U"] @ s
        r, z = logistic(wx[:SIZE] + us[:SIZE]), logistic(wx[SIZE : 2 * SIZE] + us[SIZE : 2 * SIZE])
        n = np.tanh(wx[2 * SIZE :] + r * (us[2 * SIZE :] + p["cell.b_U"]))
        s = h[j] = (1 - z) * n + z * s
        before.append(j)
    return h, weights


@pytest.mark.parametrize("score", FITTING)
def test_it_is_the_equation(score: str) -> None:
    made = encoder(self_attention=score)
    encoded = made(IDS, MASK, maps=True)
    embedded = made.embedding.E.detach().double().numpy()  # type: ignore[union-attr]
    for row, length in enumerate((4, 2, 1)):
        ways = [by_hand(made, score, embedded[IDS[row, :length].tolist()], direction) for direction in (0, 1)]
        wanted = np.concatenate([h for h, _ in ways], axis=1)
        np.testing.assert_allclose(encoded.places.states[row, :length].detach(), wanted, atol=1e-5)
        np.testing.assert_allclose(
            encoded.summary[row].detach(), np.concatenate([ways[0][0][-1], ways[1][0][0]]), atol=1e-5
        )
        for name, (_, weights) in zip(("self-1-forwards", "self-1-backwards"), ways, strict=True):
            np.testing.assert_allclose(encoded.maps[name].weights[row, :length, :length], weights, atol=1e-5)


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_padding_and_the_rest_of_a_batch_change_nothing(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK, maps=True)
    noise = torch.cat([torch.where(MASK, IDS, 5), torch.full((4, 2), 8)], 1)
    wider = made(noise, torch.cat([MASK, torch.zeros(4, 2) > 0], 1), maps=True)
    torch.testing.assert_close(wider.summary, encoded.summary, atol=1e-6, rtol=0)
    torch.testing.assert_close(wider.places.states[:, :4], encoded.places.states, atol=1e-6, rtol=0)
    assert (encoded.places.states[~MASK] == 0).all()
    for row, length in enumerate((4, 2, 1)):
        alone = made(IDS[row : row + 1, :length], MASK[row : row + 1, :length], maps=True)
        torch.testing.assert_close(alone.places.states[0], encoded.places.states[row, :length], atol=1e-6, rtol=0)
        for name, one in alone.maps.items():
            torch.testing.assert_close(one.weights[0], encoded.maps[name].weights[row, :length, :length])


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_each_state_looks_at_those_read_before_it_and_at_nothing_else(form: dict[str, Any]) -> None:
    made = encoder(**form)
    maps = made(IDS, MASK, maps=True).maps
    layers = range(1, form.get("layers", 1) + 1)
    ways = ("-forwards", "-backwards") if form.get("bidirectional", True) else ("",)
    assert list(maps) == [f"self-{layer}{way}" for layer in layers for way in ways]
    lengths = MASK.sum(1)
    for name, one in maps.items():
        backwards = name.endswith("backwards")
        for row, length in enumerate(lengths.tolist()):
            weights = one.weights[row]
            assert (weights.tril() if backwards else weights.triu()).eq(0).all()
            assert weights[length:].eq(0).all()
            assert weights[:, length:].eq(0).all()
            alone = length - 1 if backwards else 0  # the first to be read
            wanted = [0.0 if place == alone or place >= length else 1.0 for place in range(4)]
            np.testing.assert_allclose(weights.sum(-1), wanted, atol=1e-6)
    assert made(IDS, MASK).maps == {}
    assert encoder()(IDS, MASK, maps=True).maps == {}


@pytest.mark.parametrize("form", FORMS, ids=NAMES)
def test_a_gradient_reaches_every_parameter_and_no_padding(form: dict[str, Any]) -> None:
    made = encoder(**form)
    encoded = made(IDS, MASK)
    (encoded.places.states.pow(2).sum() + encoded.summary.pow(2).sum()).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        if not name.endswith("score.out.bias"):  # one number added to all energies: a softmax does not see it
            assert parameter.grad.abs().max() > 1e-6, name
    assert not made.embedding.E.grad[0].any()  # type: ignore[index, union-attr]


def test_every_score_says_something_else() -> None:
    plain = {name: value for name, value in encoder().state_dict().items() if name.startswith("embedding")}
    found = []
    for score in FITTING:
        made = encoder(self_attention=score)
        made.load_state_dict(plain, strict=False)
        found.append(made(IDS, MASK).places.states)
    assert all(not torch.allclose(a, b, atol=1e-3) for i, a in enumerate(found) for b in found[:i])


def test_an_input_of_no_symbols_at_all_is_read() -> None:
    encoded = encoder(self_attention="dot")(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0) > 0, maps=True)
    assert encoded.places.states.shape == (2, 0, 2 * SIZE)
    assert (encoded.summary == 0).all()
    assert encoded.maps["self-1-forwards"].weights.shape == (2, 0, 0)


def test_at_half_precision_it_learns_the_same() -> None:
    made = encoder(self_attention="additive")
    grads = []
    for half in (False, True):
        made.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            states = made(IDS, MASK).places.states
        states.float().pow(2).sum().backward()
        grads.append(torch.cat([one.grad.flatten() for one in made.parameters() if one.grad is not None]))
    assert torch.cosine_similarity(grads[0], grads[1], dim=0) > 0.99


def test_scores_that_need_more_than_states_are_refused() -> None:
    assert set(FITTING) == set(reading_scores())
    assert {name for name in scores if scores[name].ordered or scores[name].remembers} == set(scores.settings) - set(
        FITTING
    )
    for score in ("location", "coverage"):
        with pytest.raises(UserError, match=rf"encoder\.self_attention: {score} depends on positions"):
            encoder(self_attention=score)
