"""Sequence-level training: rewards are those of the metrics, steps go along the gradient of the expected reward."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see.data.batches import Sequences
from seq2see.data.vocabulary import EOS, PAD, SOS, UNK
from seq2see.errors import UserError
from seq2see.evaluation import Rows, lookup
from seq2see.evaluation.ngrams import Cider
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Dataset
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.recipe.schema import RewardSettings
from seq2see.training import losses
from seq2see.training.losses import Objective, targets_of
from seq2see.training.rewards import (
    REWARDS,
    BleuReward,
    CiderReward,
    Rewards,
    draw_outputs,
    drawable,
    most_drawn,
    with_outputs,
    without_dropout,
)
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, last_checkpoint, run, words

PAIRS = [("ab", "ab"), ("ab", "ba"), ("b", "b"), ("ca", "cab")]


def small(*, copying: bool = False, **loss: Any) -> tuple[Bundle, Dataset, Objective]:
    raw: dict[str, Any] = copy.deepcopy(ROWS)
    raw["loss"] = loss
    if copying:
        raw.setdefault("decoder", {})["copy_from"] = "source"
        raw.setdefault("output", {})["min_count"] = 2  # 'c' is beyond the vocabulary
    recipe = load_recipe(raw)
    rows = [{"source": source, "output": output} for source, output in PAIRS]
    fields = Fields.build(recipe, lambda: iter(rows))
    torch.manual_seed(5)
    data = Dataset.build(fields, rows)
    rewards = None if recipe.loss.reward.metric == "none" else Rewards(recipe.loss.reward, data)
    return Bundle.create(recipe, fields), data, Objective(recipe.loss, fields, rewards=rewards)


def test_cider_of_all_rows_is_the_mean_of_the_rewards() -> None:
    references = [[(4, 5, 6, 2), (4, 6, 2)], [(7, 5, 2)], [(8, 9, 4, 2), (8, 2)]]
    outputs = [(4, 5, 2), (7, 5, 2), (8, 4, 4, 2)]
    written = [" ".join(map(str, output)) for output in outputs]
    expected = Cider("cider").score(Rows(written, [[" ".join(map(str, one)) for one in row] for row in references]))
    reward = CiderReward(references)
    assert sum(reward(row, output) for row, output in enumerate(outputs)) / 3 == pytest.approx(expected)


def test_bleu_of_one_row_is_that_of_the_reference_package() -> None:
    from sacrebleu.metrics.bleu import BLEU

    true, output = (4, 5, 6, 7, 8, 9, 2), (4, 5, 6, 8, 9, 2)
    sentence = BLEU(smooth_method="add-k", smooth_value=1, effective_order=False, tokenize="none")
    expected = sentence.sentence_score(" ".join(map(str, output)), [" ".join(map(str, true))]).score / 100
    assert BleuReward([[true]])(0, output) == pytest.approx(expected)


@pytest.mark.parametrize("metric", REWARDS)
def test_a_reference_is_worth_more_than_anything_else(metric: str) -> None:
    reward = REWARDS[metric]([[(4, 5, 6, 7, 2)], [(8, 9, 4, 5, 2)]])
    best = reward(0, (4, 5, 6, 7, 2))
    assert all(reward(0, other) < best for other in [(4, 5, 6, 2), (4, 5, 6, 7), (8, 9, 4, 5, 2), (2,)])


def test_rows_with_equal_inputs_are_references_of_each_other() -> None:
    _, data, _ = small()
    rewards = Rewards(RewardSettings(metric="edit"), data)
    first = data.stores["output"][0].tolist()
    other = data.stores["output"][1].tolist()
    outputs = [(*other, EOS), (*first, EOS), (*other, EOS)]
    assert rewards([0, 1, 2], outputs).tolist() == [1.0, 1.0, pytest.approx(1 - 1 / 2)]


def test_the_mean_step_over_all_draws_is_along_the_gradient_of_the_expected_reward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over all pairs of outputs of at most two symbols, weighted by their probability. The outputs of the batch's other
    row are equal, so that their rewards make no difference; all differences are divided by the same number."""
    bundle, data, objective = small(reward={"metric": "edit", "samples": 2, "last": 0.5})
    network, rewards = bundle.network, objective.rewards
    assert rewards is not None
    symbols = [n for n in range(network.head.symbols) if n not in (PAD, SOS, EOS, UNK)]
    outputs = [(EOS,), *((a, EOS) for a in symbols), *itertools.product(symbols, repeat=2)]
    with without_dropout(network):
        batch = with_outputs(data.batch([3] * len(outputs)), outputs)
        targets, mask = targets_of(batch)
        each = drawable(network.log_probs(*network.forward_batch(batch))).gather(-1, targets[..., None]).squeeze(-1)
    chances = each.where(mask, 0).sum(1).exp()
    assert float(chances.sum().detach()) == pytest.approx(1, abs=1e-5)
    parameters = [p for p in network.parameters() if p.requires_grad]
    worth = (chances * rewards([3] * len(outputs), outputs)).sum()
    expected = torch.autograd.grad(worth, parameters, allow_unused=True)
    spread, other = 10.0, (symbols[0], EOS)
    monkeypatch.setattr(losses, "LEAST_DIFFERENCE", spread)
    objective.begin(1.0)
    rows = data.batch([1, 3])
    total = torch.zeros(())
    for (i, one), (j, two) in itertools.product(enumerate(outputs), repeat=2):
        drawn = [other, one, other, two]
        monkeypatch.setattr(losses, "draw_outputs", lambda *_, drawn=drawn, **__: drawn)
        total = total + (chances[i] * chances[j]).detach() * objective(network, rows).mean
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    # downwards, and each of the two drawn outputs gives the gradient once
    scale = -2 / (spread * 2 * int(targets_of(rows)[1].sum()))
    compared = [(a, b) for a, b in zip(expected, found, strict=True) if a is not None and b is not None]
    assert max(float(a.abs().max()) for a, _ in compared) > 1e-3
    for one_gradient, other_gradient in compared:
        torch.testing.assert_close(scale * one_gradient, other_gradient, atol=1e-7, rtol=1e-3)


