"""Occlusion and gradients of real models: each number found again by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2see.api import Model
from seq2see.data.batches import Sequences
from seq2see.errors import UserError
from seq2see.modalities.text import TextField, TextInput
from seq2see.modalities.vector import VectorField, VectorInput
from seq2see.pipeline.faithful import GRADIENT, OCCLUSION, PlaceImportance, embedding_leaves
from seq2see.pipeline.scoring import score_rows

ROW = {"source": "dax", "output": "DAX"}


def test_a_symbol_is_left_out_of_each_row() -> None:
    column = Sequences(torch.tensor([[5, 6, 7]] * 2), torch.ones(2, 3, dtype=torch.bool), [["a", "b", "c"]] * 2)
    cut = TextField(TextInput()).occlusion(column).without(torch.tensor([0, 2]))
    assert cut.ids.tolist() == [[6, 7], [5, 6]]
    assert cut.symbols == [["b", "c"], ["a", "b"]]
    with pytest.raises(UserError, match="list"):
        VectorField(VectorInput()).occlusion([])


def test_occlusion_is_the_drop_of_the_scores(model: Model) -> None:
    found = PlaceImportance(model.bundle, ROW).measure()["source"]
    whole = np.array(score_rows(model.bundles, [ROW])[0].log_probs)
    for place in range(3):
        short = {**ROW, "source": ROW["source"][:place] + ROW["source"][place + 1 :]}
        cut = np.array(score_rows(model.bundles, [short])[0].log_probs)
        assert found.importance[OCCLUSION][:, place] == pytest.approx(whole - cut, abs=1e-5)
    looks = model.look(ROW["source"], target=ROW["output"]).looks
    assert found.attention == pytest.approx(looks.weights, abs=1e-5)


def test_gradients_of_all_steps_at_once_are_those_of_each_alone(model: Model) -> None:
    network = model.bundle.network
    network.zero_grad(set_to_none=True)
    found = PlaceImportance(model.bundle, ROW).measure()["source"].importance[GRADIENT]
    batch = model.bundle.fields.batch([ROW], target=True)
    for step in range(4):
        with embedding_leaves(network, "source") as vectors:
            made, _ = network.forward_batch(batch)
        log_prob = network.head.logits(made.features).log_softmax(-1)[0, step, batch.target.ids[0, step]]
        (slope,) = torch.autograd.grad(log_prob, vectors)
        assert found[step] == pytest.approx((slope * vectors[0]).norm(dim=-1)[0].detach().numpy(), rel=1e-3)
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_model_that_copies_looks_at_what_matters(model: Model, table: object) -> None:
    found = model.faithful(str(table), rows=12)
    assert found.rows == 12
    for one in found.agreements:
        assert one.top.low > one.shuffled_top.high


def test_inputs_that_share_an_encoder_are_told_apart(labels: Model) -> None:
    row = {"one": "a x", "two": "b y", "output": "other"}
    batch = labels.bundle.fields.batch([row], target=True)
    network = labels.bundle.network
    table = network.encoder("one").embedding.weight
    for name in ("one", "two"):
        with embedding_leaves(network, name) as vectors:
            network.forward_batch(batch)
        assert len(vectors) == 1
        assert torch.equal(vectors[0][0], table[batch.inputs[name].ids[0]])
    found = labels.faithful([row, {**row, "one": "c z"}], rows=0)
    assert {(one.input, one.measure) for one in found.agreements} == {
        (name, measure) for name in ("one", "two") for measure in (OCCLUSION, GRADIENT)
    }


def test_rows_left_out_are_counted_with_the_reason(model: Model) -> None:
    found = model.faithful([ROW, {"source": "a", "output": "A"}], rows=0)
    assert (found.rows, found.left_out, found.to_dict()["left_out"]) == (1, 1, 1)
    assert found.text().endswith("1 row left out: at none of their steps do two places weigh differently\n")
