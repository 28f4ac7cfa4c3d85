"""Words looked at through sentences by heads and inside windows: each against its equation, in any combination."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from seq2see.attention import TwoLevelAttention, TwoLevelMultiHead, build_attention
from seq2see.attention.records import scatter_to_places
from seq2see.memory import Places, View
from tests.attention.test_two_level import PARTS, QUERY, SIZE, additive, document, softmax
from tests.settings import attention_of

Array = np.ndarray
HEADS, ABOVE = 2, 10
SCOPES = ["global", "local-monotonic", "local-predicted"]


def built(*, above: int = SIZE, **settings: object) -> TwoLevelAttention | TwoLevelMultiHead:
    torch.manual_seed(3)
    given = attention_of(over="x.words", through="sentences", **{"size": 4, **settings})
    made = build_attention(given, query=QUERY, view=View(SIZE, "tokens", inside=View(above, "sentences")))
    assert isinstance(made, TwoLevelAttention | TwoLevelMultiHead)
    return made


def linear(layer: torch.nn.Module, states: Array) -> Array:
    return np.asarray(states @ layer.weight.detach().double().numpy().T + layer.bias.detach().double().numpy())  # type: ignore[union-attr, operator]


def numbers(places: torch.Tensor) -> Array:
    return np.asarray(places.detach().double().numpy())


def test_every_head_has_both_levels_of_its_own() -> None:
    look, places = built(score="additive", heads=HEADS), document(PARTS)
    assert isinstance(look, TwoLevelMultiHead)
    assert isinstance(look.inner, TwoLevelAttention)
    query = torch.randn(3, 2, QUERY)
    seen = look(query, look.prepare(places))
    assert places.inside is not None
    part = SIZE // HEADS
    assert seen.weights.shape == (3, 2, HEADS, 6)
    for row, asked in itertools.product(range(2), range(2)):
        q, parts = numbers(query[row, asked]), PARTS[row]
        words, sentences = numbers(places.states[row]), numbers(places.inside.states[row, : len(parts)])
        ends, joined, shares = np.cumsum([0, *parts]), [], []
        for head in range(HEADS):
            own = slice(head * part, (head + 1) * part)
            projected = [linear(layer, given)[..., own] for layer, given in
                         [(look.larger["W_q"], q), (look.larger["W_k"], sentences), (look.W_q, q), (look.W_k, words),
                          (look.W_v, words)]]  # fmt: skip
            above = softmax(additive(look.inner.larger.score, projected[0], projected[1]))
            scored = additive(look.inner.smaller.score, projected[2], projected[3])
            weights = np.concatenate([above[i] * softmax(scored[ends[i] : ends[i + 1]]) for i in range(len(parts))])
            found = numbers(seen.weights[row, asked, head])
            assert found[: len(weights)] == pytest.approx(weights, abs=1e-5)
            assert not found[len(weights) :].any()
            joined.append(weights @ projected[4][: len(weights)])
            shares.append(above)
        assert numbers(seen.context[row, asked]) == pytest.approx(linear(look.W_o, np.concatenate(joined)), abs=1e-5)
        assert seen.larger is not None
        assert numbers(seen.larger[row, asked, : len(parts)]) == pytest.approx(np.mean(shares, 0), abs=1e-5)
    assert not seen.context[2].any()


@pytest.mark.parametrize("through", ["sentences", None])
def test_an_energy_is_told_wherever_a_head_has_asked(through: str | None) -> None:
    """Heads with windows that lie apart: of a place that one of them asked, it is that one's energy."""
    torch.manual_seed(3)
    given = attention_of(over="x.words", through=through, heads=HEADS, score="dot", scope="local-predicted",
                              window=1, gaussian=False, size=4)  # type: ignore[arg-type]  # fmt: skip
    look = build_attention(given, query=QUERY, view=View(SIZE, "tokens", inside=View(SIZE, "sentences")))
    places = document([[2, 2, 2, 2]])
    for name, parameter in look.named_parameters():
        if "scope" in name:
            torch.nn.init.normal_(parameter, std=9.0)
    seen = look(torch.randn(1, 40, QUERY), look.prepare(places))
    by_head, weights, energies = seen.by_head()[0], seen.dense()[0], seen.dense_energies()[0]
    once = (by_head > 0).sum(-2) == 1
    assert once.any()
    assert ((weights > 0) == energies.isfinite()).all()
    assert seen.energies is not None
    apart = scatter_to_places(seen.energies, seen.numbers, seen.places, empty=-torch.inf)[0]
    torch.testing.assert_close(energies[once], apart.amax(-2)[once])
    if through:
        assert seen.larger is not None
        assert seen.larger_energies is not None
        assert (seen.larger[0] == 0).any()
        assert ((seen.larger > 0) == seen.larger_energies.isfinite()).all()


