"""Rows read twice under two dropouts: the term equals its equation, and both readings are of the same rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.feeds import RowFeed
from seq2see.training.losses import Objective, consistency
from tests.training.tiny import ROWS

WORDS = ["abc", "ba", "cab", "a"]


def fed(**loss: float) -> tuple[Bundle, RowFeed, Objective]:
    raw: dict[str, Any] = copy.deepcopy(ROWS)
    raw["loss"] = loss
    raw.setdefault("decoder", {})["dropout"] = 0.5
    recipe = load_recipe(raw)
    rows = [{"source": word, "output": word} for word in WORDS]
    fields = Fields.build(recipe, lambda: iter(rows))
    torch.manual_seed(3)
    bundle = Bundle.create(recipe, fields)
    return bundle, RowFeed(Dataset.build(fields, rows), recipe.training), Objective(recipe.loss, fields)


def test_the_term_is_the_mean_of_both_divergences() -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(4, 3, 5))
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    mask = np.array([[True, True, False], [True, False, False]] * 2)
    p, q = np.exp(log_probs[:2]), np.exp(log_probs[2:])
    each = 0.5 * (p * np.log(p / q)).sum(-1) + 0.5 * (q * np.log(q / p)).sum(-1)
    found = consistency(torch.tensor(log_probs, dtype=torch.float32), torch.tensor(mask))
    assert found.item() == pytest.approx(each[mask[:2]].sum(), rel=1e-5)


def test_what_is_impossible_in_both_readings_is_no_consistency() -> None:
    log_probs = torch.log(torch.tensor([[0.0, 0.4, 0.6], [0.0, 0.5, 0.5]])).requires_grad_()
    found = consistency(log_probs, torch.ones(2, dtype=torch.bool))
    found.backward()
    assert torch.isfinite(found)
    assert log_probs.grad is not None
    assert torch.isfinite(log_probs.grad[:, 1:]).all()


def test_a_batch_holds_every_row_twice_and_pays_for_what_differs() -> None:
    bundle, feed, objective = fed(consistency=2.0)
    bundle.network.train()
    device = torch.device("cpu")
    loss = feed.loss(bundle.network, objective, 0, 0, own_share=0.0, device=device)
    once = sum(len(word) + 1 for word in WORDS)
    assert loss.targets == 2 * once
    assert loss.terms["consistency"] > 0
    bundle.network.eval()
    without_dropout = feed.loss(bundle.network, objective, 0, 0, own_share=0.0, device=device)
    assert without_dropout.terms["consistency"] == pytest.approx(0, abs=1e-5)


def test_without_dropout_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"loss.consistency: has no effect here: without dropout"):
        load_recipe({"inputs": {"source": {}}, "loss": {"consistency": 1.0}})
