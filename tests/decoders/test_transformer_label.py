"""A Transformer that gives a label: one question that looks at the places in layer after layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import scores
from seq2see.decoders import Conditions, TransformerDecoder, build_decoder
from seq2see.decoders.base import DecoderSettings
from seq2see.memory import View
from tests.decoders.building import MASK, ROWS, SIZE, memory
from tests.settings import attention_of

INPUTS = ("premise", "hypothesis")

ALIKE = (".over.premise.W_k.bias", ".over.hypothesis.W_k.bias")
"""Of heads: adds q . b to the energies of all places alike, which softmax does not see."""

NOISE = 1e-5
"""Gradients that are zero by an equation come out of float32 below this, all others far above."""

UNASKED = {
    "dot": ALIKE,
    "scaled-dot": ALIKE,
    "general": ALIKE,
    "deep": (".out.bias",),  # added to the energies of all places alike
    "coverage": (".F", "W_f."),  # before the first look there is nothing to cover
    "location": (".W_k.",),  # the places' content is unseen
    "static": ("norm_2.", "premise.W_q.", "hypothesis.W_q."),  # nobody asks
    "uniform": ("norm_2.", ".W_q.", ".W_k."),  # ... and nothing is weighed
}
"""Parameters that the equations of a score leave without a gradient, and no others."""


def decoder(
    attention: dict[str, Any] | None = None,
    *,
    looks: tuple[str, ...] = ("premise",),
    start: tuple[str, ...] = ("hypothesis",),
    **more: Any,
) -> TransformerDecoder:
    torch.manual_seed(4)
    given = {"kind": "transformer", "size": SIZE, "layers": 2, "feedforward": 8, **more}
    made = build_decoder(
        DecoderSettings.model_validate(given),
        attention_of(**{"score": "additive", "size": 5, **(attention or {})}),
        Conditions(looks=dict.fromkeys(looks, View(SIZE)), start=dict.fromkeys(start, SIZE)),
    )
    assert isinstance(made, TransformerDecoder)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


def test_the_question_looks_and_thinks_layer_after_layer() -> None:
    made, given = decoder(), memory(inputs=INPUTS)
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready), None)
    assert made.start is not None
    x: Tensor = torch.tanh(made.start.W_start(given.summaries["hypothesis"]))
    weights = []
    for layer in made.blocks:
        assert layer.norm_2 is not None
        assert layer.W_c is not None
        look = layer.looking.over["premise"]
        seen = look(layer.norm_2(x)[:, None], look.prepare(given.places["premise"]))
        weights.append(seen.weights[:, 0])
        x = x + layer.W_c(seen.context[:, 0])
        x = x + layer.feed(layer.norm_3(x))
    torch.testing.assert_close(step.features, made.norm(x))
    torch.testing.assert_close(step.looks["premise"].weights, weights[1])
    torch.testing.assert_close(step.by_layer()["premise.layer-1"].weights, weights[0])
    assert made.features_size == SIZE
    assert made.one_step
    assert (step.looks["premise"].weights[~MASK] == 0).all()


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("score", [*scores.settings, "none"])
def test_every_score_serves_and_every_parameter_learns(score: str, heads: int) -> None:
    looks = () if score == "none" else INPUTS
    made, given = decoder({"score": score, "heads": heads}, looks=looks, start=()), memory(inputs=INPUTS)
    ready = made.prepare(given)
    step = made.step(ready, made.begin(ready), None)
    step.features.pow(2).sum().backward()
    assert all(one.grad is None or one.grad.isfinite().all() for one in made.parameters())
    still = {name for name, one in made.named_parameters() if one.grad is None or not float(one.grad.norm()) > NOISE}
    unasked = {name for name, _ in made.named_parameters() if any(part in name for part in UNASKED.get(score, ()))}
    assert still == unasked
    assert not [name for name, _ in made.named_parameters() if "inward" in name or "norm_1" in name]


def test_weights_can_be_forced_in_every_layer_or_in_one() -> None:
    made, given = decoder(), memory(inputs=INPUTS)
    ready = made.prepare(given)
    forced = torch.tensor([[0.0, 0.0, 0.0, 1.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    everywhere = made.step(ready, made.begin(ready), None, forced={"premise": forced})
    below = made.step(ready, made.begin(ready), None, forced={"premise.layer-1": forced})
    for look in everywhere.by_layer().values():
        torch.testing.assert_close(look.dense(), forced)
    torch.testing.assert_close(below.by_layer()["premise.layer-1"].dense(), forced)
    assert not torch.allclose(below.looks["premise"].dense(), forced)


def test_a_row_alone_is_answered_as_in_a_batch() -> None:
    made, given = decoder(), memory(inputs=INPUTS)
    ready = made.prepare(given)
    together = made.step(ready, made.begin(ready), None).features
    for row in range(ROWS):
        one = made.prepare(given.select(torch.tensor([row])))
        torch.testing.assert_close(made.step(one, made.begin(one), None).features[0], together[row])
    wide = made.step(ready, made.begin(ready, width=2), None).features
    torch.testing.assert_close(wide, together.repeat_interleave(2, 0))


def test_it_reads_no_symbol() -> None:
    made = decoder()
    ready = made.prepare(memory(inputs=INPUTS))
    with pytest.raises(TypeError, match="this decoder reads no symbol, got one"):
        made.step(ready, made.begin(ready), torch.tensor([1, 2, 3]))
    with pytest.raises(TypeError, match="no target"):
        made.teach(ready, made.begin(ready), torch.tensor([[1], [2], [3]]))
