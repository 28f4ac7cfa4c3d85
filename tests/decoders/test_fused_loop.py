"""The fused loop over time gives what single steps give, and its gradient is the numerical one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from seq2see.attention import Attention
from seq2see.data.batches import Sequences
from seq2see.decoders import Ready, RecurrentDecoder, State, Step
from seq2see.decoders.fused_loop import run_loop
from seq2see.model import EncoderDecoder, Sizes
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import load_recipe

SYMBOLS, ROWS, PLACES, STEPS, SIZE = 11, 4, 5, 6, 8
WAYS = pytest.mark.parametrize(
    ("cell", "score", "query"),
    [
        ("gru", "additive", "previous"),
        ("gru", "additive", "current"),
        ("gru", "dot", "previous"),
        ("gru", "general", "current"),
        ("gru", "scaled-dot", "current"),
        ("lstm", "additive", "previous"),
        ("lstm", "additive", "current"),
        ("lstm", "general", "previous"),
        ("lstm", "dot", "current"),
    ],
)


def build(cell: str, score: str, query: str, wide: int = SIZE, **attention: object) -> EncoderDecoder:
    torch.manual_seed(1)
    size = {"size": 5 * wide // SIZE} if score == "additive" else {}
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"size": wide // 2, "embedding": {"size": 3}},
            "attention": {"score": score, "query": query, "temperature": 0.7} | size | attention,
            "decoder": {"cell": cell, "size": wide, "embedding": {"size": 3}, "output": "all"},
        }
    )
    model = EncoderDecoder(recipe, Sizes({"source": SYMBOLS}, SYMBOLS))
    for parameter in model.parameters():  # far from zero, also the biases
        torch.nn.init.normal_(parameter, std=0.5 * (SIZE / wide) ** 0.5)
    return model


def source() -> Sequences:
    """One row without any place."""
    lengths = torch.tensor([PLACES, 2, 4, 0])
    return Sequences(torch.randint(4, SYMBOLS, (ROWS, PLACES)), torch.arange(PLACES) < lengths[:, None])


def by_steps(model: EncoderDecoder, ready: Ready, state: State, tokens: Tensor) -> Step:
    steps = []
    for token in tokens.unbind(1):
        steps.append(model.step(ready, state, token))
        state = steps[-1].state
    return Step.stacked(steps)


def decoder_of(model: EncoderDecoder) -> RecurrentDecoder:
    assert isinstance(model.decoder, RecurrentDecoder)
    return model.decoder


@WAYS
def test_values_and_gradients_are_those_of_single_steps(cell: str, score: str, query: str) -> None:
    check_against_single_steps(build(cell, score, query).double(), atol=1e-10, rtol=1e-8)


@WAYS
def test_weights_that_are_packed_give_the_same(cell: str, score: str, query: str) -> None:
    """Products of single precision with weights of many numbers are computed by another library."""
    check_against_single_steps(build(cell, score, query, wide=96), atol=1e-4, rtol=1e-4)


def check_against_single_steps(model: EncoderDecoder, *, atol: float, rtol: float) -> None:
    decoder = decoder_of(model)
    assert decoder.loop is not None
    inputs, tokens = {"source": source()}, torch.randint(4, SYMBOLS, (ROWS, STEPS))
    results = []
    for teach in (decoder.teach, lambda *given: by_steps(model, *given)):
        ready = model.ready(inputs, ROWS)
        step = teach(ready, model.begin(ready), tokens)
        weights = step.looks["source"].dense()
        last = [part for part in (*step.state.cells[0], step.state.context) if part is not None]
        parts = [step.features, weights, *last]
        draw = torch.Generator().manual_seed(3)
        total = sum((part * torch.randn(part.shape, generator=draw, dtype=part.dtype)).sum() for part in parts)
        assert isinstance(total, Tensor)
        results.append((parts, torch.autograd.grad(total, list(model.decoder.parameters()) + encoder_of(model))))
        assert step.state.position == STEPS
    torch.testing.assert_close(results[0], results[1], atol=atol, rtol=rtol)


def encoder_of(model: EncoderDecoder) -> list[Tensor]:
    return list(model.encoder("source").parameters())


@WAYS
def test_the_gradient_is_the_numerical_one(cell: str, score: str, query: str) -> None:
    model = build(cell, score, query).double()
    decoder = decoder_of(model)
    (attention,) = decoder.looking.over.values()
    assert isinstance(attention, Attention)
    assert decoder.loop is not None
    ready = model.ready({"source": source()}, ROWS)
    state = model.begin(ready)
    prepared = ready.looks["source"]
    projected = torch.randn(ROWS, 3, len(decoder.first.b), dtype=torch.float64)
    context = None if state.context is None else torch.randn_like(state.context)
    tensors = [projected, prepared.keys, prepared.values, *state.cells[0], *([] if context is None else [context])]
    tensors = [part.detach().clone().requires_grad_() for part in tensors]

    def outputs(projected: Tensor, keys: Tensor, values: Tensor, *start: Tensor) -> tuple[Tensor, ...]:
        cells, fed = (start, None) if context is None else (start[:-1], start[-1])
        given = replace(prepared, keys=keys, values=values)
        done = run_loop(decoder.loop, decoder.first, attention, given, projected, cells, fed)  # type: ignore[arg-type]
        return done.outputs, done.contexts, done.weights, *done.state

    assert torch.autograd.gradcheck(outputs, tensors)


def test_at_half_precision_values_and_gradients_are_close() -> None:
    model = build("gru", "additive", "previous")
    for parameter in model.parameters():
        parameter.data *= 0.3
    tokens, grads, features = torch.randint(4, SYMBOLS, (ROWS, STEPS)), [], []
    for enabled in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            torch.manual_seed(2)
            ready = model.ready({"source": source()}, ROWS)
            step = model.decoder.teach(ready, model.begin(ready), tokens)
        features.append(step.features.float())
        grads.append(torch.autograd.grad(features[-1].square().sum(), list(model.decoder.parameters())))
    torch.testing.assert_close(features[1], features[0], atol=0.02, rtol=0.05)
    assert all(grad.dtype == torch.float32 for grad in grads[1])
    exact, ours = (torch.cat([grad.flatten() for grad in each]) for each in grads)
    assert torch.nn.functional.cosine_similarity(ours, exact, dim=0) > 0.999


@pytest.mark.parametrize(
    "attention",
    [{"scope": "local-monotonic"}, {"normaliser": "sparsemax"}, {"choice": "hard"}, {"heads": 2}],
    ids=lambda settings: next(iter(settings)),
)
def test_other_attentions_go_step_by_step(attention: dict[str, object]) -> None:
    assert decoder_of(build("gru", "additive", "previous", **attention)).loop is None


@pytest.mark.parametrize(
    ("overrides", "way"),
    [
        ([], "one fused loop over the steps"),
        (["decoder.layers=2"], "step by step"),
        (["attention.score=coverage"], "step by step"),
        (["attention.query=current", "attention.input_feeding=false"], "all steps at once"),
        (["training.scheduled_sampling=0.5"], "step by step"),
    ],
)
def test_show_says_how_targets_are_gone_through(overrides: list[str], way: str) -> None:
    shown = answers_of(load_recipe("translation", overrides=overrides)).text()
    assert f"; computed: {way}" in shown


def test_what_a_step_kept_goes_with_the_backward_pass() -> None:
    """The gradient frees the steps, though the loss is still there: the next update needs their memory."""
    model = build("gru", "additive", "previous")
    ready = model.ready({"source": source()}, ROWS)
    total = model.decoder.teach(ready, model.begin(ready), torch.randint(4, SYMBOLS, (ROWS, STEPS))).features.sum()
    total.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        total.backward()


def test_no_step_keeps_the_activations_of_its_places() -> None:
    """For the way back the graph keeps one weight for each place and step, but no vector."""
    model, steps, numbers = build("gru", "additive", "previous"), 8, dict[int, int]()
    for places in (10, 40):
        ids = torch.randint(4, SYMBOLS, (ROWS, places))
        ready = model.ready({"source": Sequences(ids, torch.ones_like(ids, dtype=torch.bool))}, ROWS)
        kept: list[int] = []

        def count(tensor: Tensor, kept: list[int] = kept) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            model.decoder.teach(ready, model.begin(ready), torch.randint(4, SYMBOLS, (ROWS, steps)))
        numbers[places] = sum(kept)
    width = ready.looks["source"].keys.shape[2] + ready.looks["source"].values.shape[2]
    assert numbers[40] - numbers[10] == ROWS * 30 * (width + steps + 1)  # keys and values, weights, the mask