def test_outputs_are_drawn_as_often_as_they_are_probable() -> None:
    bundle, data, _ = small()
    network = bundle.network.eval()
    batch = data.batch([0] * 4000)
    torch.manual_seed(1)
    first = [output[0] for output in draw_outputs(network, batch, longest=1)]
    ready = network.ready(data.batch([0]).inputs, 1)
    step = network.step(ready, network.begin(ready), torch.tensor([SOS]))
    chances = network.log_probs(step, ready)[0].exp()
    chances[[PAD, SOS, UNK]] = 0
    chances = chances / chances.sum()
    assert UNK not in first
    for symbol, chance in enumerate(chances.tolist()):
        assert first.count(symbol) / 4000 == pytest.approx(chance, abs=0.035)


def test_several_outputs_of_a_row_are_drawn_and_learned_as_single_ones_are() -> None:
    """Inputs are encoded once: neither the order of the outputs nor their probabilities depend on it."""
    bundle, data, _ = small()
    network = bundle.network.eval()
    outputs = draw_outputs(network, data.batch([0, 2, 3]), longest=6, samples=2)
    assert len(outputs) == 6
    together = with_outputs(data.batch([0, 2, 3]), outputs)
    apart = with_outputs(data.batch([0, 2, 3] * 2), outputs)
    assert isinstance(together.target, Sequences)
    scores = [
        network.head.target_scores(*found, together.target.ids, mask=together.target.mask)
        for found in (network.forward_batch(together, times=2), network.forward_batch(apart))
    ]
    torch.testing.assert_close(*scores)
    with torch.no_grad():  # a model that is certain of one output for each row draws that one
        network.head.V.mul_(1e4)
    first = draw_outputs(network, data.batch([0, 2, 3]), longest=6)
    assert draw_outputs(network, data.batch([0, 2, 3]), longest=6, samples=3) == first * 3


def test_words_that_only_the_input_has_are_drawn_and_compared() -> None:
    bundle, data, objective = small(copying=True, reward={"metric": "edit", "samples": 2, "last": 0.5})
    network, true = bundle.network, data.stores["output"][3].tolist()
    beyond = network.head.symbols
    assert true[0] == beyond
    assert objective.rewards is not None
    assert objective.rewards([3, 3], [(*true, EOS), (true[1], *true[1:], EOS)]).tolist() == [1.0, 0.75]
    torch.manual_seed(1)
    drawn = draw_outputs(network.eval(), data.batch([0, 3] * 200), longest=3)
    assert max(max(output) for output in drawn[::2]) < beyond
    assert max(max(output) for output in drawn[1::2]) == beyond
    objective.begin(1.0)
    objective(network.train(), data.batch([0, 3])).total.backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_ctc_is_learned_beside_rewards_as_before() -> None:
    """The encoder changes in the reward part, and search may rank by what CTC reads from it."""
    bundle, data, objective = small(ctc=0.5, reward={"metric": "edit", "samples": 3, "last": 0.5})
    network, batch = bundle.network.eval(), data.batch([0, 1, 2, 3])
    before = objective(network, batch)
    objective.begin(1.0)
    after = objective(network, batch)
    assert after.terms["ctc"] / after.count == pytest.approx(before.terms["ctc"] / before.count, rel=1e-4)
    after.total.backward()
    assert all(float(p.grad.abs().max()) > 0 for name, p in network.named_parameters() if name.startswith("ctc."))


def test_no_output_is_drawn_beyond_learned_positions() -> None:
    recipe = load_recipe(
        {
            **ROWS,
            "decoder": {"kind": "transformer", "size": 8, "heads": 2, "longest": 5, "embedding": {"size": 8}},
            "attention": {"score": "general"},
            "output": {"tokens": "character", "max_length": 4},
            "loss": {"reward": {"metric": "edit", "last": 0.5}},
        },
        overrides=["decoder.positions=learned", "search.max_length=4"],
    )
    rows = [{"source": "ab", "output": "abc"}] * 20
    fields = Fields.build(recipe, lambda: iter(rows))
    data = Dataset.build(fields, rows)
    objective = Objective(recipe.loss, fields, rewards=Rewards(recipe.loss.reward, data))
    objective.begin(1.0)
    batch = data.batch(list(range(20)))
    torch.manual_seed(1)
    network = Bundle.create(recipe, fields).network
    assert objective(network, batch).targets > 20 * 5
    assert max(map(len, draw_outputs(network, batch, longest=most_drawn(network, batch)))) == 5


