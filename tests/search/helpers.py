"""Tiny random models, a mixed batch with an input of no symbols at all, and a slow search to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from seq2see.data.batches import Sequences
from seq2see.model import EncoderDecoder, Sizes
from seq2see.recipe import load_recipe
from seq2see.search import Hypothesis, SearchOptions, search

INPUTS = [[4, 5, 6, 7, 8], [9, 4], [], [7], [10, 11, 4, 4, 5, 6, 9], [5, 5, 5]]
SYMBOLS = 9
PAD, UNK, SOS, EOS = range(4)


def padded(rows: Sequence[Sequence[int]]) -> dict[str, Sequences]:
    """The rows as the input `source`."""
    width = max([1, *map(len, rows)])
    ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
    mask = torch.tensor([[place < len(row) for place in range(width)] for row in rows])
    return {"source": Sequences(ids, mask)}


def build(
    *,
    cell: str = "gru",
    score: str = "additive",
    bidirectional: bool = True,
    symbols: int = SYMBOLS,
    seed: int = 0,
    sharpness: float = 4.0,
    ctc: float = 0.0,
    size: int = 6,
    **decoder: Any,
) -> EncoderDecoder:
    """A model whose weights are `sharpness` times as large as at the start of training, so that it has opinions."""
    torch.manual_seed(seed)
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "encoder": {"cell": cell, "size": size, "bidirectional": bidirectional, "embedding": {"size": 5}},
            "attention": "none" if score == "none" else {"score": score},
            "decoder": {"cell": cell, "size": size * (1 + bidirectional), "embedding": {"size": 5}, **decoder},
            "loss": {"ctc": ctc},
        }
    )
    model = EncoderDecoder(recipe, Sizes({"source": 12}, symbols))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(sharpness)
    return model.eval()


def labelled(*, labels: int = 4, seed: int = 1) -> EncoderDecoder:
    torch.manual_seed(seed)
    recipe = load_recipe(
        {
            "inputs": {"source": {}},
            "output": {"kind": "label"},
            "encoder": {"size": 6, "embedding": {"size": 5}},
            "decoder": {"kind": "label", "size": 12},
        }
    )
    return EncoderDecoder(recipe, Sizes({"source": 12}, labels)).eval()


def found(
    model: EncoderDecoder,
    rows: Sequence[Sequence[int]] = INPUTS,
    *,
    numbers: Sequence[int] | None = None,
    **options: Any,
) -> list[list[Hypothesis]]:
    """What a search of the rows gives; outputs are kept short."""
    numbers = range(len(rows)) if numbers is None else numbers
    return search([(model, padded(rows))], list(numbers), SearchOptions(**{"max_length": 7, **options}))


def ids_of(results: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[hypothesis.ids for hypothesis in row] for row in results]


@torch.no_grad()
def stepped(model: EncoderDecoder, row: Sequence[int], ids: Sequence[int]) -> tuple[Tensor, dict[str, Tensor]]:
    """Reading `ids` one by one, alone in its batch: log P of every symbol (steps, symbols), looks (steps, places)."""
    ready = model.ready(padded([row]), 1)
    state = model.begin(ready)
    log_probs, looks = [], []
    for token in [SOS, *ids[:-1]]:
        step = model.step(ready, state, torch.tensor([token]))
        state = step.state
        log_probs.append(model.log_probs(step, ready)[0])
        looks.append({name: look.dense()[0] for name, look in step.looks.items()})
    return torch.stack(log_probs), {name: torch.stack([look[name] for look in looks]) for name in looks[0]}


def every_output(symbols: int, max_length: int) -> Iterator[list[int]]:
    """All finished outputs of at most so many tokens."""
    said = [symbol for symbol in range(symbols) if symbol not in (PAD, SOS, EOS)]
    for length in range(max_length):
        for body in itertools.product(said, repeat=length):
            yield [*body, EOS]
