"""Decoders that look at words through sentences: taught at once or step by step, alone or in a batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seq2see.data.batches import Nested
from seq2see.model import EncoderDecoder, Sizes, shifted
from seq2see.recipe import load_recipe

DOCUMENTS = torch.tensor([[[5, 6, 7], [8, 0, 0]], [[4, 0, 0], [0, 0, 0]]])
TARGETS = torch.tensor([[5, 6, 3], [7, 3, 0]])


def model(*, levels: str = "recurrent", decoder: str = "recurrent", **attention: Any) -> EncoderDecoder:
    recipe = {
        "inputs": {"doc": {"kind": "texts"}},
        "encoder": {"kind": "hierarchical", "levels": levels, "pooling_size": 3, "embedding": {"size": 5}}
        | {"size": 4 if levels == "recurrent" else 8},
        "attention": {"over": "doc.words", "through": "sentences", **attention},
        "decoder": {"kind": decoder, "size": 8, "embedding": {"size": 5}, "start": "doc"},
    }
    torch.manual_seed(2)
    return EncoderDecoder(load_recipe(recipe), Sizes({"doc": 10}, 10)).eval()


@pytest.mark.parametrize(
    "attention",
    [
        {"score": "additive", "size": 4},
        {"score": "general", "query": "current"},
        {"score": "dot", "query": "current", "input_feeding": False},
        {"score": "coverage", "size": 4, "filters": 2},
        {"score": "additive", "size": 4, "choice": "hard"},
        {"score": "scaled-dot", "heads": 2},
        {"score": "coverage", "size": 4, "filters": 2, "heads": 4},
        {"score": "additive", "size": 4, "scope": "local-monotonic", "window": 1},
        {"score": "coverage", "size": 4, "filters": 2, "scope": "local-predicted", "window": 1, "heads": 2},
        {"score": "general", "choice": "hard", "scope": "local-predicted", "window": 1, "levels": "transformer"},
        {"score": "scaled-dot", "heads": 2, "decoder": "transformer", "levels": "transformer"},
        {"score": "additive", "size": 4, "scope": "local-monotonic", "window": 1, "decoder": "transformer"},
    ],
)
def test_teaching_equals_stepping(attention: dict[str, Any]) -> None:
    network = model(**attention)
    ready = network.ready({"doc": Nested(DOCUMENTS, DOCUMENTS > 0)}, 2)
    taught = network.teach(ready, TARGETS)
    state = network.begin(ready)
    for t, tokens in enumerate(shifted(TARGETS).unbind(1)):
        step = network.step(ready, state, tokens)
        state = step.state
        assert torch.allclose(step.features, taught.features[:, t], atol=1e-5)
        assert torch.allclose(step.looks["doc.words"].dense(), taught.looks["doc.words"].dense()[:, t], atol=1e-5)


def test_every_parameter_learns() -> None:
    network = model(score="additive", size=4).train()
    step = network.teach(network.ready({"doc": Nested(DOCUMENTS, DOCUMENTS > 0)}, 2), TARGETS)
    step.features.square().sum().backward()
    still = [name for name, one in network.named_parameters() if one.grad is None or not one.grad.norm()]
    assert all(name.startswith("head.") for name in still)


def test_weights_are_kept_under_names_without_a_point_too_many() -> None:
    names = [name for name in model(score="general").state_dict() if "looking" in name]
    assert names == [f"decoder.looking.over.doc/words.{level}.score.W.weight" for level in ("larger", "smaller")]