@pytest.mark.parametrize("gaussian", [True, False])
def test_a_window_is_one_of_words_and_holds_the_sentences_it_touches(gaussian: bool) -> None:
    reach = 2
    look, places = built(score="additive", scope="local-monotonic", window=reach, gaussian=gaussian), document(PARTS)
    assert isinstance(look, TwoLevelAttention)
    query = torch.randn(3, 5, QUERY)
    seen = look(query, look.prepare(places), positions=torch.arange(5))
    assert places.inside is not None
    for row, asked in itertools.product(range(2), range(5)):
        q, parts = numbers(query[row, asked]), PARTS[row]
        count = sum(parts)
        centre = min(asked, count - 1)
        holders = np.repeat(np.arange(len(parts)), parts)
        there = [j for j in range(count) if abs(j - centre) <= reach]
        far = {j: gaussian * -((j - centre) ** 2) / (2 * (reach / 2) ** 2) for j in there}
        inside = sorted({int(holders[j]) for j in there})
        scored = additive(look.smaller.score, q, numbers(places.states[row]))
        upper = additive(look.larger.score, q, numbers(places.inside.states[row]))
        near = {i: max(far[j] for j in there if holders[j] == i) for i in inside}
        above = dict(zip(inside, softmax(np.array([upper[i] + near[i] for i in inside])), strict=True))
        wanted = np.zeros(6)
        for i in inside:
            own = [j for j in there if holders[j] == i]
            wanted[own] = above[i] * softmax(np.array([scored[j] + far[j] for j in own]))
        assert numbers(seen.dense()[row, asked]) == pytest.approx(wanted, abs=1e-5)
        context = wanted[:count] @ numbers(places.states[row, :count])
        assert numbers(seen.context[row, asked]) == pytest.approx(context, abs=1e-5)
        assert seen.larger is not None
        assert numbers(seen.larger[row, asked]) == pytest.approx([above.get(i, 0.0) for i in range(3)], abs=1e-5)
    assert not seen.dense()[2].any()


def test_a_window_that_holds_everything_is_no_window() -> None:
    """Of one sentence size: words are weighed as without, sentences too."""
    places, query = document(PARTS), torch.randn(3, 2, QUERY)
    wide = built(score="additive", scope="local-monotonic", window=50, gaussian=False)
    whole = built(score="additive")
    wide.load_state_dict(whole.state_dict())
    ours, theirs = (look(query, look.prepare(places)) for look in (wide, whole))
    torch.testing.assert_close(ours.dense(), theirs.dense(), atol=1e-6, rtol=0)
    torch.testing.assert_close(ours.context, theirs.context, atol=1e-6, rtol=0)
    torch.testing.assert_close(ours.larger, theirs.larger, atol=1e-6, rtol=0)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("score", ["dot", "additive", "coverage", "location", "static", "uniform"])
@pytest.mark.parametrize(("normaliser", "choice"), [("softmax", "soft"), ("sparsemax", "hard"), ("entmax15", "soft")])
def test_weights_sum_to_one_whatever_is_combined(
    heads: int, scope: str, score: str, normaliser: str, choice: str
) -> None:
    query = QUERY if score != "dot" or heads > 1 else SIZE
    torch.manual_seed(3)
    given = attention_of(
        over="x.words", through="sentences", size=4, heads=heads, scope=scope, score=score, normaliser=normaliser,
        choice=choice, window=1, temperature=0.7,
    )  # type: ignore[arg-type]  # fmt: skip
    look = build_attention(given, query=query, view=View(SIZE, "tokens", inside=View(SIZE, "sentences")))
    places, past = document(PARTS), None
    places.states.requires_grad_()
    prepared = look.prepare(places)
    for step in range(3):
        seen = look(torch.randn(3, 2, query), prepared, positions=step, past=past)
        past, weights = seen.past, seen.dense()
        assert torch.allclose(weights.sum(-1), torch.tensor([[1.0], [1.0], [0.0]]).expand(-1, 2), atol=1e-5)
        assert not weights.masked_select(~places.mask[:, None]).any()
        assert torch.isfinite(seen.context).all()
        assert torch.allclose(seen.larger.sum(-1), weights.sum(-1), atol=1e-5)
    seen.context.square().sum().backward()
    assert places.states.grad is not None
    assert all(torch.isfinite(one.grad).all() for one in [places.states, *look.parameters()] if one.grad is not None)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_document_alone_is_looked_at_as_in_a_batch(heads: int, scope: str) -> None:
    look, places = built(score="additive", heads=heads, scope=scope, window=2, above=ABOVE), document(PARTS)
    assert places.inside is not None
    sentences = Places(torch.randn(3, 3, ABOVE), places.inside.mask, places.inside.layout)
    places.inside = sentences
    query = torch.randn(3, 1, QUERY)
    together, alone = look.prepare(places), look.prepare(places.select(torch.tensor([0])))
    ours = look(query, together)
    theirs = look(query[:1], alone)
    torch.testing.assert_close(theirs.dense()[0], ours.dense()[0], atol=1e-6, rtol=0)
    chosen = look(query[[2, 0]], together.select(torch.tensor([2, 0])))
    torch.testing.assert_close(chosen.context[1], ours.context[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(chosen.larger[1], ours.larger[0], atol=1e-6, rtol=0)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", SCOPES)
def test_every_parameter_of_both_levels_learns(heads: int, scope: str) -> None:
    look, places = built(score="additive", heads=heads, scope=scope, window=2), document(PARTS)
    places.states.requires_grad_()
    assert places.inside is not None
    places.inside.states.requires_grad_()
    look(torch.randn(3, 3, QUERY), look.prepare(places), positions=1).context.square().sum().backward()
    still = [name for name, one in look.named_parameters() if one.grad is None or not float(one.grad.norm()) > 0]
    assert not still
    for states in (places.states, places.inside.states):
        assert states.grad is not None
        assert torch.isfinite(states.grad).all()
        assert states.grad[0].any()


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", SCOPES)
def test_the_caller_hands_in_weights_of_words(heads: int, scope: str) -> None:
    look, places = built(score="additive", heads=heads, scope=scope, window=1), document(PARTS)
    forced = torch.full((3, 1, 6), torch.nan)
    forced[0, 0] = torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
    seen = look(torch.randn(3, 1, QUERY), look.prepare(places), forced=forced)
    torch.testing.assert_close(seen.dense()[0, 0], forced[0, 0])
    torch.testing.assert_close(seen.larger[0, 0], torch.tensor([0.0, 1.0, 0.0]))
