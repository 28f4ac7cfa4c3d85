"""What is dropped alike at all steps: masks of rows, recurrent weights, symbols; in cells and in whole models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.cell_loops import run_sequence
from seq2see.cells import Cell, CellSettings, CellState, build_cell
from seq2see.data.batches import Batch, Sequences
from seq2see.decoders import Decoder, RecurrentDecoder
from seq2see.deferred_gradients import plain_product
from seq2see.dropout import SequenceDropout, replace_symbols
from seq2see.embeddings import EmbeddingSettings, build_embedding
from seq2see.model import EncoderDecoder, Sizes
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import load_recipe
from seq2see.training.losses import scheduled_sampling
from tests.decoders.building import ROWS, STEPS, SYMBOLS, decoder, memory, same_state, stepped
from tests.recipe.refusing import problems_of

WIDTH, SIZE = 3, 5
CELLS: list[dict[str, Any]] = [{"cell": "rnn"}, {"cell": "gru"}, {"cell": "gru", "reset": "before"}, {"cell": "lstm"}]
DROPPED: dict[str, dict[str, Any]] = {
    "state": {"recurrent_dropout": 0.5},
    "weights": {"weight_drop": 0.5},
    "all": {"recurrent_dropout": 0.4, "weight_drop": 0.3, "dropout": 0.3, "variational": True},
}
of_cells = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell.values()))
of_kinds = pytest.mark.parametrize("kind", DROPPED)


def made(settings: dict[str, Any]) -> Cell:
    torch.manual_seed(0)
    cell = build_cell(CellSettings.model_validate({"size": SIZE, **settings}), {"x": WIDTH}).double()
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    return cell


def test_one_mask_serves_all_steps_and_each_row_has_its_own() -> None:
    dropped, x = SequenceDropout(), torch.ones(200, 7, 50)
    found = dropped(x, 0.3, "x")
    assert torch.equal(found, found[:, :1].expand_as(found))
    assert not torch.equal(found[0], found[1])
    assert torch.equal(dropped(x[:, 2], 0.3, "x"), found[:, 0])
    assert not torch.equal(dropped(x, 0.3, "y"), found)
    assert found.mean().item() == pytest.approx(1, abs=0.03)
    assert found.unique().tolist() == pytest.approx([0, 1 / 0.7], rel=1e-3)


def test_a_cell_may_multiply_vectors_of_other_widths() -> None:
    """As a cell with a projection of its state does: each width has a mask of its own, the same at all steps."""
    cell = made({"cell": "rnn", "recurrent_dropout": 0.5})
    product = cell.recurrent_product(plain_product, SequenceDropout())
    for width in (SIZE, 2):
        one, ones = torch.eye(width).double(), torch.ones(40, width).double()
        left = product(ones, one, f"{width}")
        assert set(left.unique().tolist()) == {0.0, 2.0}
        assert torch.equal(product(ones, one, f"{width}"), left)


def test_a_weight_is_dropped_once_a_pass_and_its_gradient_reaches_what_is_left() -> None:
    dropped, weight = SequenceDropout(), torch.full((60, 50), 2.0, requires_grad=True)
    left = dropped.weight(weight, 0.5, "U")
    assert dropped.weight(weight, 0.5, "U") is left
    assert left.mean().item() == pytest.approx(2, abs=0.2)
    left.sum().backward()
    torch.testing.assert_close(weight.grad, left.detach() / 2)


def test_a_share_of_nothing_is_the_thing_itself_and_draws_nothing() -> None:
    x, cell, dropped = torch.randn(2, 3), made({"cell": "gru"}), SequenceDropout()
    steps = torch.randn(2, 4, WIDTH, dtype=torch.float64)
    before = torch.get_rng_state()
    assert dropped(x, 0.0, "x") is x
    assert dropped.weight(x, 0.0, "U") is x
    cell.run({"x": steps})
    assert cell.recurrent_product(plain_product, dropped) is plain_product
    assert replace_symbols(torch.arange(9), 0.0, True, by=1, first=4).tolist() == list(range(9))
    assert torch.equal(torch.get_rng_state(), before)


# --- Cells


def by_hand(cell: Cell, x: Tensor, state: CellState, U: Tensor, mask: Tensor) -> CellState:
    """A step from the equations, with m * s in place of s wherever U multiplies it."""
    s, size = state[0], cell.size
    W = x @ cell.W["x"].t() + cell.b
    if cell.gates == 1:
        return (torch.tanh(W + (mask * s) @ U.t()),)
    if cell.gates == 4:
        i, f, g, o = (W + (mask * s) @ U.t()).split(size, 1)
        m = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(m), m
    r, z = torch.sigmoid(W[:, : 2 * size] + (mask * s) @ U[: 2 * size].t()).chunk(2, 1)
    U_n = U[2 * size :].t()
    inner = (mask * (r * s)) @ U_n if not hasattr(cell, "b_U") else r * ((mask * s) @ U_n + cell.b_U)
    return ((1 - z) * torch.tanh(W[:, 2 * size :] + inner) + z * s,)


@of_kinds
@of_cells
def test_a_pass_follows_the_equations_and_so_does_its_gradient(cell: dict[str, Any], kind: str) -> None:
    """Fused where the cell has a loop, and step by step; z * s_{t-1} and an LSTM's memory are left whole."""
    ours = made({**cell, **DROPPED[kind]})
    x = torch.randn(4, 6, WIDTH, dtype=torch.float64)
    start = tuple(torch.randn(4, SIZE, dtype=torch.float64, requires_grad=True) for _ in range(ours.states))
    dropped = SequenceDropout()
    outputs, last = ours.run({"x": x}, start, dropped)
    looped, _ = ours._loop(x, start, dropped)
    if cell.get("reset") == "before":  # two products, each with its part of U
        key = f"{id(ours)}.U"
        parts = ((ours.U[: 2 * SIZE], f"{key}_rz"), (ours.U[2 * SIZE :], f"{key}_n"))
        U = torch.cat([dropped.weight(part, ours.weight_drop, name) for part, name in parts])
        mask = dropped.mask(start[0], ours.recurrent_dropout, f"{id(ours)}.s")
    else:
        U, mask = ours.dropped_parts(start, dropped)
    mask = torch.ones_like(start[0]) if mask is None else mask
    assert kind == "weights" or (mask == 0).any()
    assert kind == "state" or (U == 0).any()
    state, steps = start, []
    for step in x.unbind(1):
        state = by_hand(ours, step, state, U, mask)
        steps.append(state[0])
    expected = torch.stack(steps, 1)
    wanted = [*ours.parameters(), *start]
    gradients = [
        torch.autograd.grad(found.pow(2).sum(), wanted, retain_graph=True, allow_unused=True)
        for found in (expected, outputs, looped)
    ]
    for found, grads in ((outputs, gradients[1]), (looped, gradients[2])):
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-8)
        torch.testing.assert_close(grads, gradients[0], atol=1e-9, rtol=1e-7)
    torch.testing.assert_close(last, state, atol=1e-10, rtol=1e-8)


