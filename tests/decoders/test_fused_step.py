"""Fused steps give the features and looks of `step`, for every kind that they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from seq2see.decoders import CopyHead, RecurrentDecoder, SoftmaxHead, fused_step
from seq2see.decoders.fused_step import fused_steps
from seq2see.packed_weights import PackedWeights
from tests.decoders.building import PLACES, ROWS, STEPS, SYMBOLS, decoder, memory

WIDTH = 3
LOOKS: list[dict[str, Any]] = [
    {"query": "previous"},
    {"query": "current"},
    {"query": "current", "input_feeding": False},
]


def head_of(made: RecurrentDecoder, *, readout: int = 0) -> SoftmaxHead:
    head = SoftmaxHead(made.features_size, SYMBOLS, readout=readout)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return head.eval()


def check(
    settings: dict[str, Any], attention: dict[str, Any], forced: Mapping[int, Tensor] | None = None, width: int = WIDTH
) -> None:
    """Both read the same symbols (one for all at first); hypotheses change places, and the first input leaves."""
    torch.manual_seed(4)
    made = decoder(settings, attention)
    for readout in (0, 5):
        head, packed = head_of(made, readout=readout), PackedWeights()
        for _ in range(3):
            packed.refresh()
            compare(made, head, forced or {}, width, packed)


def compare(
    made: RecurrentDecoder, head: SoftmaxHead, forced: Mapping[int, Tensor], width: int, packed: PackedWeights
) -> None:
    with torch.inference_mode():
        ready = made.prepare(memory()).with_packed(PackedWeights())
        fused = fused_steps(made, head, ready, packed)
        assert fused is not None
        state, rows = made.begin(ready, width=width), ROWS * width
        fused.begin(width)
        for number in range(STEPS):
            token, own = torch.randint(SYMBOLS, (rows,)), forced.get(number)
            token = token if number else token[:1].expand(rows)
            step = made.step(ready, state, token, forced=None if own is None else {"source": own})
            read, weights = fused.step(token, own)
            each = slice(None, None, rows // len(read))
            assert len(read) == (rows if number else ROWS)
            torch.testing.assert_close(read, head.read_out(step.features)[each], atol=1e-5, rtol=0)
            torch.testing.assert_close(weights, step.looks["source"].dense()[each], atol=1e-5, rtol=0)
            gone = number == 2
            kept = torch.arange(int(gone), ready.rows)
            order = (kept[:, None] * width + torch.randint(width, (len(kept), width))).flatten()
            state, rows = step.state.select(order, width), len(order)
            ready = ready.select(kept) if gone else ready
            fused.select(order, kept if gone else None)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("score", ["additive", "dot", "scaled-dot", "general"])
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_they_are_the_steps_of_the_decoder(cell: str, score: str, look: dict[str, Any]) -> None:
    for output, every, temperature in (("state", None, 1.0), ("all", "source", 0.7)):
        settings = {"cell": cell, "output": output, "every_step": every, "start": "source"}
        check(settings, {"score": score, "temperature": temperature, **look})


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.parametrize("few", [0, 100])
def test_with_products_of_places_or_of_contexts(
    look: dict[str, Any], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_step, "FEW_PLACES", few)
    monkeypatch.setattr(fused_step, "FEW_INPUTS", few)  # of few rows the symbols are not made unique
    for width in (1, WIDTH):
        check({}, look, width=width)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_weights_of_the_caller_take_the_place_of_the_models(look: dict[str, Any]) -> None:
    own = torch.full((ROWS * WIDTH, PLACES), torch.nan)
    own[:WIDTH] = torch.tensor([0.0, 0.5, 0.5, 0.0])
    check({}, look, forced={1: own})


def test_others_go_through_the_parts() -> None:
    for settings, attention in (
        ({"layers": 2}, {}),
        ({"cell": "rnn"}, {}),
        ({}, {"score": "concat"}),
        ({}, {"scope": "local-monotonic"}),
        ({}, {"choice": "hard"}),
        ({}, {"score": "none"}),
    ):
        made = decoder(settings, attention)
        assert fused_steps(made, head_of(made), made.prepare(memory()), PackedWeights()) is None
    made = decoder({}, {})
    assert fused_steps(made, head_of(made), made.prepare(memory()), None) is None
    copying = CopyHead(made.features_size, SYMBOLS, source="source")
    assert fused_steps(made, copying, made.prepare(memory()), PackedWeights()) is None
