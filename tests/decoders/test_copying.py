"""The output layer that points: the mixture against its equation, what it sums to, its loss, and ids it can read."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from seq2see.attention import Look
from seq2see.data.batches import Sequences
from seq2see.data.vocabulary import UNK
from seq2see.decoders import CopyHead, Ready, State, Step
from seq2see.memory import Copyable, Memory, Places
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe

FEATURES, SYMBOLS, PLACES = 6, 7, 4
IDS = torch.tensor([[5, 7, 5, 8], [7, 7, 0, 0], [0, 0, 0, 0]])
"""A known word twice and two further ones; one further word twice; an input without a word."""
REAL = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
FURTHER = [2, 1, 0]


def head(**settings: object) -> CopyHead:
    made = CopyHead(FEATURES, SYMBOLS, source="source", **settings)  # type: ignore[arg-type]
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made.eval()


def ready() -> Ready:
    places = Places(torch.zeros(3, PLACES, 1), REAL, copyable=Copyable(IDS))
    return Ready(3, Memory({"source": places}))


def step(*shape: int, heads: int = 0) -> Step:
    """Random features and looks of rows (and steps); a row without places looks nowhere."""
    width = shape[0] // 3
    real = REAL.repeat_interleave(width, 0).view(shape[0], *[1] * (len(shape) - 1 + bool(heads)), PLACES)
    energies = torch.randn(*shape, *[heads] * bool(heads), PLACES).masked_fill(~real, -torch.inf)
    weights = torch.nan_to_num(torch.softmax(energies, -1))
    look = Look(torch.zeros(*shape, 1), torch.zeros(*shape, PLACES), None, PLACES, heads=heads)
    look.weights = weights
    return Step(State(shape[0]), torch.randn(*shape, FEATURES), {"source": look})


def mixture(made: CopyHead, features: Tensor, look: Tensor, row: int) -> dict[int, float]:
    """{id: P} of one step, written down from the equation: g P_vocab(y) + (1 - g) sum_{j: x_j = y} a_j."""

    def array(tensor: Tensor) -> NDArray[np.float64]:
        return np.asarray(tensor.detach().double().numpy())

    f = array(features)
    powers = np.exp(array(made.V) @ f + array(made.c))
    real = REAL[row].nonzero().flatten().tolist()
    g = 1 / (1 + np.exp(-(array(made.w_g.weight)[0] @ f + array(made.w_g.bias)[0]))) if real else 1.0
    p = Counter({y: g * share for y, share in enumerate(powers / powers.sum())})
    for j in real:
        p[int(IDS[row, j])] += (1 - g) * float(look[j])
    return dict(p)


@pytest.mark.parametrize("heads", [0, 3])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (6,)], ids=["step", "target", "beams"])
def test_probabilities_are_the_mixture(shape: tuple[int, ...], heads: int) -> None:
    made, given = head(), step(*shape, heads=heads)
    found = made.log_probs(given, ready()).detach().exp()
    look = given.looks["source"].weights
    look = look.mean(-2) if heads else look
    assert found.shape == (*shape, SYMBOLS + max(FURTHER))
    for at in np.ndindex(*shape):
        row = at[0] * 3 // shape[0]
        expected = mixture(made, given.features[at], look[at], row)
        assert sum(expected.values()) == pytest.approx(1)
        for y in range(SYMBOLS + max(FURTHER)):
            assert float(found[at][y]) == pytest.approx(expected.get(y, 0.0), abs=1e-5)
    torch.testing.assert_close(found.sum(-1), torch.ones(shape))


def test_words_an_input_does_not_have_are_impossible_for_it() -> None:
    found = head().log_probs(step(3), ready())
    beyond = found[:, SYMBOLS:].isneginf()
    assert beyond.tolist() == [[False, False], [False, True], [True, True]]


TARGETS = torch.tensor([[5, 8, 3], [7, 3, 0], [4, 3, 0]])
MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 1, 0]], dtype=torch.bool)


def test_given_targets_have_the_probabilities_of_all_symbols() -> None:
    made, given = head(), step(3, 3)
    every = made.log_probs(given, ready())
    expected = every.gather(-1, TARGETS[..., None]).squeeze(-1)[MASK]
    torch.testing.assert_close(made.target_scores(given, ready(), TARGETS, mask=MASK), expected)
    torch.testing.assert_close(made.loss(given, ready(), TARGETS, mask=MASK), -expected.sum())


@pytest.mark.parametrize("smoothing", [0.1, 0.5])
def test_a_smoothed_target_is_spread_over_the_vocabulary(smoothing: float) -> None:
    """(1 - e) at the target, which may lie beyond the vocabulary, and e / V at each of its V symbols."""
    made, given = head(), step(3, 3)
    every = made.log_probs(given, ready())
    expected = torch.zeros(())
    for b, t in MASK.nonzero().tolist():
        expected = expected - (1 - smoothing) * every[b, t, TARGETS[b, t]]
        expected = expected - sum(smoothing / SYMBOLS * every[b, t, y] for y in range(SYMBOLS))
    found = made.loss(given, ready(), TARGETS, mask=MASK, smoothing=smoothing)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients_reach_the_gate_and_the_look_and_are_finite(smoothing: float) -> None:
    made, given = head(), step(3, 3)
    given.features.requires_grad_()
    weights = given.looks["source"].weights.requires_grad_()
    made.loss(given, ready(), TARGETS, mask=MASK, smoothing=smoothing).backward()
    assert given.features.grad is not None
    assert weights.grad is not None
    for gradient in [given.features.grad, weights.grad, *(one.grad for one in made.parameters())]:
        assert gradient is not None
        assert gradient.isfinite().all()
    assert (made.w_g.weight.grad != 0).any()
    assert (given.features.grad[~MASK] == 0).all()
    assert weights.grad[0, 1, 3] != 0, "where the further word stands that is to be written"


def test_further_words_are_read_as_unknown() -> None:
    assert head().readable(torch.tensor([3, 6, 7, 9])).tolist() == [3, 6, UNK, UNK]


@pytest.mark.parametrize("query", ["previous", "current"])
def test_a_model_steps_as_it_is_taught(query: str) -> None:
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"size": 3, "embedding": {"size": 3}},
            "attention": {"query": query, "size": 4},
            "decoder": {"size": 6, "embedding": {"size": 3}, "copy_from": "source", "readout": 5},
        }
    )
    torch.manual_seed(1)
    model = EncoderDecoder(recipe, Sizes({"source": 9}, SYMBOLS)).eval()
    column = Sequences(torch.tensor([[5, 1, 5, 1], [1, 1, 0, 0], [0, 0, 0, 0]]), REAL, copyable=Copyable(IDS))
    prepared = model.ready({"source": column}, 3)
    whole = model.log_probs(model.teach(prepared, TARGETS), prepared)
    state, token = model.begin(prepared), torch.full((3,), 2)
    for t in range(3):
        made = model.step(prepared, state, token)
        torch.testing.assert_close(model.log_probs(made, prepared), whole[:, t], atol=1e-5, rtol=1e-5)
        state, token = made.state, TARGETS[:, t]


def test_what_can_be_copied_is_selected_with_its_rows() -> None:
    chosen = Copyable(IDS, [["a", "b"], ["c"], []]).select(torch.tensor([1, 0]))
    assert (chosen.ids.tolist(), chosen.words) == (IDS[[1, 0]].tolist(), [["c"], ["a", "b"]])
    assert chosen.further(SYMBOLS).tolist() == [1, 2]
