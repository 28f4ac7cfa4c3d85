"""Sets have no order: other orders of their elements, inside the encoder, are not felt anywhere behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2see.attention import scores
from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.encoders import Encoded
from seq2see.errors import UserError
from seq2see.memory import Copyable
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import Recipe, load_recipe

SYMBOLS, OUTPUTS, PLACES = 15, 9, 7
LENGTHS = [7, 4, 1, 0, 5]
ENCODERS: dict[str, dict[str, Any]] = {
    "sum": {"kind": "deep-sets", "size": 8, "pooling": "sum"},
    "mean": {"kind": "deep-sets", "size": 8, "pooling": "mean"},
    "max": {"kind": "deep-sets", "size": 8, "pooling": "max"},
    "transformer": {"kind": "transformer", "size": 8, "heads": 2, "layers": 2, "feedforward": 12},
}
RECURRENT = {"kind": "recurrent", "size": 4}
ALLOWED = [score for score in scores.settings if score != "location"] + ["none"]
"""Coverage as far as it sees through a place that place alone."""


def recipe_of(encoder: dict[str, Any], *, kind: str = "set", **rooms: Any) -> Recipe:
    raw: dict[str, Any] = {
        "inputs": {"items": {"kind": kind, "tokens": "symbol"}},
        "output": {"tokens": "symbol"},
        "encoder": {**encoder, "embedding": {"size": 3}},
        "decoder": {"size": 8, "embedding": {"size": 3}, "start": "items"},
    }
    return load_recipe({**raw, **rooms})


def model_of(recipe: Recipe) -> EncoderDecoder:
    """Weights that are far from zero, so that an order would show."""
    torch.manual_seed(5)
    made = EncoderDecoder(recipe, Sizes({"items": SYMBOLS}, OUTPUTS)).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.4)
    return made


def batch_of(*, copyable: bool = False, label: bool = False) -> Batch:
    """Sets of very different sizes with elements that are there twice, an empty one among them."""
    torch.manual_seed(7)
    mask = torch.arange(PLACES) < torch.tensor(LENGTHS)[:, None]
    ids = torch.randint(4, SYMBOLS, mask.shape) * mask
    ids[0, 3] = ids[0, 1]
    written = Copyable(torch.randint(4, OUTPUTS + 3, mask.shape) * mask) if copyable else None
    rows = list(range(len(LENGTHS)))
    target = torch.randint(4, OUTPUTS, (len(rows), 4))
    whole = torch.ones_like(target, dtype=torch.bool)
    wanted = Labels(target[:, 0]) if label else Sequences(target, whole)
    return Batch({"items": Sequences(ids, mask, copyable=written)}, wanted, rows)


def orders(*, behind: bool) -> Tensor:
    """For each row another order of its places, with padding anywhere, or behind the elements as ever."""
    torch.manual_seed(9)
    parts = [(length, PLACES - length) if behind else (PLACES, 0) for length in LENGTHS]
    return torch.stack([torch.cat([torch.randperm(real), real + torch.arange(rest)]) for real, rest in parts])


def reordered(batch: Batch, order: Tensor) -> Batch:
    """The same sets, their tensors in another order."""
    column = batch.inputs["items"]
    copyable = column.copyable
    if copyable is not None:
        copyable = replace(copyable, ids=copyable.ids.gather(1, order))
    other = Sequences(column.ids.gather(1, order), column.mask.gather(1, order), copyable=copyable)
    return Batch({"items": other}, batch.target, batch.rows)


@torch.no_grad()
def log_probs(model: EncoderDecoder, batch: Batch) -> Float[Tensor, "batch *steps symbols"]:
    step, ready = model.forward_batch(batch)
    return model.log_probs(step, ready)


def felt(recipe: Recipe, batch: Batch, *, behind: bool = False) -> float:
    """How far another order moves P of any symbol at any step, as its logarithm where there is one."""
    model = model_of(recipe)
    before, after = log_probs(model, batch), log_probs(model, reordered(batch, orders(behind=behind)))
    possible = torch.isfinite(before)
    assert torch.equal(possible, torch.isfinite(after))
    return float((before - after)[possible].abs().max())


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_places_move_with_their_elements_and_the_summary_stays(name: str) -> None:
    encoder, batch = model_of(recipe_of(ENCODERS[name])).encoder("items"), batch_of()
    order = orders(behind=False)
    before: Encoded = encoder.read(batch.inputs["items"])
    after: Encoded = encoder.read(reordered(batch, order).inputs["items"])
    assert before.places.layout.kind == after.places.layout.kind == "set"
    torch.testing.assert_close(after.summary, before.summary, atol=1e-5, rtol=0)
    moved = before.places.states.gather(1, order[..., None].expand_as(before.places.states))
    real = after.places.mask
    torch.testing.assert_close(after.places.states[real], moved[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("score", ALLOWED)
@pytest.mark.parametrize("name", ENCODERS)
def test_no_order_is_felt_in_the_output(name: str, score: str) -> None:
    attention = {"score": score} | ({"kernel": 1} if score == "coverage" else {})
    assert felt(recipe_of(ENCODERS[name], attention=attention), batch_of()) < 1e-5


FURTHER: dict[str, dict[str, Any]] = {
    "heads": {"attention": {"heads": 2, "score": "scaled-dot"}},
    "sparse": {"attention": {"normaliser": "sparsemax"}},
    "hard": {"attention": {"choice": "hard"}},
    "current": {"attention": {"query": "current"}},
    "copying": {"decoder": {"size": 8, "embedding": {"size": 3}, "start": "items", "copy_from": "items"}},
    "transformer": {"decoder": {"kind": "transformer", "size": 8, "heads": 2, "feedforward": 12, "start": "items"}},
    "label": {"output": {"kind": "label"}, "decoder": {"size": 8, "start": "items"}},
}


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("further", FURTHER)
def test_nor_with_any_other_way_to_look_or_write(name: str, further: str) -> None:
    batch = batch_of(copyable=further == "copying", label=further == "label")
    assert felt(recipe_of(ENCODERS[name], **FURTHER[further]), batch) < 1e-5


def test_what_knows_an_order_feels_it() -> None:
    """The control: the same check of encoders that go by order."""
    positions = {**ENCODERS["transformer"], "positions": "sinusoidal"}
    for encoder in (RECURRENT, positions):
        assert felt(recipe_of(encoder, kind="text"), batch_of(), behind=True) > 1e-2


@pytest.mark.parametrize("score", ["location", "coverage"])
def test_scores_that_go_by_order_feel_it_and_are_refused(score: str) -> None:
    attention = {"score": score}
    with pytest.raises(UserError, match=f"attention.score: {score} depends on .*'items'"):
        recipe_of(ENCODERS["sum"], attention=attention)
    forced = recipe_of(ENCODERS["sum"])
    forced = forced.model_copy(update={"attention": forced.attention.model_copy(update=attention)})
    with pytest.raises(UserError, match="a set has no order"):
        model_of(forced)


@pytest.mark.parametrize("score", ["location", "coverage"])
def test_the_check_would_find_such_a_score(score: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built in spite of the refusal, each of them moves the output."""
    forced = recipe_of(ENCODERS["sum"])
    attention = forced.attention.model_copy(update={"score": score})
    monkeypatch.setattr("seq2see.encoders.deep_sets.DeepSetsEncoder.layout", "tokens")
    assert felt(forced.model_copy(update={"attention": attention}), batch_of()) > 1e-4
