"""No option of attention is inert: with all weights that can be kept held fixed, any other value is felt, or refused.

Felt is what a model in use writes, where an option is more than a way to learn, and what training feels: the gradient
of an update, and where looks are drawn of three in a row (the third is the first whose baseline has moved).
Weights are drawn by the name of their parameter, so that models which share one share its weights.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from seq2see.attention import scores
from seq2see.attention.build import AttentionSettings
from seq2see.attention.choices import GumbelSettings
from seq2see.data.batches import Batch
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.schema import LossSettings
from tests.attention.combinations import CLASSES, SYMBOLS, batch_of
from tests.objectives import objective_of

OTHERWISE: dict[str, list[Any]] = {
    "attention.score": ["additive", "dot", "none"],
    "attention.over": [["other"]],
    "attention.scope": ["global", "local-monotonic", "local-predicted"],
    "attention.window": [1],
    "attention.gaussian": [False],
    "attention.normaliser": ["sparsemax", "entmax15"],
    "attention.temperature": [0.5],
    "attention.choice": ["soft", "hard"],
    "attention.estimator": ["score-function", "gumbel"],
    "attention.gumbel_temperature": [0.5],
    "attention.heads": [2],
    "attention.query": ["previous", "current"],
    "attention.input_feeding": [False],
    "attention.size": [7],
    "attention.layers": [3],
    "attention.learned_temperature": [True],
    "attention.filters": [3],
    "attention.kernel": [3],
    "attention.positions": [9],
    "loss.doubly_stochastic": [0.5],
    "loss.entropy": [0.5],
    "loss.coverage": [0.5],
    "loss.exploration": [0.5],
    "loss.baseline_decay": [0.2],
}
ELSEWHERE = {
    "attention.through",
    "loss.label_smoothing",
    "loss.class_weights",
    "loss.alignment",
    "loss.consistency",
    "loss.ctc",
    "loss.ctc_first",
    "loss.ctc_alignment",
    "loss.distillation",
    "loss.reward",
}
"""Options of a user's own score, what needs documents or true alignments, and what does not concern looks: tested by
themselves."""

NOT_FELT = {"attention.positions"}
"""Felt by longer inputs alone: it is the longest input that location can look at."""

BASES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "current": {"query": "current"},
    "hard": {"choice": "hard"},
    "hard, predicted": {"choice": "hard", "scope": "local-predicted", "window": 2},
    "gumbel": {"choice": "hard", "estimator": "gumbel"},
    "gumbel, monotonic": {"choice": "hard", "estimator": "gumbel", "scope": "local-monotonic", "window": 2},
    "monotonic": {"scope": "local-monotonic", "window": 2},
    "predicted, heads": {"scope": "local-predicted", "window": 2, "heads": 2},
}
TASKS = ["text of two", "label of two"]


def recipe_of(task: str, attention: dict[str, Any], *overrides: str) -> Recipe:
    decoder: dict[str, Any] = {"size": 8, "start": "source"}
    return load_recipe(
        {
            "inputs": {"source": {}, "other": {}},
            "output": {"kind": task.split()[0]},
            "encoder": {"size": 4, "embedding": {"size": 3}},
            "attention": attention,
            "decoder": decoder if task.startswith("label") else {**decoder, "embedding": {"size": 3}},
        },
        overrides=list(overrides),
    )


def model_of(recipe: Recipe) -> EncoderDecoder:
    model = EncoderDecoder(recipe, Sizes(dict.fromkeys(recipe.inputs, SYMBOLS), CLASSES))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(parameter.shape)
            parameter.copy_(torch.as_tensor(0.5 * drawn))
    return model


@torch.no_grad()
def written(recipe: Recipe, batch: Batch) -> Tensor:
    """log P of every symbol, at every step of the given outputs, as a model in use gives it."""
    model = model_of(recipe).eval()
    return model.log_probs(*model.forward_batch(batch))


def shows(path: str, one: Recipe, other: Recipe) -> bool:
    """Whether an option has to be seen in what a model in use writes, not only in how it learns.

    A hard choice takes the likeliest place, which may stay the same; that it is made at all has to be seen.
    """
    if path == "attention.choice":
        return True
    return path.startswith("attention.") and one.attention.choice == other.attention.choice == "soft"


def felt(recipe: Recipe, batch: Batch) -> list[float]:
    """The size of each update's gradient; what is drawn in an update is drawn from one seed."""
    model = model_of(recipe).train()
    objective, sizes = objective_of(recipe), []
    for seed in range(3 if recipe.attention.choice == "hard" else 1):
        torch.manual_seed(seed)
        objective(model, batch).total.backward()
        reached = [parameter for parameter in model.parameters() if parameter.grad is not None]
        sizes.append(float(torch.stack([parameter.grad.square().sum() for parameter in reached]).sum()))
        with torch.no_grad():
            for parameter in reached:
                parameter -= 0.02 * parameter.grad
                parameter.grad = None
    return sizes


def value_of(recipe: Recipe, path: str) -> Any:
    group, key = path.split(".")
    settings = getattr(recipe, group)
    if key in settings.known_keys():
        return getattr(settings, key)
    return settings.foreign()[key].fields[0].default  # says no more than nothing does


def inert(task: str, attention: dict[str, Any], *, turn: int | None = None) -> list[str]:
    """Other values that the recipe allows and nothing feels; turn: of every second option only."""
    try:
        recipe = recipe_of(task, attention)
    except UserError:
        return []
    torch.manual_seed(0)
    batch = batch_of({"task": task})
    before, said, found = felt(recipe, batch), written(recipe, batch), []
    for number, (path, values) in enumerate(OTHERWISE.items()):
        for value in values if turn is None or (number + turn) % 2 == 0 else []:
            if value == value_of(recipe, path):
                continue
            try:
                other = recipe_of(task, attention, f"{path}={json.dumps(value)}")
            except UserError:
                continue
            if path in NOT_FELT:
                continue
            unseen = shows(path, recipe, other) and torch.allclose(written(other, batch), said, atol=1e-6, rtol=0)
            if unseen or felt(other, batch) == pytest.approx(before, rel=1e-6):
                found.append(f"{path}={value}")
    return found


def test_every_option_of_attention_and_every_term_of_looks_is_tried() -> None:
    parts = [part for one in AttentionSettings.parts.values() for part in one.settings.values()]
    known = {f"attention.{key}" for one in (AttentionSettings, *parts, GumbelSettings) for key in one.model_fields}
    known |= {f"loss.{key}" for key in LossSettings.model_fields}
    assert known == OTHERWISE.keys() | ELSEWHERE


@pytest.mark.parametrize(("number", "score"), list(enumerate(scores.settings)))
def test_options_of_every_score_are_felt_or_refused(number: int, score: str) -> None:
    """Bases, tasks and options take turns; `make slow` has all of them."""
    bases = list(BASES.values())
    assert inert(TASKS[number % 2], {"score": score, **bases[number % len(bases)]}, turn=number // 2) == []


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("score", scores.settings)
@pytest.mark.parametrize("task", TASKS)
def test_all_options_are_felt_or_refused(task: str, score: str, base: str) -> None:
    assert inert(task, {"score": score, **BASES[base]}) == []
