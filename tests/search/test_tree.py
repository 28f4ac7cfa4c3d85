"""The tree of a beam search: against a beam written out by hand, and by its own rules."""

from __future__ import annotations

import math

import pytest

from seq2see.data.vocabulary import PAD, SOS
from seq2see.errors import UserError
from seq2see.search import SearchOptions, tree
from seq2see.search.hypotheses import Hypothesis, SearchTree
from tests.search.helpers import EOS, INPUTS, SYMBOLS, build, found, stepped


def path(nodes: SearchTree, number: int) -> tuple[int, ...]:
    return () if number < 0 else (*path(nodes, nodes.parents[number]), nodes.ids[number])


def tree_of(hypotheses: list[Hypothesis]) -> SearchTree:
    assert hypotheses[0].tree is not None
    return hypotheses[0].tree


def states(nodes: SearchTree) -> dict[tuple[int, ...], str]:
    return {path(nodes, number): state for number, state in enumerate(nodes.states)}


@pytest.mark.parametrize("beam", [2, 3])
def test_the_tree_is_that_of_a_beam_written_out_by_hand(beam: int) -> None:
    """With patience without limit and a maximum length of 3, no search ends early."""
    model = build(seed=2)
    options = {"beam": beam, "n_best": beam, "max_length": 3, "patience": math.inf, "length_penalty": 0.0}
    for row, hypotheses in zip(INPUTS, found(model, tree=True, **options), strict=True):
        live, expected = {(): 0.0}, {}
        for _ in range(len(set(map(len, states(tree_of(hypotheses)))))):
            totals = {
                (*ids, symbol): total + stepped(model, row, [*ids, symbol])[0][len(ids), symbol].item()
                for ids, total in live.items()
                for symbol in range(SYMBOLS)
                if symbol not in (PAD, SOS)
            }
            best = sorted(totals, key=lambda ids: -totals[ids])[: 2 * beam]
            going = [ids for ids in best if ids[-1] != EOS][:beam]
            ended = [ids for ids in best[:beam] if ids[-1] == EOS]
            expected |= {ids: (ids in going, ids in ended, totals[ids]) for ids in best}
            live = {ids: totals[ids] for ids in going}
        nodes = tree_of(hypotheses)
        told = states(nodes)
        assert set(told) == set(expected)
        for ids, (going_on, finished, _) in expected.items():
            assert (told[ids] in ("kept", "stopped"), told[ids] == "finished") == (going_on, finished)
        for number in range(len(nodes.ids)):
            ids = path(nodes, number)
            total = sum(nodes.log_probs[at] for at, other in enumerate(told) if ids[: len(other)] == other)
            assert total == pytest.approx(expected[ids][2], abs=1e-4)


def test_every_output_is_a_leaf_whose_log_probabilities_add_up() -> None:
    for hypotheses in found(build(seed=1), beam=4, n_best=4, tree=True):
        nodes = tree_of(hypotheses)
        numbers = {path(nodes, number): number for number in range(len(nodes.ids))}
        for hypothesis in hypotheses:
            ids = tuple(hypothesis.ids)
            assert nodes.states[numbers[ids]] == ("finished" if hypothesis.finished else "stopped")
            assert numbers[ids] not in nodes.parents
            along = [nodes.log_probs[numbers[ids[: end + 1]]] for end in range(len(ids))]
            assert sum(along) == pytest.approx(hypothesis.log_probability, abs=1e-5)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_tree_does_not_depend_on_the_batch(seed: int) -> None:
    """With seed 3 the inputs end at different steps, the first one earliest; with seed 4 all at the last."""
    model = build(seed=seed)
    together = found(model, beam=3, tree=True)
    depths = [max(map(len, states(tree_of(hypotheses)))) for hypotheses in together]
    assert (min(depths) == depths[0] < max(depths)) == (seed == 3)
    for number, row in enumerate(INPUTS):
        alone, shared = tree_of(found(model, [row], beam=3, tree=True)[0]), tree_of(together[number])
        assert (alone.ids, alone.parents, alone.states) == (shared.ids, shared.parents, shared.states)
        assert alone.log_probs == pytest.approx(shared.log_probs, abs=1e-4)


def test_a_forced_prefix_is_the_only_branch_of_its_steps() -> None:
    nodes = tree_of(found(build(), INPUTS[:1], beam=3, prefix=[5, 4], tree=True)[0])
    assert [path(nodes, number) for number in range(2)] == [(5,), (5, 4)]
    assert all(ids[:2] == (5, 4) for ids in states(nodes) if len(ids) > 1)


def test_a_large_tree_keeps_its_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tree_of(found(build(), INPUTS[:1], beam=3, tree=True)[0])
    monkeypatch.setattr(tree, "MAX_NODES", 10)
    cut = tree_of(found(build(), INPUTS[:1], beam=3, tree=True)[0])
    assert 0 < len(cut.ids) <= 10
    assert cut.ids == whole.ids[: len(cut.ids)]
    assert cut.left_out == len(whole.ids) - len(cut.ids) > 0


def test_steps_after_the_first_that_is_left_out_are_left_out_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hypotheses of two symbols, each with a single continuation that is not avoided: nodes without parents."""
    options = {"beam": 3, "max_length": 3, "patience": math.inf, "tree": True}
    free = states(tree_of(found(build(seed=4), INPUTS[:1], **options)[0]))
    kept = [ids for ids, state in free.items() if len(ids) == 2 and state == "kept"]
    avoided = [[*ids, symbol] for ids in kept for symbol in (1, *range(3, SYMBOLS - 1))]
    whole = tree_of(found(build(seed=4), INPUTS[:1], avoid_prefixes=avoided, **options)[0])
    assert [sum(len(ids) == depth for ids in states(whole)) for depth in (1, 2, 3)] == [6, 6, 3]
    monkeypatch.setattr(tree, "MAX_NODES", 10)
    cut = tree_of(found(build(seed=4), INPUTS[:1], avoid_prefixes=avoided, **options)[0])
    assert (cut.ids, cut.left_out) == (whole.ids[:6], 9)


def test_a_tree_is_made_on_request_alone() -> None:
    assert all(each.tree is None for row in found(build(), beam=3) for each in row)
    with pytest.raises(UserError, match="tree"):
        SearchOptions(tree=True)
