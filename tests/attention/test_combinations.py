"""Every way to look with every other: pair by pair by default, and the whole product behind the marker `slow`."""

from __future__ import annotations

import itertools

import pytest
import torch

from seq2see.data.batches import Batch, Sequences
from seq2see.decoders import Step
from seq2see.model import EncoderDecoder, shifted
from seq2see.recipe import Recipe
from tests.attention.combinations import (
    AXES,
    Combination,
    alone,
    batch_of,
    covering,
    every,
    fits,
    inputs_of,
    model_of,
    name_of,
    pairs,
    recipe_of,
)
from tests.objectives import objective_of

MODELS = 8
NOTHING, ROUNDING = 1e-5, 1e-4
"""A gradient that reaches a parameter is above the first; what rounding leaves of one that cancels is below the second,
also where others are large."""


def unreached(one: Combination, parameter: str) -> str | None:
    """Why the equations give a parameter no gradient; None: they give it one."""
    if one["encoder"] == "transformer" and parameter.endswith("inward.W_k.bias"):
        return "self-attention: q'(k + b) is q'k and something that is the same for every place"
    attention, _, name = parameter.partition("decoder.looking.over.")[2].partition(".")
    if not attention:
        return None
    score, predicted = one["score"], one["scope"] == "local-predicted"
    if name.endswith("score.out.bias"):
        return "deep: adds the same to every energy, and weights depend on their differences"
    if name == "W_k.bias" and score in ("dot", "scaled-dot", "general"):
        return "heads: q'(k + b) is q'k and something that is the same for every place"
    if name.startswith("W_k.") and score in ("uniform", "location"):
        return "heads: the score does not see what places hold"
    if name.startswith("W_q.") and score in ("uniform", "static") and not predicted:
        return "heads: nothing asks, neither the score nor a predicted position"
    return None


def check(one: Combination) -> None:
    recipe, batch = recipe_of(one), batch_of(one)
    gradients_reach_what_they_should(one, recipe, batch)
    model = model_of(recipe).eval()
    with torch.no_grad():
        step, _ = model.forward_batch(batch)
        weights_are_shares_of_real_places(one, step, batch)
        rows_do_not_know_their_batch(one, model, step, batch)
        stepping_is_teaching(one, model, step, batch)


def gradients_reach_what_they_should(one: Combination, recipe: Recipe, batch: Batch) -> None:
    """Of several random models, as a few draws may all fall on first places, which nothing was read before."""
    largest: dict[str, float] = {}
    for _ in range(MODELS):
        for name, found in gradients(one, recipe, batch).items():
            largest[name] = max(found, largest.get(name, 0.0))
        if all(found > NOTHING or unreached(one, name) for name, found in largest.items()):
            break
    for name, found in largest.items():
        reason = unreached(one, name)
        if reason is None:
            assert found > NOTHING, f"{name_of(one)}: no gradient reaches {name}"
        else:
            assert found <= ROUNDING, f"{name_of(one)}: a gradient reaches {name}, although: {reason}"


def gradients(one: Combination, recipe: Recipe, batch: Batch) -> dict[str, float]:
    """The largest number in the gradient of each parameter, of a model with random weights."""
    model = model_of(recipe).train()
    total = objective_of(recipe)(model, batch).total
    assert torch.isfinite(total), name_of(one)
    total.backward()
    sizes = {}
    for name, parameter in model.named_parameters():
        given = torch.zeros(1) if parameter.grad is None else parameter.grad
        assert torch.isfinite(given).all(), f"{name_of(one)}: the gradient of {name} is not finite"
        sizes[name] = float(given.abs().max())
    return sizes


def weights_are_shares_of_real_places(one: Combination, step: Step, batch: Batch) -> None:
    assert step.looks.keys() == set(inputs_of(one))
    for name, look in step.looks.items():
        mask = batch.inputs[name].mask
        weights = look.by_head().reshape(len(mask), -1, mask.shape[1])
        there = mask.any(1)[:, None].float().expand(weights.shape[:2])
        torch.testing.assert_close(weights.sum(-1), there, atol=1e-5, rtol=0, msg=name_of(one))
        assert (weights >= 0).all(), name_of(one)
        assert (weights.transpose(1, 2)[~mask] == 0).all(), f"{name_of(one)}: padding is looked at"
        assert (look.context[~mask.any(1)] == 0).all(), f"{name_of(one)}: a row without places has a context"
        assert torch.isfinite(look.context).all(), name_of(one)


def rows_do_not_know_their_batch(one: Combination, model: EncoderDecoder, step: Step, batch: Batch) -> None:
    for row in batch.rows:
        single, _ = model.forward_batch(alone(batch, row))
        steps = single.features.shape[1] if isinstance(batch.target, Sequences) else None
        ours = step.features[row : row + 1] if steps is None else step.features[row : row + 1, :steps]
        torch.testing.assert_close(single.features, ours, atol=1e-5, rtol=0, msg=f"{name_of(one)}: row {row}")


def stepping_is_teaching(one: Combination, model: EncoderDecoder, taught: Step, batch: Batch) -> None:
    if not isinstance(batch.target, Sequences):
        return
    ready = model.ready(batch.inputs, len(batch.rows))
    state, steps = model.begin(ready), []
    for token in shifted(batch.target.ids).unbind(1):
        steps.append(model.step(ready, state, token))
        state = steps[-1].state
    apart = Step.stacked(steps)
    torch.testing.assert_close(apart.features, taught.features, atol=1e-5, rtol=0, msg=name_of(one))
    for name, look in apart.looks.items():
        torch.testing.assert_close(look.by_head(), taught.looks[name].by_head(), atol=1e-5, rtol=0, msg=name_of(one))


PAIRWISE = covering()


def test_every_pair_of_ways_that_can_meet_is_among_the_few() -> None:
    whole = (dict(zip(AXES, values, strict=True)) for values in itertools.product(*AXES.values()))
    possible = {pair for one in whole if fits(one) for pair in pairs(one)}
    assert possible == {pair for one in PAIRWISE for pair in pairs(one)}
    assert len(PAIRWISE) < 80


@pytest.mark.parametrize("one", PAIRWISE, ids=name_of)
def test_ways_to_look_combine(one: Combination) -> None:
    check(one)


@pytest.mark.slow
@pytest.mark.parametrize("scope", AXES["scope"])
@pytest.mark.parametrize("score", AXES["score"])
def test_all_ways_to_look_combine(score: str, scope: str) -> None:
    """score x normaliser x scope x choice x heads x cell; queries and tasks take turns."""
    axes = {"score": [score], "scope": [scope], **{key: AXES[key] for key in ("normaliser", "choice", "heads", "cell")}}
    tried = list(every(axes))
    assert tried
    for one in tried:
        torch.manual_seed(0)
        check(one)
