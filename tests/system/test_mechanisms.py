"""Tasks that only the right mechanism solves: long copies need attention, and one place among many has to be found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

from seq2see.data.batches import Batch, Labels, Sequences
from seq2see.data.vocabulary import EOS, SOS
from seq2see.decoders import Conditions, LabelDecoder, Ready, SoftmaxHead, Step
from seq2see.decoders.label import LabelDecoderSettings
from seq2see.memory import Memory, Places, View
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from tests.objectives import objective_of
from tests.settings import attention_of

DIRECTIONS = pytest.mark.parametrize(
    "reverse", [pytest.param(False, id="copy"), pytest.param(True, id="reverse", marks=pytest.mark.slow)]
)
FIRST, LETTERS, LONG = 4, 8, 20
UPDATES, GROWING = 500, 0.6


@pytest.fixture(autouse=True)
def _shapes_unchecked() -> Iterator[None]:
    """They have been checked elsewhere, and a thousand updates would take thrice as long."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def random_ids(below: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(0, below, shape, generator=generator)


def update(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
    optimizer.step()


# ---------------------------------------------------------------- copy and reverse


def letters(rows: int, length: int, generator: torch.Generator, *, reverse: bool) -> Batch:
    """Random letters, to be written as they stand or from the end."""
    ids = FIRST + random_ids(LETTERS, (rows, length), generator)
    wanted = torch.cat([ids.flip(1) if reverse else ids, torch.full((rows, 1), EOS)], dim=1)
    source, target = (Sequences(value, torch.ones_like(value, dtype=torch.bool)) for value in (ids, wanted))
    return Batch({"source": source}, target, list(range(rows)))


def lengths(generator: torch.Generator) -> list[int]:
    """Short ones first, of every length in the end."""
    growing = int(GROWING * UPDATES)
    most = [5 + LONG * number // growing if number < growing else LONG for number in range(UPDATES)]
    return [3 + int(random_ids(min(value, LONG) - 2, (1,), generator)) for value in most]


def writer(attention: Any, *, reverse: bool) -> EncoderDecoder:
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"size": 32, "embedding": {"size": 16}},
            "attention": attention,
            "decoder": {"size": 64, "embedding": {"size": 16}},
        }
    )
    model = EncoderDecoder(recipe, Sizes({"source": FIRST + LETTERS}, FIRST + LETTERS)).train()
    objective, generator = objective_of(recipe), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for number, length in enumerate(lengths(generator)):
        optimizer.param_groups[0]["lr"] = 0.01 if number < 0.7 * UPDATES else 0.002
        update(optimizer, objective(model, letters(32, length, generator, reverse=reverse)).mean)
    return model.eval()


@torch.no_grad()
def share_of_letters(model: EncoderDecoder, *, reverse: bool) -> float:
    """Written by the model alone, each letter after its own last one."""
    batch = letters(100, LONG, torch.Generator().manual_seed(2), reverse=reverse)
    assert isinstance(batch.target, Sequences)
    ready = model.ready(batch.inputs, len(batch))
    state, token, right = model.begin(ready), torch.full((len(batch),), SOS), 0
    for t in range(LONG):
        step = model.step(ready, state, token)
        state, token = step.state, model.log_probs(step, ready).argmax(-1)
        right += int((token == batch.target.ids[:, t]).sum())
    return right / (len(batch) * LONG)


@DIRECTIONS
def test_with_attention_twenty_letters_are_copied(reverse: bool) -> None:
    model = writer({"score": "additive", "size": 32}, reverse=reverse)
    assert share_of_letters(model, reverse=reverse) >= 0.95


@DIRECTIONS
def test_without_attention_twenty_letters_do_not_fit_into_one_vector(reverse: bool) -> None:
    assert share_of_letters(writer("none", reverse=reverse), reverse=reverse) <= 0.5


# ---------------------------------------------------------------- the one place that matters

CLASSES, PLACES, SIZE = 40, 12, 32
"""Many classes: whoever finds the mark with all answers but one knows that one too, and need not find it."""


class Finder(nn.Module):
    """Symbols are places as they are, without an encoder that could carry what one holds to another."""

    ctc = None

    def __init__(self, **attention: Any):
        super().__init__()
        self.answer, self.mark = nn.Embedding(CLASSES, SIZE), nn.Embedding(2, SIZE)
        settings = attention_of(**{"size": SIZE, **attention})
        self.decoder = LabelDecoder(LabelDecoderSettings(size=SIZE), settings, Conditions(looks={"source": View(SIZE)}))
        self.head = SoftmaxHead(self.decoder.features_size, CLASSES)

    def look(self, ids: Tensor, mask: Tensor) -> tuple[Step, Ready]:
        states = self.answer(ids % CLASSES) + self.mark(ids // CLASSES)
        ready = self.decoder.prepare(Memory({"source": Places(states, mask)}))
        return self.decoder.step(ready, self.decoder.begin(ready)), ready


def marked(rows: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """ids, mask, the answer, and the one place whose symbol is marked and gives it; the others hold any answer."""
    mask = torch.arange(PLACES) < 4 + random_ids(PLACES - 3, (rows, 1), generator)
    where = (torch.rand(rows, generator=generator) * mask.sum(1)).long()
    ids, answer = random_ids(CLASSES, (rows, PLACES), generator), random_ids(CLASSES, (rows,), generator)
    ids[torch.arange(rows), where] = CLASSES + answer
    return ids * mask, mask, answer, where


@pytest.mark.parametrize("estimator", ["score-function", "gumbel"])
def test_a_hard_look_finds_the_one_place_that_matters(estimator: str) -> None:
    finder = Finder(choice="hard", estimator=estimator).train()
    recipe = load_recipe({"inputs": {"source": {}}, "output": {"kind": "label"}})
    objective, generator = objective_of(recipe), torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(finder.parameters(), 0.01)
    for _ in range(800):
        ids, mask, answer, _ = marked(64, generator)
        step, ready = finder.look(ids, mask)
        batch = Batch({}, Labels(answer), list(range(64)))
        update(optimizer, objective.loss(cast("EncoderDecoder", finder), step, ready, batch).mean)
    ids, mask, answer, where = marked(1000, torch.Generator().manual_seed(2))
    with torch.no_grad():
        step, ready = finder.eval().look(ids, mask)
        right = finder.head.log_probs(step, ready).argmax(-1) == answer
    place = step.looks["source"].place
    assert place is not None
    assert float((place == where).float().mean()) >= 0.95
    assert float(right.float().mean()) >= 0.95
