"""Searches over words that only some inputs have: the same alone and in a batch, and what scoring says of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from seq2see.data.batches import Batch, Sequences, pad_lists
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.model import EncoderDecoder
from seq2see.search import Hypothesis, SearchOptions, score_targets, search
from tests.search.helpers import EOS, SYMBOLS, UNK, build, padded

ROWS = [[4, 1, 6, 1, 8], [9, 4], [], [1], [10, 1, 1, 1, 5, 6, 9], [5, 5, 5]]
COPIED = [[4, 9, 6, 10, 8], [4, 5], [], [9], [4, 9, 10, 11, 5, 6, 9], [5, 5, 5]]
WORDS = [["a", "b"], [], [], ["c"], ["d", "e", "f"], []]


def model(seed: int = 0) -> EncoderDecoder:
    """A model of which half the rows copy much."""
    made = build(seed=seed, copy_from="source")
    with torch.no_grad():
        made.head.w_g.bias.fill_(-1.0)  # type: ignore[union-attr, operator]
    return made


def inputs(chosen: list[int]) -> dict[str, Sequences]:
    column = padded([ROWS[row] for row in chosen])["source"]
    ids = pad_lists([COPIED[row] for row in chosen], eos=False).ids
    return {"source": replace(column, copyable=Copyable(ids, [WORDS[row] for row in chosen]))}


def found(models: list[EncoderDecoder], chosen: list[int], **options: Any) -> list[list[Hypothesis]]:
    return search([(one, inputs(chosen)) for one in models], chosen, SearchOptions(**{"max_length": 7, **options}))


WAYS = [{}, {"beam": 4, "n_best": 4}, {"sample": True, "n_best": 3, "seed": 5}]


@pytest.mark.parametrize("options", WAYS, ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("several", [False, True], ids=["model", "ensemble"])
def test_an_input_is_searched_alike_alone_and_in_a_batch(options: dict[str, Any], several: bool) -> None:
    models = [model(0), model(1)] if several else [model(0)]
    together = found(models, list(range(len(ROWS))), **options)
    written = set()
    for row, hypotheses in enumerate(together):
        (alone,) = found(models, [row], **options)
        assert [one.ids for one in hypotheses] == [one.ids for one in alone]
        for one, other in zip(hypotheses, alone, strict=True):
            assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)
            assert one.words == WORDS[row]
            limit = SYMBOLS + len(WORDS[row])
            assert max(one.ids) < limit
            assert [[i for i, _ in step] for step in one.runners_up] == [
                [i for i, _ in step] for step in other.runners_up
            ]
            assert all(len(step) == 5 and max(i for i, _ in step) < limit for step in one.runners_up)
            written |= {one.words[i - SYMBOLS] for i in one.ids if i >= SYMBOLS}
    assert written, "no word beyond the vocabulary was ever written: the test shows nothing"


def test_a_found_output_has_the_probability_that_scoring_gives_it() -> None:
    made = model()
    best = [hypotheses[0] for hypotheses in found([made], list(range(len(ROWS))))]
    targets = [one.ids[:-1] if one.ids[-1] == EOS else one.ids for one in best]
    batch = Batch(inputs(list(range(len(ROWS)))), pad_lists(targets, eos=True), list(range(len(ROWS))))
    for given, one in zip(score_targets(made, batch), best, strict=True):
        assert given.log_probs[: len(one.ids)] == pytest.approx(one.log_probs, abs=1e-4)


def test_a_prefix_may_hold_a_word_of_its_own_input_alone() -> None:
    made = model()
    one, other = found([made], [0, 3], prefix=[[SYMBOLS + 1, 4], [SYMBOLS]])
    assert (one[0].ids[:2], other[0].ids[:1]) == ([SYMBOLS + 1, 4], [SYMBOLS])
    with pytest.raises(
        UserError, match=f"prefix of input 1: token 0 is {SYMBOLS + 1}; allowed: ids below {SYMBOLS + 1}"
    ):
        found([made], [0, 3], prefix=[[SYMBOLS + 1], [SYMBOLS + 1]])


def test_a_further_word_is_read_as_unknown() -> None:
    made = model()
    prepared = made.ready(inputs([0]), 1)
    steps = [made.step(prepared, made.begin(prepared), torch.tensor([token])) for token in (UNK, SYMBOLS + 1)]
    assert steps[0].features.equal(steps[1].features)
