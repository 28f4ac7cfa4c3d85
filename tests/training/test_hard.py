"""Learning by the score of what was drawn: the gradient is that of the expected loss, and a baseline steadies it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from seq2see.attention import Look
from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.decoders import Ready, Step
from seq2see.model import EncoderDecoder, Sizes, shifted
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.schema import LossSettings
from seq2see.training.losses import BASELINE, NOISE, VARIANCE, score_function
from tests.objectives import objective_of

PLACES = 3
GROUPS, DRAWS = 30, 600
FAR = 5.0
"""Standard errors that no mean of so many draws lies away from what it estimates."""

TASKS: dict[str, dict[str, Any]] = {
    "text": {"inputs": {"source": {}}},
    "text, query current": {"inputs": {"source": {}}, "attention": {"query": "current"}},
    "text, local": {"inputs": {"source": {}}, "attention": {"scope": "local-predicted", "window": 2}},
    "label of two": {"inputs": {"source": {}, "other": {}}, "output": {"kind": "label"}},
}


def made(task: str, *, spread: float = 1.0, **loss: float) -> tuple[EncoderDecoder, Recipe]:
    given = TASKS[task]
    decoder: dict[str, Any] = {"size": 3} if "output" in given else {"size": 3, "cell": "rnn", "embedding": {"size": 2}}
    recipe = load_recipe(
        {
            **given,
            "encoder": {"size": 2, "cell": "rnn", "bidirectional": False, "embedding": {"size": 2}},
            "attention": {"size": 3, "choice": "hard", **given.get("attention", {})},
            "decoder": decoder,
            "loss": {"exploration": 0.0, **loss},
        }
    )
    model = EncoderDecoder(recipe, Sizes(dict.fromkeys(recipe.inputs, 8), 7)).train()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=spread)
    return model, recipe


def batch(recipe: Recipe, rows: int) -> Batch:
    """So many copies of one row."""
    inputs = {name: torch.tensor([[4 + i, 6, 5]]) for i, name in enumerate(recipe.inputs)}
    columns = {name: _copied(ids, rows) for name, ids in inputs.items()}
    if recipe.output.kind == "label":
        return Batch(columns, Labels(torch.full((rows,), 2)), list(range(rows)))
    return Batch(columns, _copied(torch.tensor([[5, 3]]), rows), list(range(rows)))


def _copied(ids: Tensor, rows: int) -> Sequences:
    return Sequences(ids.expand(rows, -1), torch.ones(rows, ids.shape[1], dtype=torch.bool))


def flat(gradients: Iterator[Tensor | None], model: EncoderDecoder) -> Tensor:
    pairs = zip(gradients, model.parameters(), strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs]).double()


def gradient(model: EncoderDecoder, total: Tensor) -> Tensor:
    return flat(iter(torch.autograd.grad(total, list(model.parameters()), allow_unused=True)), model)


def ways(model: EncoderDecoder, recipe: Recipe) -> Iterator[tuple[Tensor, Step, Ready]]:
    """Every way to look at one row's places: log P(way), and the steps that are taken by it."""
    one = batch(recipe, 1)
    text = isinstance(one.target, Sequences)
    tokens = shifted(one.target.ids).unbind(1) if isinstance(one.target, Sequences) else [None]
    names = list(recipe.inputs)
    for way in itertools.product(range(PLACES), repeat=len(tokens) * len(names)):
        ready = model.ready(one.inputs, 1)
        state, steps, places = model.begin(ready), [], iter(way)
        for token in tokens:
            forced = {name: one_hot(torch.tensor([next(places)]), PLACES).float() for name in names}
            steps.append(model.step(ready, state, token, forced=forced))
            state = steps[-1].state
        chance = torch.stack([look.place_log_prob.sum() for step in steps for look in step.looks.values()]).sum()
        yield chance, Step.stacked(steps) if text else steps[0], ready


def exact(model: EncoderDecoder, recipe: Recipe) -> Tensor:
    """The gradient of sum over all ways to look of P(way) * -log P(y | way)."""
    expected, one = torch.zeros(()), batch(recipe, 1)
    for chance, step, ready in ways(model, recipe):
        expected = expected + chance.exp() * plain_loss(model, step, ready, one)
    return gradient(model, expected)


def plain_loss(model: EncoderDecoder, step: Step, ready: Ready, rows: Batch) -> Tensor:
    target = rows.target
    assert target is not None
    mask = target.mask if isinstance(target, Sequences) else torch.ones_like(target.ids, dtype=torch.bool)
    return model.head.loss(step, ready, target.ids, mask=mask)


def by_way(model: EncoderDecoder, recipe: Recipe, baseline: float) -> tuple[Tensor, Tensor]:
    """(ways,), (ways, parameters): P(way), and the gradient an update gets when it is drawn."""
    chances, gradients, one = [], [], batch(recipe, 1)
    for chance, step, ready in ways(model, recipe):
        objective = objective_of(recipe)
        objective.state = {BASELINE: baseline}
        chances.append(chance.exp().detach().double())
        gradients.append(gradient(model, objective.loss(model, step, ready, one).total))
    return torch.stack(chances), torch.stack(gradients)


def sampled(model: EncoderDecoder, recipe: Recipe, state: dict[str, float] | None) -> Tensor:
    """(groups, parameters): the mean gradient of each group of draws; None: of the loss without the draws' score."""
    objective, rows, found = objective_of(recipe), batch(recipe, DRAWS), []
    for _ in range(GROUPS):
        objective.state = dict(state or {})
        total = plain_loss(model, *model.forward_batch(rows), rows) if state is None else objective(model, rows).total
        found.append(gradient(model, total / DRAWS))
    return torch.stack(found)