def test_the_gradient_of_a_sequence_with_a_mask_is_the_numerical_one() -> None:
    for gates, states in ((3, 1), (4, 2)):
        shapes = [(2, 3, gates * 2), (gates * 2, 2), *[(2, 2)] * states]
        projected, U, *start = (torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes)
        b_U = torch.randn(2, dtype=torch.float64, requires_grad=True) if states == 1 else None
        mask = torch.tensor([[2.0, 0.0], [2.0, 2.0]], dtype=torch.float64)

        def run(projected: Tensor, U: Tensor, b_U: Tensor | None, *start: Tensor) -> tuple[Tensor, ...]:
            outputs, last = run_sequence(projected, U, b_U, start, mask)  # noqa: B023 - called at once
            return outputs, *last

        assert torch.autograd.gradcheck(run, (projected, U, b_U, *start))


@of_cells
def test_a_cell_is_whole_where_it_does_not_learn(cell: dict[str, Any]) -> None:
    ours, plain = made({**cell, **DROPPED["all"]}).eval(), made(cell)
    x = torch.randn(2, 4, WIDTH, dtype=torch.float64)
    assert torch.equal(ours.run({"x": x})[0], plain.run({"x": x})[0])
    assert not torch.equal(ours.train().run({"x": x})[0], plain.run({"x": x})[0])


