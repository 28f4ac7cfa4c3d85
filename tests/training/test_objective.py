"""What is minimised: class weights, scheduled sampling, and the gradient's reach in streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import log_softmax

from seq2see.data.batches import Batch
from seq2see.data.vocabulary import SOS
from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.dataset import Stream
from seq2see.pipeline.fields import Fields
from seq2see.recipe import load_recipe
from seq2see.recipe.schema import LossSettings
from seq2see.training.feeds import StreamFeed
from seq2see.training.losses import Objective, class_weights
from tests.training.tiny import ROWS, TEXT, run, text

WORDS = ["abc", "ba", "cab", "a"]
LABELLED = [("a b", "yes"), ("b a", "no"), ("a", "no"), ("b", "no")]


def copying() -> tuple[Bundle, Batch]:
    """A model that is not trained, and a batch of rows to copy."""
    rows = [{"source": word, "output": word} for word in WORDS]
    recipe = load_recipe(ROWS)
    fields = Fields.build(recipe, lambda: iter(rows))
    bundle = Bundle.create(recipe, fields)
    bundle.network.eval()
    for parameter in bundle.network.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return bundle, fields.batch(rows, target=True)


def labelling(**loss: Any) -> tuple[Bundle, Batch, Objective]:
    rows = [{"source": given, "output": label} for given, label in LABELLED]
    recipe = load_recipe({"inputs": {"source": {}}, "output": {"kind": "label"}, "loss": loss})
    fields = Fields.build(recipe, lambda: iter(rows))
    bundle = Bundle.create(recipe, fields)
    bundle.network.eval()
    return bundle, fields.batch(rows, target=True), Objective(recipe.loss, fields)


def test_balanced_classes_weigh_the_same_in_all() -> None:
    bundle, batch, objective = labelling(class_weights="balanced")
    labels = bundle.fields.label_output.labels
    assert objective.weights is not None
    weights = dict(zip(labels, objective.weights.tolist(), strict=True))
    assert weights["yes"] * 1 == pytest.approx(weights["no"] * 3)
    assert sum(weights[label] for _, label in LABELLED) == pytest.approx(len(LABELLED))

    step, ready = bundle.network.forward_batch(batch)
    logs = bundle.network.log_probs(step, ready).detach()
    each = [weights[label] * -logs[row, labels.index(label)] for row, (_, label) in enumerate(LABELLED)]
    loss = objective(bundle.network, batch)
    assert loss.mean.item() == pytest.approx(sum(map(float, each)) / 4, rel=1e-5)


def test_class_weights_by_name() -> None:
    bundle, _, objective = labelling(class_weights={"yes": 5.0})
    assert objective.weights is not None
    labels = bundle.fields.label_output.labels
    assert dict(zip(labels, objective.weights.tolist(), strict=True)) == {"no": 1.0, "yes": 5.0}
    with pytest.raises(UserError, match=r"loss\.class_weights: no label is called 'yess' \(did you mean 'yes'\?\)"):
        class_weights(LossSettings(class_weights={"yess": 2.0}), bundle.fields)


def test_no_own_symbols_is_teacher_forcing() -> None:
    bundle, batch = copying()
    objective = Objective(bundle.recipe.loss, bundle.fields)
    forced = objective(bundle.network, batch, own_share=0.0)
    nearly = objective(bundle.network, batch, own_share=1e-12)
    assert nearly.total.item() == pytest.approx(forced.total.item(), rel=1e-5)
    assert nearly.count == forced.count == sum(len(word) + 1 for word in WORDS)


def test_own_symbols_alone_are_a_greedy_walk() -> None:
    bundle, batch = copying()
    network = bundle.network
    total = Objective(bundle.recipe.loss, bundle.fields)(network, batch, own_share=1.0).total.item()
    forced = Objective(bundle.recipe.loss, bundle.fields)(network, batch).total.item()

    assert batch.target is not None
    ids, mask = batch.target.ids, batch.target.mask
    ready = network.ready(batch.inputs, len(WORDS))
    state, token, expected = network.begin(ready), torch.full((len(WORDS),), SOS), 0.0
    for t in range(ids.shape[1]):
        step = network.step(ready, state, token)
        state, logs = step.state, log_softmax(network.head.logits(step.features).detach(), dim=-1)
        expected -= float((logs[range(len(WORDS)), ids[:, t]] * mask[:, t]).sum())
        token = logs.argmax(-1)
    assert total == pytest.approx(expected, rel=1e-5)
    assert total != pytest.approx(forced, rel=1e-3)


def reading(tmp_path: Path) -> tuple[Bundle, StreamFeed, Objective]:
    recipe = load_recipe({**TEXT, "decoder": {**TEXT["decoder"], "dropout": 0}})
    lines = text(tmp_path / "text.txt").read_text("utf-8").splitlines()
    fields = Fields.build(recipe, lambda: ({"output": line} for line in lines))
    stream = Stream.build(fields.text_output, lines)
    return Bundle.create(recipe, fields), StreamFeed(stream, recipe.training), Objective(recipe.loss, fields)


def gradients(bundle: Bundle) -> dict[str, torch.Tensor | None]:
    found = {name: parameter.grad for name, parameter in bundle.network.named_parameters()}
    bundle.network.zero_grad(set_to_none=True)
    return found


def test_in_a_stream_the_state_goes_on_and_the_gradient_does_not(tmp_path: Path) -> None:
    bundle, feed, objective = reading(tmp_path)
    network, cpu = bundle.network, torch.device("cpu")

    def loss(index: int) -> torch.Tensor:
        return feed.loss(network, objective, 0, index, own_share=0.0, device=cpu).total

    first = loss(0)
    first.backward()
    reached = gradients(bundle)
    second = loss(1)
    second.backward()
    cut = gradients(bundle)
    [s_0] = [name for name in cut if name.endswith("s_0")]
    assert reached[s_0] is not None
    assert reached[s_0].abs().sum() > 0
    assert cut[s_0] is None

    bptt, lanes = feed.bptt, feed.lanes
    one, two = (next(feed.stream.chunks(bptt=bptt, lanes=lanes, start=index)) for index in (0, 1))
    ready = network.ready({}, lanes)
    inputs, targets = torch.cat([one.inputs, two.inputs], 1), torch.cat([one.targets, two.targets], 1)
    step = network.read_on(ready, inputs, network.begin(ready))
    whole = network.head.loss(step, ready, targets, mask=torch.ones_like(targets, dtype=torch.bool))
    assert whole.item() == pytest.approx((first + second).item(), rel=1e-5)
    whole.backward()
    through = gradients(bundle)
    truncated = {name: reached[name] + (cut[name] if cut[name] is not None else 0) for name in through}
    assert not torch.allclose(through[s_0], truncated[s_0], rtol=1e-3)


def test_streams_refuse_scheduled_sampling(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"training\.scheduled_sampling.*a stream"):
        run(TEXT, text(tmp_path / "text.txt"), tmp_path / "model", ["training.scheduled_sampling=0.5"], updates=3)
