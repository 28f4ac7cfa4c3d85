"""The Transformer decoder: torch's own layer, and one transition however a target is read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import scores
from seq2see.decoders import Conditions, Ready, Step, TransformerDecoder
from seq2see.decoders.base import DecoderSettings
from seq2see.embeddings import build_embedding
from seq2see.memory import View
from tests.decoders.building import MASK, ROWS, SIZE, STEPS, SYMBOLS, memory
from tests.settings import attention_of

PARTS: list[dict[str, Any]] = [
    {"score": "none"},
    *({"score": score} for score in scores.settings),
    {"score": "scaled-dot", "heads": 2},
    {"score": "coverage", "heads": 2},
    {"score": "additive", "heads": 3, "scope": "local-predicted", "window": 1},
    {"score": "general", "scope": "local-monotonic", "window": 1},
    {"score": "dot", "normaliser": "entmax15"},
    {"score": "additive", "choice": "hard"},
    {"score": "coverage", "choice": "hard", "estimator": "gumbel"},
]


def decoder(
    settings: dict[str, Any] | None = None,
    attention: dict[str, Any] | None = None,
    *,
    inputs: tuple[str, ...] = ("source",),
) -> TransformerDecoder:
    torch.manual_seed(3)
    raw = {"kind": "transformer", "size": SIZE, "layers": 2, "heads": 2, "feedforward": 8, "embedding": {"size": 3}}
    given = DecoderSettings.model_validate(raw | (settings or {}))
    asked = attention_of(**({"score": "additive", "size": 5} | (attention or {})))
    sizes = dict.fromkeys(inputs, SIZE)
    conditions = Conditions(
        build_embedding(given.embedding, SYMBOLS),
        looks={} if asked.score == "none" else dict.fromkeys(inputs, View(SIZE)),
        start=sizes if given.start else {},
        every=sizes if given.every_step else {},
    )
    made = TransformerDecoder(given, asked, conditions)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made.eval()


def stepped(made: TransformerDecoder, ready: Ready, tokens: Tensor, *, width: int = 1) -> Step:
    state, steps = made.begin(ready, width=width), []
    for token in tokens.unbind(1):
        steps.append(made.step(ready, state, token))
        state = steps[-1].state
    return Step.stacked(steps)


def close(ours: Step, theirs: Step) -> None:
    torch.testing.assert_close(ours.features, theirs.features, atol=1e-5, rtol=0)
    assert ours.by_layer().keys() == theirs.by_layer().keys()
    for name, look in ours.by_layer().items():
        torch.testing.assert_close(look.by_head(), theirs.by_layer()[name].by_head(), atol=1e-5, rtol=0)
    assert (ours.state.width, ours.state.position) == (theirs.state.width, theirs.state.position)
    torch.testing.assert_close(ours.state.caches, theirs.state.caches, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.state.past, theirs.state.past, atol=1e-5, rtol=0)


def said(look: dict[str, Any]) -> str:
    return "-".join(map(str, look.values()))


@pytest.mark.parametrize("look", PARTS, ids=said)
def test_teaching_is_stepping(look: dict[str, Any]) -> None:
    made, given = decoder(attention=look), memory()
    tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))
    ready = made.prepare(given)
    with torch.no_grad():
        taught = made.teach(ready, made.begin(ready), tokens)
        close(taught, stepped(made, ready, tokens))
    assert taught.features.isfinite().all()


@pytest.mark.parametrize("look", [PARTS[0], {"score": "dot"}, {"score": "coverage"}], ids=said)
def test_teaching_is_stepping_however_it_is_conditioned(look: dict[str, Any]) -> None:
    given = memory()
    tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))
    for start, every, positions in itertools.product(
        [{}, {"start": "source", "start_by": "copy"}, {"start": "source"}],
        [None, "source"],
        ["sinusoidal", "learned", "none"],
    ):
        made = decoder({**start, "every_step": every, "positions": positions, "layers": 1}, look)
        ready = made.prepare(given)
        with torch.no_grad():
            close(made.teach(ready, made.begin(ready), tokens), stepped(made, ready, tokens))


@pytest.mark.parametrize("look", PARTS, ids=said)
def test_rows_in_a_group_share_one_row_of_the_memory(look: dict[str, Any]) -> None:
    made, given = decoder({"start": "source", "every_step": "source"}, look), memory()
    copies = torch.arange(ROWS).repeat_interleave(2)
    tokens = torch.randint(0, SYMBOLS, (2 * ROWS, STEPS))
    ready, repeated = made.prepare(given), made.prepare(given.select(copies))
    with torch.no_grad():
        grouped = stepped(made, ready, tokens, width=2)
        close(made.teach(ready, made.begin(ready, width=2), tokens), grouped)
        grouped.state.width = 1
        close(grouped, stepped(made, repeated, tokens))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("look", [PARTS[0], {"score": "scaled-dot", "heads": 2}, {"score": "coverage"}], ids=said)
def test_teaching_has_the_gradients_of_stepping(look: dict[str, Any], width: int) -> None:
    made, given = decoder({"start": "source", "every_step": "source", "positions": "learned"}, look), memory()
    wanted = [*made.parameters(), given.summaries["source"].requires_grad_()]
    if made.looking:
        wanted.append(given.places["source"].states.requires_grad_())
    tokens = torch.randint(0, SYMBOLS, (ROWS * width, STEPS))
    ready = made.prepare(given)
    taught = made.teach(ready, made.begin(ready, width=width), tokens).features
    apart = stepped(made, ready, tokens, width=width).features
    ours, theirs = (torch.autograd.grad(one.pow(2).sum(), wanted, retain_graph=True) for one in (taught, apart))
    for our, their in zip(ours, theirs, strict=True):
        assert our.isfinite().all()
        torch.testing.assert_close(our, their, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("look", PARTS, ids=said)
def test_selected_rows_go_on_as_they_would_have(look: dict[str, Any]) -> None:
    """As a beam does: hypotheses change places, inputs leave."""
    made, given = decoder({"every_step": "source"}, look), memory()
    ready = made.prepare(given)
    tokens = torch.randint(0, SYMBOLS, (2 * ROWS, 3))
    with torch.no_grad():
        before = stepped(made, ready, tokens[:, :2], width=2).state
        after = made.step(ready, before, tokens[:, 2])
        pairs = torch.tensor([5, 4, 1, 0])
        two_each = made.step(ready.select(torch.tensor([2, 0])), before.select(pairs, 2), tokens[pairs, 2])
    torch.testing.assert_close(two_each.features, after.features[pairs], atol=1e-6, rtol=0)
    for name, one in after.by_layer().items():
        torch.testing.assert_close(two_each.by_layer()[name].dense(), one.dense()[pairs], atol=1e-6, rtol=0)


def test_a_target_taught_in_two_halves_is_the_whole() -> None:
    made, given = decoder({"start": "source"}, {"score": "dot"}), memory()
    ready, tokens = made.prepare(given), torch.randint(0, SYMBOLS, (ROWS, 6))
    whole = made.teach(ready, made.begin(ready), tokens)
    first = made.teach(ready, made.begin(ready), tokens[:, :4])
    second = made.teach(ready, first.state, tokens[:, 4:])
    torch.testing.assert_close(torch.cat([first.features, second.features], 1), whole.features, atol=1e-5, rtol=0)


def test_its_layer_is_torchs() -> None:
    made = decoder({"layers": 1}, {"score": "scaled-dot", "heads": 2})
    layer, theirs = made.blocks[0], nn.TransformerDecoderLayer(SIZE, 2, 8, 0.0, batch_first=True, norm_first=True)
    assert layer.norm_2 is not None
    assert layer.W_c is None
    looking = layer.looking.over["source"]
    parts = {theirs.self_attn: layer.inward, theirs.multihead_attn: looking}
    with torch.no_grad():
        for their, our in parts.items():
            their.in_proj_weight.copy_(torch.cat([our.W_q.weight, our.W_k.weight, our.W_v.weight]))
            their.in_proj_bias.copy_(torch.cat([our.W_q.bias, our.W_k.bias, our.W_v.bias]))
            their.out_proj.load_state_dict(our.W_o.state_dict())
        for their_part, our_part in [
            (theirs.norm1, layer.norm_1),
            (theirs.norm2, layer.norm_2),
            (theirs.norm3, layer.norm_3),
            (theirs.linear1, layer.feed.W_1),
            (theirs.linear2, layer.feed.W_2),
        ]:
            their_part.load_state_dict(our_part.state_dict())
    given, tokens = memory(), torch.randint(0, SYMBOLS, (ROWS, STEPS))
    real = MASK.any(1)
    hidden = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
    theirs.eval()
    wanted = theirs(
        made.entrance(tokens)[real],
        given.places["source"].states[real],
        tgt_mask=hidden,
        memory_key_padding_mask=~MASK[real],
    )
    ready = made.prepare(given)
    found = made.teach(ready, made.begin(ready), tokens).features[real]
    torch.testing.assert_close(found, made.norm(wanted), atol=1e-5, rtol=0)


def test_every_layer_looks_and_says_so() -> None:
    made = decoder({"layers": 3}, inputs=("premise", "hypothesis"))
    ready = made.prepare(memory(inputs=("premise", "hypothesis")))
    step = made.step(ready, made.begin(ready), torch.tensor([1, 2, 3]))
    assert list(step.looks) == ["premise", "hypothesis"]
    lower = [f"{name}.layer-{number}" for number in (1, 2) for name in ("premise", "hypothesis")]
    assert list(step.by_layer()) == [*step.looks, *lower]
    assert not torch.equal(step.looks["premise"].weights, step.by_layer()["premise.layer-1"].weights)


def test_forced_weights_hold_in_every_layer_or_in_one() -> None:
    made, ready = (one := decoder()), one.prepare(memory())
    token = torch.tensor([1, 2, 3])
    weights = torch.tensor([[0, 0, 1.0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    free = made.step(ready, made.begin(ready), token)
    everywhere = made.step(ready, made.begin(ready), token, forced={"source": weights})
    for look in everywhere.by_layer().values():
        torch.testing.assert_close(look.dense(), weights)
    below = made.step(ready, made.begin(ready), token, forced={"source.layer-1": weights})
    torch.testing.assert_close(below.by_layer()["source.layer-1"].dense(), weights)
    assert not torch.allclose(below.looks["source"].dense(), weights)
    for one in (everywhere, below):
        assert not torch.allclose(one.features[:2], free.features[:2])


def test_what_comes_later_is_not_seen() -> None:
    made, ready = (one := decoder()), one.prepare(memory())
    tokens = torch.randint(0, SYMBOLS, (ROWS, STEPS))
    other = tokens.clone()
    other[:, 3] = (other[:, 3] + 1) % SYMBOLS
    ours, theirs = (made.teach(ready, made.begin(ready), one).features for one in (tokens, other))
    torch.testing.assert_close(ours[:, :3], theirs[:, :3])
    assert not torch.allclose(ours[:, 3:], theirs[:, 3:])
    assert not torch.allclose(ours[:, 4], theirs[:, 4])
