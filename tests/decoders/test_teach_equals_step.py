"""One transition: a given target taught at once is the same as stepping through it, in every form of the decoder."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from seq2see.attention import scores
from seq2see.decoders import Decoder, RecurrentDecoder
from seq2see.memory import Memory
from tests.decoders.building import ROWS, SIZE, STEPS, SYMBOLS, close, decoder, memory, same_state, stepped

CELLS = [
    {"cell": "rnn"},
    {"cell": "gru"},
    {"cell": "gru", "reset": "before"},
    {"cell": "lstm"},
]
LOOKS: list[dict[str, Any]] = [
    {"score": "none"},
    {"query": "previous"},
    {"query": "current"},
    {"query": "current", "input_feeding": False},
]
STARTS: list[dict[str, Any]] = [{}, {"start": "source", "start_by": "copy"}, {"start": "source", "start_by": "dense"}]
REST: list[dict[str, Any]] = [
    {"every_step": every, "output": output, "layers": layers}
    for every, output, layers in itertools.product([None, "source"], ["all", "state"], [1, 2])
]


def check(made: RecurrentDecoder, given: Memory) -> None:
    tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))
    ready = made.prepare(given)
    with torch.no_grad():
        close(made.teach(ready, made.begin(ready), tokens), stepped(made, ready, tokens))


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell.values()))
def test_teaching_is_stepping(cell: dict[str, Any], look: dict[str, Any]) -> None:
    """Every start, every step, output and number of layers, for each cell and way of looking."""
    given = memory()
    for start, rest in itertools.product(STARTS, REST):
        check(decoder({**cell, **start, **rest}, look), given)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_what_a_decoder_of_ones_own_inherits_teaches_the_same(look: dict[str, Any]) -> None:
    made, tokens = decoder({"start": "source"}, look), torch.randint(0, SYMBOLS, (ROWS, STEPS))
    ready = made.prepare(memory())
    with torch.no_grad():
        plain = Decoder.teach(made, ready, made.begin(ready), tokens)
        close(plain, made.teach(ready, made.begin(ready), tokens))


@pytest.mark.parametrize("look", LOOKS[1:], ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.parametrize("score", scores.settings)
def test_teaching_is_stepping_with_every_score(score: str, look: dict[str, Any]) -> None:
    check(decoder({}, {"score": score, **look}), memory())


@pytest.mark.parametrize("join", ["concat", "compare"])
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_teaching_is_stepping_with_two_inputs(look: dict[str, Any], join: str) -> None:
    inputs = ("premise", "hypothesis")
    settings = {"start": list(inputs), "every_step": list(inputs), "join": join}
    made = decoder(settings, look, inputs=inputs)
    check(made, memory(inputs=inputs))
    if made.looking:
        assert made.looking.size == 2 * SIZE


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.parametrize("every", [None, "source"])
def test_rows_in_a_group_share_one_row_of_the_memory(look: dict[str, Any], every: str | None) -> None:
    """Three rows for each input, memory never repeated, equal three copies of the memory, stepped and taught."""
    made, given = decoder({"cell": "lstm", "start": "source", "every_step": every}, look), memory()
    copies = torch.arange(ROWS).repeat_interleave(3)
    tokens = torch.randint(0, SYMBOLS, (3 * ROWS, STEPS))
    ready, repeated = made.prepare(given), made.prepare(given.select(copies))
    with torch.no_grad():
        grouped = stepped(made, ready, tokens, width=3)
        taught = made.teach(ready, made.begin(ready, width=3), tokens)
        apart = stepped(made, repeated, tokens)
    close(taught, grouped)
    grouped.state.width = 1
    close(grouped, apart)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_selected_rows_go_on_as_they_would_have(look: dict[str, Any]) -> None:
    made, given = decoder({"layers": 2, "every_step": "source"}, look), memory()
    ready = made.prepare(given)
    tokens = torch.randint(0, SYMBOLS, (2 * ROWS, 2))
    with torch.no_grad():
        before = stepped(made, ready, tokens[:, :1], width=2).state
        after = made.step(ready, before, tokens[:, 1])
        kept = torch.tensor([5, 4, 1])  # both rows of the third input, one of the first
        rows = torch.tensor([2, 2, 0])
        one_each = made.step(ready.select(rows), before.select(kept, 1), tokens[kept, 1])
        inputs = torch.tensor([2, 0])
        pairs = torch.tensor([5, 4, 1, 0])
        two_each = made.step(ready.select(inputs), before.select(pairs, 2), tokens[pairs, 1])
    torch.testing.assert_close(one_each.features, after.features[kept], atol=1e-6, rtol=0)
    torch.testing.assert_close(two_each.features, after.features[pairs], atol=1e-6, rtol=0)
    assert (one_each.state.width, two_each.state.width, two_each.state.position) == (1, 2, 2)
    for name in after.looks:
        torch.testing.assert_close(two_each.looks[name].dense(), after.looks[name].dense()[pairs], atol=1e-6, rtol=0)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
def test_a_target_taught_in_two_halves_is_the_whole(look: dict[str, Any]) -> None:
    """What truncated backpropagation through time stands on."""
    made, given = decoder({"cell": "lstm", "layers": 2}, look), memory()
    ready = made.prepare(given)
    tokens = torch.randint(0, SYMBOLS, (ROWS, 6))
    whole = made.teach(ready, made.begin(ready), tokens)
    first = made.teach(ready, made.begin(ready), tokens[:, :4])
    cut = first.state.detach()
    assert not any(part.requires_grad for state in cut.cells for part in state)
    assert cut.context is None or not cut.context.requires_grad
    second = made.teach(ready, cut, tokens[:, 4:])
    torch.testing.assert_close(torch.cat([first.features, second.features], 1), whole.features, atol=1e-5, rtol=0)
    same_state(second.state, whole.state)


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: "-".join(map(str, look.values())))
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(cell.values()))
def test_teaching_has_the_gradients_of_stepping(cell: dict[str, Any], look: dict[str, Any]) -> None:
    made, given = decoder({**cell, "layers": 2, "start": "source", "every_step": "source"}, look), memory()
    wanted = [*made.parameters(), given.summaries["source"].requires_grad_()]
    if made.looking:
        wanted.append(given.places["source"].states.requires_grad_())
    tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))
    ready = made.prepare(given)
    taught, apart = made.teach(ready, made.begin(ready), tokens), stepped(made, ready, tokens)
    ours, theirs = (
        torch.autograd.grad(one.features.pow(2).sum() + one.state.cells[0][0].sum(), wanted, retain_graph=True)
        for one in (taught, apart)
    )
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, atol=1e-4, rtol=1e-4)