# --- Decoders


LOOKS: list[dict[str, Any]] = [{"score": "none"}, {"query": "previous"}, {"query": "current"}, {"score": "dot"}]


@pytest.fixture
def in_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kind", ["state", "all"])
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.usefixtures("in_double")
def test_teaching_is_stepping_with_the_same_masks(look: dict[str, Any], kind: str) -> None:
    """Fused, all at once and by steps, for one layer and two: values and gradients."""
    tokens, given = torch.randint(0, SYMBOLS, (ROWS, STEPS)), memory()
    for cell, layers in (({"cell": "gru"}, 1), ({"cell": "lstm"}, 1), ({"cell": "gru", "reset": "before"}, 2)):
        settings = {**cell, **DROPPED[kind], "layers": layers, "every_step": "source"}
        ours = decoder(settings, look).train()
        ready = ours.prepare(given)
        taught, single = ours.teach(ready, ours.begin(ready), tokens), stepped(ours, ready, tokens)
        torch.testing.assert_close(taught.features, single.features, atol=1e-9, rtol=1e-7)
        same_state(taught.state, single.state)
        grads = [
            torch.autograd.grad(each.features.pow(2).sum(), list(ours.parameters()), retain_graph=True)
            for each in (taught, single)
        ]
        torch.testing.assert_close(*grads, atol=1e-9, rtol=1e-7)
        again = ours.prepare(given)
        assert not torch.equal(ours.teach(again, ours.begin(again), tokens).features, taught.features)
        ours.eval()
        plain = decoder({**cell, "layers": layers, "every_step": "source"}, look)
        plain.load_state_dict(ours.state_dict())
        whole, other = (each.teach(ready, each.begin(ready), tokens).features for each in (ours, plain))
        assert torch.equal(whole, other)


def model(**parts: Any) -> EncoderDecoder:
    torch.manual_seed(1)
    small: dict[str, Any] = {"size": 4, "embedding": {"size": 3}}
    raw: dict[str, Any] = {"inputs": {"source": {}}, "encoder": small, "decoder": {**small, "size": 8}}
    raw |= {key: {**raw.get(key, {}), **value} for key, value in parts.items()}
    return EncoderDecoder(load_recipe(raw), Sizes({"source": SYMBOLS}, SYMBOLS)).train()


def batch() -> Batch:
    ids = torch.randint(4, SYMBOLS, (ROWS, STEPS))
    mask = torch.ones_like(ids, dtype=torch.bool)
    return Batch({"source": Sequences(ids, mask)}, Sequences(ids, mask), list(range(ROWS)))


def test_scheduled_sampling_keeps_the_masks_of_a_pass() -> None:
    """It goes step by step: with no symbol of its own it is what teaching is."""
    ours, given = model(decoder=DROPPED["state"]), batch()
    step, ready = scheduled_sampling(ours, given, 0.0)
    assert isinstance(given.target, Sequences)
    torch.testing.assert_close(step.features, ours.teach(ready, given.target.ids).features, atol=1e-5, rtol=0)


@pytest.mark.parametrize("part", ["encoder", "decoder"])
@pytest.mark.parametrize("settings", [*DROPPED.values(), {"embedding": {"size": 3, "symbol_dropout": 0.5}}], ids=str)
def test_every_setting_does_something_while_learning_and_nothing_else(part: str, settings: dict[str, Any]) -> None:
    given, plain, ours = batch(), model(), model(**{part: settings})
    ours.load_state_dict(plain.state_dict())
    assert not torch.equal(ours.forward_batch(given)[0].features, ours.forward_batch(given)[0].features)
    found, expected = (each.eval().forward_batch(given)[0].features for each in (ours, plain))
    assert torch.equal(found, expected)


