"""What conditions the recurrent decoder, what learns, and that no option is without effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import Candidates, Score, register, scores
from seq2see.decoders import RecurrentDecoder
from seq2see.errors import UserError
from tests.decoders.building import MASK, PLACES, ROWS, SIZE, STEPS, SYMBOLS, close, decoder, memory, stepped

TOKENS = torch.tensor([[2, 4, 5, 1, 6], [2, 3, 3, 3, 0], [2, 6, 5, 4, 3]])


def features(made: RecurrentDecoder) -> Tensor:
    """What a decoder with every weight at fixed values gives for a fixed memory."""
    for parameter in made.parameters():
        parameter.data = torch.linspace(-0.7, 0.9, parameter.numel()).sin().view_as(parameter)
    torch.manual_seed(5)
    ready = made.prepare(memory())
    return made.teach(ready, made.begin(ready), TOKENS).features.detach()


OPTIONS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("as it is", {}, {}),
    ("cell rnn", {"cell": "rnn"}, {}),
    ("cell lstm", {"cell": "lstm"}, {}),
    ("activation", {"activation": "logistic"}, {}),
    ("reset", {"reset": "before"}, {}),
    ("layers", {"layers": 2}, {}),
    ("start dense", {"start": "source"}, {}),
    ("start copy", {"start": "source", "start_by": "copy"}, {}),
    ("every step", {"every_step": "source"}, {}),
    ("output", {"output": "state"}, {}),
    ("one-hot", {"embedding": {"kind": "one-hot"}}, {}),
    ("no attention", {}, {"score": "none"}),
    ("query", {}, {"query": "current"}),
    ("feeding", {}, {"query": "current", "input_feeding": False}),
    *((f"score {score}", {}, {"score": score}) for score in scores.settings if score != "additive"),
    ("temperature", {}, {"score": "cosine", "learned_temperature": True}),
    ("deep layers", {}, {"score": "deep", "layers": 3}),
    ("size", {}, {"size": 4}),
]


def test_no_option_is_without_effect() -> None:
    """Each option, all weights fixed, gives features that no other one gives: of another size, or other values."""
    given = {name: features(decoder(settings, attention)) for name, settings, attention in OPTIONS}
    names = list(given)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            ours, theirs = given[one], given[other]
            assert ours.shape != theirs.shape or not torch.allclose(ours, theirs, atol=1e-5), (one, other)


def test_the_place_of_a_temperature_is_felt() -> None:
    made = decoder({}, {"score": "cosine", "learned_temperature": True})
    ready = made.prepare(memory())
    before = made.teach(ready, made.begin(ready), TOKENS).looks["source"].dense()
    dict(made.named_parameters())["looking.over.source.score.temperature"].data.mul_(3.0).add_(1.0)
    assert not torch.allclose(before, made.teach(ready, made.begin(ready), TOKENS).looks["source"].dense())


@pytest.mark.parametrize(("name", "settings", "attention"), OPTIONS, ids=[option[0] for option in OPTIONS])
def test_a_gradient_reaches_every_parameter(name: str, settings: dict[str, Any], attention: dict[str, Any]) -> None:
    made = decoder(settings, attention)
    given = memory()
    summaries = given.summaries["source"].requires_grad_()
    states = given.places["source"].states.requires_grad_()
    ready = made.prepare(given)
    made.teach(ready, made.begin(ready), TOKENS).features.pow(2).sum().backward()
    unseen = {"looking.over.source.score.out.bias"}  # adds the same to every energy: softmax does not see it
    for path, parameter in made.named_parameters():
        if path not in unseen:
            assert parameter.grad is not None, path
            assert torch.isfinite(parameter.grad).all(), path
            assert parameter.grad.abs().sum() > 0, path
    told = bool(settings.get("start") or settings.get("every_step"))
    assert (summaries.grad is not None and bool(summaries.grad.any())) == told
    looked = attention.get("score") != "none"
    assert (states.grad is not None and bool(states.grad.any())) == looked
    assert states.grad is None or not states.grad[~MASK].any()


def test_the_first_state_is_learned_where_nothing_conditions_the_decoder() -> None:
    made = decoder({"cell": "lstm", "layers": 2}, {"score": "none"})
    ready = made.prepare(memory())
    state = made.begin(ready)
    assert torch.stack([part for cell in state.cells for part in cell], 1)[1].flatten().equal(made.start.s_0)
    made.teach(ready, state, TOKENS).features.sum().backward()
    assert made.start.s_0.grad is not None
    assert (made.start.s_0.grad != 0).all()


def test_a_copied_start_is_the_summary_in_every_layer() -> None:
    made, given = decoder({"cell": "lstm", "layers": 2, "start": "source", "start_by": "copy"}, {}), memory()
    for output, cell in made.prepare(given).start:
        assert output.equal(given.summaries["source"])
        assert (cell == 0).all()


def test_a_summary_that_does_not_fit_cannot_be_copied() -> None:
    with pytest.raises(UserError, match=r"copy needs decoder\.size equal to the summary's size, got 5 and 6"):
        decoder({"size": 5, "start": "source", "start_by": "copy"}, {"score": "additive"})


def test_attention_off_leaves_no_look_and_nothing_of_the_places() -> None:
    made, given = decoder({"start": "source"}, {"score": "none"}), memory()
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready), TOKENS[:, 0])
    assert (step.looks, ready.looks) == ({}, {})
    given.places["source"].states.mul_(2)
    again = made.prepare(given)
    assert step.features.equal(made.step(again, made.begin(again), TOKENS[:, 0]).features)


@pytest.mark.parametrize("query", ["previous", "current"])
def test_a_step_shows_energies_weights_and_context(query: str) -> None:
    made, given = decoder({}, {"query": query}), memory()
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready), TOKENS[:, 0])
    weights = torch.softmax(step.looks["source"].dense_energies().masked_fill(~MASK, -torch.inf), -1).nan_to_num(0.0)
    torch.testing.assert_close(step.looks["source"].dense(), weights)
    seen = torch.einsum("bj,bjd->bd", weights, given.places["source"].states)
    torch.testing.assert_close(step.looks["source"].context, seen)
    torch.testing.assert_close(step.features[:, SIZE : 2 * SIZE], seen)


@pytest.mark.parametrize("query", ["previous", "current"])
def test_forced_weights_change_the_step_and_what_follows(query: str) -> None:
    made, given = decoder({}, {"query": query}), memory()
    ready = made.prepare(given)
    forced = torch.full((ROWS, PLACES), torch.nan)
    forced[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    own, told = (made.step(ready, made.begin(ready), TOKENS[:, 0], forced=f) for f in (None, {"source": forced}))
    assert told.looks["source"].dense()[0].tolist() == [0, 1, 0, 0]
    torch.testing.assert_close(told.looks["source"].context[0], given.places["source"].states[0, 1])
    assert told.features[1:].equal(own.features[1:])
    next_own, next_told = (made.step(ready, one.state, TOKENS[:, 1]).features for one in (own, told))
    assert not torch.allclose(next_own[0], next_told[0])
    assert next_own[1:].equal(next_told[1:])


def test_dropout_is_for_training_alone() -> None:
    made = decoder({"layers": 2, "dropout": 0.5}, {})
    ready = made.prepare(memory())
    taught = [made.teach(ready, made.begin(ready), TOKENS).features for _ in range(2)]
    assert taught[0].equal(taught[1])
    made.train()
    taught = [made.teach(ready, made.begin(ready), TOKENS).features for _ in range(2)]
    assert not taught[0].equal(taught[1])
    full = taught[0][MASK.any(1)]
    assert (full == 0).float().mean().item() == pytest.approx(0.5, abs=0.12)


@pytest.fixture
def _tired() -> Iterator[None]:
    """A score that remembers its looks, known by name while a test runs."""
    kinds, known = dict(scores._kinds), dict(scores.settings)

    @register("tired")
    class Tired(Score):
        def __init__(self, query: int, key: int):
            super().__init__(query, key)
            self.W = nn.Linear(query, key, bias=False)

        remembers = True

        def forward(self, query: Tensor, candidates: Candidates) -> Tensor:
            assert candidates.past is not None
            energies: Tensor = self.W(query) @ candidates.keys.transpose(1, 2) - 2 * candidates.past
            return energies

    yield
    scores._kinds = kinds
    scores.settings.clear()
    scores.settings.update(known)


@pytest.mark.usefixtures("_tired")
@pytest.mark.parametrize(
    "look", [{"query": "previous"}, {"query": "current"}, {"query": "current", "input_feeding": False}]
)
def test_a_score_that_remembers_is_taught_as_it_steps(look: dict[str, Any]) -> None:
    made, given = decoder({"every_step": "source"}, {"score": "tired", **look}), memory()
    ready = made.prepare(given)
    taught, apart = made.teach(ready, made.begin(ready), TOKENS), stepped(made, ready, TOKENS)
    close(taught, apart)
    torch.testing.assert_close(taught.state.past["source"], taught.looks["source"].dense().sum(1))
    grouped = torch.randint(0, SYMBOLS, (2 * ROWS, STEPS))
    close(made.teach(ready, made.begin(ready, width=2), grouped), stepped(made, ready, grouped, width=2))
    kept = torch.tensor([2, 0])
    assert taught.state.select(kept, 1).past["source"].equal(taught.state.past["source"][kept])
    assert not taught.state.detach().past["source"].requires_grad