def test_outputs_are_learned_as_they_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout, and with the probabilities that they were drawn by: `<unk>` gains nothing."""
    bundle, data, objective = small(reward={"metric": "edit", "samples": 2, "last": 0.5})
    network = bundle.network.train()
    modes: list[bool] = []
    forward = network.forward_batch
    monkeypatch.setattr(network, "forward_batch", lambda *a, **k: modes.append(network.training) or forward(*a, **k))
    objective.begin(1.0)
    total = objective(network, data.batch([0, 2, 3])).total
    (by_bias,) = torch.autograd.grad(total, [network.head.c])
    assert modes == [False]
    assert network.training
    assert by_bias[[PAD, SOS, UNK]].abs().max() < 1e-5 * by_bias.abs().max()


def test_a_step_does_not_depend_on_the_unit_of_the_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, data, objective = small(reward={"metric": "edit", "samples": 4, "last": 0.5})
    assert objective.rewards is not None
    objective.begin(1.0)
    plain, totals = objective.rewards.reward, []
    for unit in (1.0, 10.0):
        monkeypatch.setattr(objective.rewards, "reward", lambda *given, unit=unit: unit * plain(*given))
        torch.manual_seed(2)
        totals.append(objective(bundle.network, data.batch([0, 1, 2, 3])).total)
    torch.testing.assert_close(*totals)


def test_a_loss_of_rewards_is_that_of_the_true_symbols_whatever_is_drawn() -> None:
    """A mean over the symbols drawn would weigh outputs by their lengths."""
    bundle, data, objective = small(reward={"metric": "edit", "samples": 3, "last": 0.25})
    objective.begin(0.5)
    assert objective.passes == 1
    objective.begin(0.75)
    loss = objective(bundle.network, data.batch([0, 1, 2, 3]))
    assert set(loss.terms) == {"reward"}
    assert loss.targets >= 12  # drawn
    assert loss.count == 3 * sum(len(output) + 1 for _, output in PAIRS)
    assert -1 <= objective.state["reward"] <= 1


def test_a_run_that_rewards_ends_with_a_higher_reward(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    first = run(ROWS, data, tmp_path / "first", ["training.updates=60"])
    more = ["training.updates=60", "loss.reward.metric=edit", "loss.reward.last=1", "training.learning_rate=0.005"]
    second = run(ROWS, data, tmp_path / "second", [*more, "training.patience=0"], start=first)
    before, after = (model.evaluate(data).metrics["cer"] for model in (first, second))
    assert after < before


def test_patience_ends_the_first_part_and_rewards_begin(tmp_path: Path) -> None:
    """A model that gets no better has its outputs rewarded earlier; only then patience ends the run."""
    told = RecordingListener()
    still = ["training.learning_rate=1e-30", "training.report_every=2", "training.patience=2", "training.updates=40"]
    data, rewarded = words(tmp_path / "words.tsv"), ["loss.reward.metric=edit", "loss.reward.last=0.5"]
    run(ROWS, data, tmp_path / "model", [*still, *rewarded], listeners=[told])
    reports = [(line["update"], "reward" in line.get("objective", {})) for line in journal(tmp_path / "model")]
    assert reports == [(2, False), (4, False), (6, False), (8, True), (10, True)]
    assert [note for note in told.notes if "no better" in note and "loss.reward" in note]
    assert last_checkpoint(tmp_path / "model").state.finished


def test_patience_counts_anew_when_rewards_begin(tmp_path: Path) -> None:
    """Two reports without a better model before, and two after."""
    still = ["training.learning_rate=1e-30", "training.report_every=2", "training.patience=3", "training.updates=20"]
    rewarded = ["loss.reward.metric=edit", "loss.reward.last=0.7"]
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", [*still, *rewarded])
    assert [line["update"] for line in journal(tmp_path / "model")] == [2, 4, 6, 8, 10, 12]


@pytest.mark.parametrize(
    ("metric", "changes", "reason"),
    [
        ("edit", {"output": {"kind": "label"}, "attention": "none"}, "one step"),
        ("edit", {"attention": {"score": "dot", "choice": "hard"}}, "hard"),
        ("cider", {"decoder": {"copy_from": "source"}}, "copied"),
    ],
)
def test_where_outputs_cannot_be_drawn_it_is_refused(metric: str, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=rf"loss\.reward\.metric: {metric}: .*{reason}"):
        load_recipe({"inputs": {"source": {}}, "loss": {"reward": {"metric": metric}}, **changes})


def test_metrics_by_these_names_exist() -> None:
    assert all(lookup(name) for name in ("cider", "bleu"))