def test_shares_of_nothing_are_the_same_bits() -> None:
    zero = {"recurrent_dropout": 0.0, "weight_drop": 0.0, "embedding": {"size": 3, "symbol_dropout": 0.0}}
    given, found = batch(), []
    for settings in ({}, zero):
        ours = model(encoder={"dropout": 0.3, **settings}, decoder={"dropout": 0.3, **settings})
        torch.manual_seed(2)
        found.append(ours.forward_batch(given)[0].features)
    assert torch.equal(*found)


@pytest.mark.parametrize("self_attention", ["none", "dot"])
def test_an_encoder_drops_in_both_directions_and_keeps_its_masks(self_attention: str) -> None:
    """Locked dropout: what is zero at one place is zero at all of them; the summary has the mask of the places."""
    settings = {"dropout": 0.5, "variational": True, "recurrent_dropout": 0.2, "self_attention": self_attention}
    encoded = model(encoder=settings).encode(batch().inputs, ROWS)
    zeros = encoded.places["source"].states == 0
    assert 0 < zeros.float().mean() < 1
    assert torch.equal(zeros, zeros[:, :1].expand_as(zeros))
    assert torch.equal(encoded.summaries["source"] == 0, zeros[:, 0])


def test_the_common_decoder_stays_one_fused_loop() -> None:
    ours = model(decoder=DROPPED["all"])
    assert isinstance(ours.decoder, RecurrentDecoder)
    assert type(ours.decoder).teach is not Decoder.teach
    assert ours.decoder.loop is not None
    recipe = load_recipe({"inputs": {"source": {}}, "decoder": DROPPED["all"]})
    shown = answers_of(recipe).text()
    assert "fused" in shown
    assert "U of decoder 0.3" in shown


# --- Symbols


def test_a_share_of_symbols_is_read_as_unknown_and_special_ones_are_spared() -> None:
    torch.manual_seed(0)
    ids = torch.arange(8).repeat(5000)
    found = replace_symbols(ids, 0.25, True, by=1, first=4)
    assert torch.equal(found[ids < 4], ids[ids < 4])
    changed = found[ids >= 4] != ids[ids >= 4]
    assert changed.float().mean().item() == pytest.approx(0.25, abs=0.02)
    assert set(found[ids >= 4][changed].tolist()) == {1}
    assert torch.equal(replace_symbols(ids, 0.25, False, by=1, first=4), ids)


@pytest.mark.parametrize("kind", ["learned", "one-hot"])
def test_an_embedding_has_the_vector_of_the_unknown_there(kind: str) -> None:
    settings = EmbeddingSettings.model_validate({"kind": kind, "symbol_dropout": 0.5})
    embedding = build_embedding(settings, SYMBOLS)
    ids = torch.full((200,), 5)
    rows = embedding(ids)
    unknown, own = embedding.eval()(torch.tensor([1, 5]))
    as_unknown, as_own = ((rows == vector).all(1) for vector in (unknown, own))
    assert (as_unknown ^ as_own).all()
    assert 50 < as_unknown.sum() < 150


# --- Rules


def test_an_encoder_of_another_kind_has_no_such_setting() -> None:
    raw = {"inputs": {"source": {}}, "encoder": {"kind": "transformer", "recurrent_dropout": 0.2}}
    assert [path for path, _ in problems_of(raw)] == ["encoder.recurrent_dropout"]


def test_locked_dropout_of_symbols_alone_is_allowed_and_each_reading_has_its_own_masks() -> None:
    load_recipe({"inputs": {"source": {}}, "encoder": {"variational": True, "embedding": {"dropout": 0.1}}})
    for part in ({"recurrent_dropout": 0.1}, {"embedding": {"symbol_dropout": 0.1}}):
        load_recipe({"inputs": {"source": {}}, "decoder": part, "loss": {"consistency": 1}})
