"""Heads with scaled-dot are torch's own multi-head attention; with any score each head is an attention by itself."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from seq2see.attention import Attention, MultiHead, build_attention, build_score, scores
from seq2see.attention.build import AttentionSettings
from seq2see.attention.scopes import LocalPredicted
from seq2see.memory import Places, View

QUERY, KEY, PLACES, QUERIES, HEADS = 6, 8, 5, 3, 4
MASK = torch.arange(PLACES) < torch.tensor([5, 2, 1, 4])[:, None]


def randomised(module: nn.Module) -> None:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)


def torchs(ours: MultiHead) -> nn.MultiheadAttention:
    """torch's module with our weights. It projects queries of the values' size, so W_q is put before it."""
    theirs = nn.MultiheadAttention(KEY, HEADS, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([torch.eye(KEY), ours.W_k.weight, ours.W_v.weight]))
        theirs.in_proj_bias.copy_(torch.cat([torch.zeros(KEY), ours.W_k.bias, ours.W_v.bias]))
        theirs.out_proj.weight.copy_(ours.W_o.weight)
        theirs.out_proj.bias.copy_(ours.W_o.bias)
    return theirs


def test_heads_of_scaled_dot_are_torchs() -> None:
    settings = AttentionSettings(score="scaled-dot", heads=HEADS)
    ours = build_attention(settings, query=QUERY, view=View(KEY))
    assert isinstance(ours, MultiHead)
    randomised(ours)
    states, query = torch.randn(len(MASK), PLACES, KEY), torch.randn(len(MASK), QUERIES, QUERY)
    ours_states, theirs_states = states.clone().requires_grad_(), states.clone().requires_grad_()
    look = ours(query, ours.prepare(Places(ours_states, MASK)))
    context, weights = torchs(ours)(
        ours.W_q(query), theirs_states, theirs_states, key_padding_mask=~MASK, average_attn_weights=False
    )
    torch.testing.assert_close(look.context, context, atol=1e-5, rtol=0)
    torch.testing.assert_close(look.by_head(), weights.transpose(1, 2), atol=1e-5, rtol=0)
    torch.testing.assert_close(look.dense(), weights.mean(1), atol=1e-5, rtol=0)
    upstream = torch.randn_like(context)
    look.context.backward(upstream)
    context.backward(upstream)
    torch.testing.assert_close(ours_states.grad, theirs_states.grad, atol=1e-5, rtol=0)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("score", scores.settings)
def test_each_head_is_an_attention_by_itself(score: str, local: bool) -> None:
    """Two looks of every head, the second remembering the first."""
    part = KEY // HEADS
    scope = LocalPredicted(View(KEY), query=part, size=3, reach=1) if local else None
    inner = Attention(build_score(score, part, part, {"size": 3}), scope=scope)
    ours = MultiHead(QUERY, KEY, heads=HEADS, inner=inner)
    randomised(ours)
    states, queries = torch.randn(len(MASK), PLACES, KEY), torch.randn(2, len(MASK), 1, QUERY)
    prepared = ours.prepare(Places(states, MASK))
    first = ours(queries[0], prepared)
    second = ours(queries[1], prepared, past=first.past)
    contexts: list[Tensor] = []
    for head in range(HEADS):
        cut = slice(head * part, (head + 1) * part)
        keys, values = ours.W_k(states)[..., cut], ours.W_v(states)[..., cut]
        own = inner.prepare(Places(keys, MASK))
        own.values = values
        own.value_gather.source = values
        before = inner(ours.W_q(queries[0])[..., cut], own)
        after = inner(ours.W_q(queries[1])[..., cut], own, past=before.past)
        torch.testing.assert_close(second.by_head()[:, :, head], after.dense(), atol=1e-5, rtol=0)
        contexts.append(after.context)
    torch.testing.assert_close(second.context, ours.W_o(torch.cat(contexts, -1)), atol=1e-5, rtol=0)


def test_forced_weights_hold_for_every_head() -> None:
    ours = build_attention(AttentionSettings(score="additive", heads=2), query=QUERY, view=View(KEY))
    states, forced = torch.randn(1, PLACES, KEY), torch.zeros(1, 1, PLACES)
    forced[..., 3] = 1
    look = ours(torch.randn(1, 1, QUERY), ours.prepare(Places(states, MASK[:1])), forced=forced)
    torch.testing.assert_close(look.by_head(), forced[:, :, None].expand(-1, -1, 2, -1))
    torch.testing.assert_close(look.context[0, 0], ours.W_o(ours.W_v(states[0, 3])), atol=1e-5, rtol=0)
