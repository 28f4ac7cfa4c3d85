"""Rows read twice under two dropouts: the term equals its equation, and both readings are of the same rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

from seq2see.decoders.output_heads import consistent_cross_entropy, linear_cross_entropy, two_pass_divergence
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.training.feeds import RowFeed
from seq2see.training.losses import Objective, targets_of
from tests.training.tiny import ROWS

WORDS = ["abc", "ba", "cab", "a"]


def fed(*, copying: bool = False, **loss: float) -> tuple[Bundle, RowFeed, Objective]:
    raw: dict[str, Any] = copy.deepcopy(ROWS)
    raw["loss"] = loss
    raw.setdefault("decoder", {})["dropout"] = 0.5
    if copying:
        raw["decoder"]["copy_from"] = "source"
        raw["inputs"]["source"]["min_count"] = raw["output"]["min_count"] = 3  # 'c' is beyond the vocabulary
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
    found = two_pass_divergence(torch.tensor(log_probs, dtype=torch.float32), torch.tensor(mask))
    assert found.item() == pytest.approx(each[mask[:2]].sum(), rel=1e-5)


@pytest.mark.parametrize(("targets", "symbols"), [(3, 7), (300, 2000)])
def test_the_fused_loss_is_that_of_plain_autograd(targets: int, symbols: int) -> None:
    torch.manual_seed(1)
    features = torch.randn(2 * targets, 6, dtype=torch.double)
    weight, bias = torch.randn(symbols, 6, dtype=torch.double), torch.randn(symbols, dtype=torch.double)
    wanted = torch.randint(symbols, (targets,)).repeat(2)
    parts = [each.requires_grad_() for each in (features, weight, bias)]
    fused, term = consistent_cross_entropy(*parts, wanted, smoothing=0.1, consistency=3.0)
    log_probs = torch.log_softmax(features @ weight.t() + bias, -1)
    plain_term = 3 * two_pass_divergence(log_probs, torch.ones(2 * targets, dtype=torch.bool))
    plain = linear_cross_entropy(*parts, wanted, smoothing=0.1) + plain_term
    torch.testing.assert_close(fused, plain)
    torch.testing.assert_close(term, plain_term.detach())
    assert not term.requires_grad
    for ours, theirs in zip(torch.autograd.grad(2 * fused, parts), torch.autograd.grad(2 * plain, parts), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_what_is_impossible_in_both_readings_is_no_consistency() -> None:
    log_probs = torch.log(torch.tensor([[0.0, 0.4, 0.6], [0.0, 0.5, 0.5]])).requires_grad_()
    found = two_pass_divergence(log_probs, torch.ones(2, dtype=torch.bool))
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


@pytest.mark.parametrize("copying", [False, True])
def test_both_distributions_are_those_that_the_model_writes_by(copying: bool) -> None:
    """Of a copying model they are mixtures, in which a word beyond the vocabulary has a probability."""
    bundle, feed, objective = fed(copying=copying, consistency=2.0)
    network, batch = bundle.network.train(), feed.data.batch([0, 1, 2, 3] * 2)
    targets, mask = targets_of(batch)
    assert bool((targets >= network.head.symbols).any()) == copying
    step, ready = network.forward_batch(batch)
    loss = objective.loss(network, step, ready, batch)
    term = 2 * two_pass_divergence(network.log_probs(step, ready), mask)
    expected = term - network.head.target_scores(step, ready, targets, mask=mask).sum()
    torch.testing.assert_close(loss.total, expected)
    assert loss.terms["consistency"] == pytest.approx(term.item(), rel=1e-4)
    reached = dict(network.named_parameters())
    by_loss, by_equation = (
        torch.autograd.grad(total, list(reached.values()), retain_graph=True, allow_unused=True)
        for total in (loss.total, expected)
    )
    for name, gradient, wanted in zip(reached, by_loss, by_equation, strict=True):
        assert (gradient is None) == (wanted is None), name
        if gradient is not None:
            assert bool(gradient.isfinite().all()), name
            torch.testing.assert_close(gradient, wanted)


def test_without_dropout_it_is_refused() -> None:
    with pytest.raises(UserError, match=r"loss.consistency: has no effect here: without dropout"):
        load_recipe({"inputs": {"source": {}}, "loss": {"consistency": 1.0}})