def distance(found: Tensor, expected: Tensor) -> float:
    """How many standard errors the mean of the groups lies away, at the parameter where that is most."""
    error = found.std(0) / GROUPS**0.5
    return float(((found.mean(0) - expected).abs() / (error + 1e-6)).max())


@pytest.mark.parametrize("baseline", [0.0, -2.0])
@pytest.mark.parametrize("task", TASKS)
def test_the_mean_over_all_ways_is_the_gradient_of_the_expected_loss(task: str, baseline: float) -> None:
    model, recipe = made(task)
    chances, gradients = by_way(model, recipe, baseline)
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-5)
    torch.testing.assert_close(chances @ gradients, exact(model, recipe), atol=2e-5, rtol=1e-4)


def test_so_is_the_mean_over_draws() -> None:
    """The measure is one that finds a gradient which leaves out where to look."""
    model, recipe = made("text")
    expected = exact(model, recipe)
    assert distance(sampled(model, recipe, {BASELINE: -2.0}), expected) < FAR
    assert distance(sampled(model, recipe, None), expected) > 4 * FAR


@pytest.mark.parametrize("task", TASKS)
def test_the_moving_baseline_lowers_the_variance(task: str) -> None:
    """Of the gradient of what decides where to look, over all ways it can be drawn, as at the start of training."""
    model, recipe = made(task, spread=0.3)
    objective = objective_of(recipe)
    for _ in range(5):
        objective(model, batch(recipe, 100))
    looks = [name.startswith("decoder.looking") for name, one in model.named_parameters() for _ in range(one.numel())]

    def variance(baseline: float) -> float:
        chances, gradients = by_way(model, recipe, baseline)
        return float(chances @ (gradients - chances @ gradients).square()[:, torch.tensor(looks)].sum(1))

    ratio = variance(objective.state[BASELINE]) / variance(0.0)
    assert ratio < 0.5, f"the variance with the moving baseline is {ratio:.3f} of that without"


def test_the_baseline_moves_as_slowly_as_it_is_told() -> None:
    model, recipe = made("text", baseline_decay=0.75)
    objective, rows = objective_of(recipe), batch(recipe, 50)
    objective(model, rows)
    before = objective.state[BASELINE]
    step, ready = model.forward_batch(rows)
    objective.loss(model, step, ready, rows)
    assert isinstance(rows.target, Sequences)
    mean = float(model.head.target_scores(step, ready, rows.target.ids, mask=rows.target.mask).detach().mean())
    assert objective.state[BASELINE] == pytest.approx(0.75 * before + 0.25 * mean, rel=1e-5)


def test_the_variance_that_is_reported_is_that_of_the_returns() -> None:
    """R_t summed backwards in plain loops, b as it stood before."""
    log_probs = torch.tensor([[-1.0, -3.0, -2.0], [-4.0, -0.5, 0.0]])
    steps = torch.tensor([[True, True, True], [True, True, False]])
    look = Look(torch.zeros(2, 3, 1), torch.ones(2, 3, 1), None, 1, place_log_prob=torch.zeros(2, 3), by_score=True)
    state = {BASELINE: -2.0}
    score_function(LossSettings(), {"source": look}, log_probs, steps, state)
    returns = [
        sum(float(log_probs[row, i]) + 2.0 for i in range(t, 3 - row)) for row in range(2) for t in range(3 - row)
    ]
    assert state[VARIANCE] == pytest.approx(float(np.var(returns)), rel=1e-5)
    assert VARIANCE == "return_variance"


def test_the_variance_of_the_estimator_is_that_of_its_gradient_at_the_energies() -> None:
    """Each draw's own gradient by autograd, its squared norm in the mean."""
    torch.manual_seed(3)
    energies = torch.randn(2, 3, 5, requires_grad=True)
    weights = energies.softmax(-1)
    place = torch.tensor([[0, 4, 2], [1, 1, 3]])
    chances = weights.gather(-1, place[..., None]).squeeze(-1).log()
    log_probs = -torch.rand(2, 3)
    steps = torch.tensor([[True, True, True], [True, True, False]])
    look = Look(torch.zeros(2, 3, 1), weights, None, 5, place_log_prob=chances, by_score=True)
    state = {BASELINE: -0.3}
    score_function(LossSettings(exploration=0.0), {"source": look}, log_probs, steps, state).backward()
    assert energies.grad is not None
    squared = energies.grad.square().sum(-1)
    assert state[NOISE] == pytest.approx(float(squared[steps].mean()), rel=1e-5)


def test_exploration_is_paid_by_the_entropy_of_the_looks() -> None:
    model, recipe = made("text")
    rows, totals = batch(recipe, 4), []
    for exploration in (0.0, 0.3):
        torch.manual_seed(1)
        paid = recipe.model_copy(update={"loss": recipe.loss.model_copy(update={"exploration": exploration})})
        totals.append(objective_of(paid)(model, rows).total)
    torch.manual_seed(1)
    step, _ = model.forward_batch(rows)
    weights = step.looks["source"].dense()
    spread = -(weights * weights.log()).sum()
    torch.testing.assert_close(totals[0] - totals[1], 0.3 * spread, atol=1e-4, rtol=1e-4)
