"""The output read off the places: a term of the loss, counted, kept with the model, and taken along or left."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import seq2see
from seq2see.data.batches import Batch, Sequences
from seq2see.decoders.ctc import likeliest_path
from seq2see.errors import UserError
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.training.losses import ctc_note
from tests.objectives import objective_of
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, run, weights, words

PLAIN = load_recipe({**ROWS, "attention": {"score": "none"}})
ALONG = load_recipe({**ROWS, "attention": {"score": "none"}, "loss": {"ctc": 0.5}})
REAL = torch.ones(2, 3, dtype=torch.bool)


def batch() -> Batch:
    source = Sequences(torch.tensor([[5, 6, 7], [6, 5, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.bool))
    target = Sequences(torch.tensor([[5, 6, 3], [6, 6, 3]]), REAL)
    return Batch({"source": source}, target, [0, 1])


def network(recipe: seq2see.Recipe) -> EncoderDecoder:
    torch.manual_seed(1)
    return EncoderDecoder(recipe, Sizes({"source": 9}, 9)).eval()


def test_the_term_is_its_weight_times_the_loss_along_the_places() -> None:
    model, plain, objective = network(ALONG), network(PLAIN), objective_of(ALONG)
    found, without = objective(model, batch()), objective_of(PLAIN)(plain, batch())
    assert model.ctc is not None
    targets = torch.tensor([[5, 6], [6, 6]])
    places = model.encode(batch().inputs, 2).places["source"]
    expected = model.ctc.loss(places, targets, mask=torch.ones(2, 2, dtype=torch.bool))
    assert expected.left_out == 1  # 6 6 needs a blank between, and has two places
    assert found.terms["ctc"] == pytest.approx(0.5 * expected.total.item())
    assert found.total.item() == pytest.approx(without.total.item() + found.terms["ctc"], rel=1e-5)
    assert objective.state == {"ctc_rows": 2, "ctc_left_out": 1}
    assert ctc_note(objective.state) == (
        "50.0% of the rows read had fewer places than their output takes, and no part in loss.ctc"
    )
    assert ctc_note({"ctc_rows": 2, "ctc_left_out": 0}) is None


def test_without_decoding_the_loss_is_the_term_alone() -> None:
    model, objective = network(ALONG), objective_of(ALONG)
    both = objective(model, batch())
    objective.decoding = False
    alone = objective(model, batch())
    assert alone.total.item() == pytest.approx(both.terms["ctc"])
    assert alone.terms == {"ctc": pytest.approx(both.terms["ctc"])}
    assert (alone.count, alone.targets) == (both.count, both.targets)
    assert objective.state == {"ctc_rows": 4, "ctc_left_out": 2}  # counted in both
    alone.mean.backward()
    without = {name.split(".")[0] for name, weight in model.named_parameters() if weight.grad is None}
    assert without == {"decoder", "head"}
    assert not any(weight.grad is None for weight in model.encoders.parameters())


def test_ctc_comes_first_for_its_share_of_the_run(tmp_path: Path) -> None:
    """Two of four updates leave the decoder as it began; the other two train all."""
    data = words(tmp_path / "words.tsv")
    plan = ["loss.ctc=0.5", "training.warmup=0", "training.schedule=constant", "training.report_every=1"]
    run(ROWS, data, tmp_path / "none", [*plan, "training.updates=1", "training.learning_rate=1e-12"])
    run(ROWS, data, tmp_path / "half", [*plan, "training.updates=4", "loss.ctc_first=0.5"])
    first, last = journal(tmp_path / "half")[0], journal(tmp_path / "half")[-1]
    assert first["loss"] < last["loss"]  # the decoder's own loss came on top
    run(ROWS, data, tmp_path / "all", [*plan, "training.updates=2", "loss.ctc_first=0.99"])
    began, alone = weights(tmp_path / "none"), weights(tmp_path / "all")
    assert all(torch.allclose(began[name], alone[name]) for name in began if name.startswith(("decoder", "head")))
    assert not all(torch.allclose(began[name], alone[name]) for name in began if name.startswith("encoders"))


def test_ctc_cannot_come_first_where_there_is_none() -> None:
    with pytest.raises(UserError, match=r"loss\.ctc_first: has no effect here: loss\.ctc is 0"):
        load_recipe({**ROWS, "loss": {"ctc_first": 0.5}})


def test_the_likeliest_path_is_the_best_of_all_paths() -> None:
    """Against every sequence of symbols and blanks that gives the target."""
    random = np.random.default_rng(0)
    for target in ([1, 2], [1, 1], [2], [1, 2, 1]):
        for _ in range(5):
            log_probs = np.log(random.dirichlet(np.ones(3), 5)).astype(np.float32)
            best = max(
                (
                    z
                    for z in itertools.product(range(3), repeat=5)
                    if [k for k, _ in itertools.groupby(z) if k] == target
                ),
                key=lambda z: sum(log_probs[place, symbol] for place, symbol in enumerate(z)),
            )
            path = likeliest_path(log_probs, np.array(target))
            assert [0 if step < 0 else target[step] for step in path.tolist()] == list(best)


def test_the_path_of_a_long_target_has_every_symbol_in_order() -> None:
    target = np.arange(300) % 7 + 1
    log_probs = np.full((700, 8), -5.0, dtype=np.float32)
    log_probs[2 * np.arange(300) + 50, target] = 0
    path = likeliest_path(log_probs, target)
    assert [step for step, _ in itertools.groupby(path.tolist()) if step >= 0] == list(range(300))
    assert (path[2 * np.arange(300) + 50] == np.arange(300)).all()


def test_attention_is_taught_by_where_ctc_reads_a_symbol() -> None:
    recipe = load_recipe({**ROWS, "loss": {"ctc": 0.5, "ctc_alignment": 2.0}})
    model = network(recipe)
    found = objective_of(recipe)(model, batch())
    assert model.ctc is not None
    step, ready = model.forward_batch(batch())
    weights = step.looks["source"].dense()[0]
    log_probs, _ = model.ctc.log_probs(ready.memory.places["source"])
    path = likeliest_path(log_probs[0].detach().numpy(), np.array([5, 6]))
    shares = [
        weights[t][[j for j in range(3) if any(abs(j - k) < 2 for k in range(3) if path[k] == t)]].sum() for t in (0, 1)
    ]
    expected = -2.0 * sum(share.log().item() for share in shares)  # the second row has too few places
    assert found.terms["ctc_alignment"] == pytest.approx(expected, rel=1e-5)
    found.mean.backward()
    assert all(weight.grad is not None for name, weight in model.named_parameters() if "attention" in name)


def test_ctc_teaches_no_attention_where_there_is_none() -> None:
    with pytest.raises(UserError, match=r"loss\.ctc_alignment: has no effect here: 'source'"):
        load_recipe({**ROWS, "attention": {"score": "none"}, "loss": {"ctc": 0.5, "ctc_alignment": 0.5}})


def test_only_a_model_that_is_asked_has_the_layer() -> None:
    assert network(PLAIN).ctc is None
    names = [name for name, _ in network(ALONG).named_parameters()]
    assert set(names) - {name for name, _ in network(PLAIN).named_parameters()} == {"ctc.W_z.weight", "ctc.W_z.bias"}


def test_it_is_kept_with_the_model_told_and_taken_along(tmp_path: Path) -> None:
    data, told = words(tmp_path / "words.tsv"), RecordingListener()
    asked = ["loss.ctc=0.5", "training.updates=4"]
    model = run(ROWS, data, tmp_path / "first", asked, listeners=[told])
    kept = weights(tmp_path / "first")
    assert "ctc.W_z.weight" in kept
    assert seq2see.load(tmp_path / "first").predict("abc").text == model.predict("abc").text
    counted = journal(tmp_path / "first")[-1]["objective"]
    assert counted["ctc_rows"] > counted["ctc_left_out"] > 0
    assert any("no part in loss.ctc" in note for note in told.notes)

    short = ["training.updates=1", "training.learning_rate=1e-9", "training.warmup=0"]
    run(ROWS, data, tmp_path / "left", short, start=tmp_path / "first")
    assert "ctc.W_z.weight" not in weights(tmp_path / "left")
    run(ROWS, data, tmp_path / "again", [*short, "loss.ctc=0.5"], start=tmp_path / "first")
    torch.testing.assert_close(weights(tmp_path / "again")["ctc.W_z.weight"], kept["ctc.W_z.weight"])
    run(ROWS, data, tmp_path / "new", [*short, "loss.ctc=0.5"], start=tmp_path / "left")
    assert "ctc.W_z.weight" in weights(tmp_path / "new")


def test_a_sequence_of_labels_is_refused() -> None:
    with pytest.raises(UserError, match=r"loss\.ctc"):
        load_recipe({"inputs": {"source": {}}, "output": {"kind": "label"}, "loss": {"ctc": 1}})
