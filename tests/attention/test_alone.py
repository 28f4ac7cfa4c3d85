"""A row looks alike alone and in a batch that is longer, or wider: however its places lie, step after step."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seq2see.attention import Look, build_attention, scores
from seq2see.looks import Layout, LayoutKind
from seq2see.memory import Places, View
from tests.settings import attention_of

SIZE, STEPS, ROWS, COLUMNS = 6, 3, 3, 5
WIDTHS = [5, 2, 1]
"""Real columns of each picture, or with one row the lengths of sequences."""


def batch(layout: LayoutKind) -> Places:
    rows = ROWS if layout == "grid" else 1
    real = torch.tensor([[j < width for j in range(COLUMNS)] for width in WIDTHS])
    mask = real[:, None].expand(-1, rows, -1).flatten(1)
    return Places(torch.randn(*mask.shape, SIZE), mask, group_by_parent(layout, COLUMNS))


def group_by_parent(layout: LayoutKind, columns: int) -> Layout:
    return Layout("grid", (ROWS, columns)) if layout == "grid" else Layout(layout)


def cut(places: Places, row: int) -> Places:
    """That row without its padding."""
    mask = places.mask[row]
    return Places(places.states[row, mask][None], mask[mask][None], group_by_parent(places.layout.kind, WIDTHS[row]))


def looks(attention: torch.nn.Module, places: Places, queries: Tensor) -> list[Look]:
    """One look after the other, each knowing the ones before where the score remembers them."""
    prepared, past, found = attention.prepare(places), None, list[Look]()  # type: ignore[operator]
    for step, query in enumerate(queries.unbind(1)):
        found.append(attention(query[:, None], prepared, positions=step, past=past))
        past = found[-1].past
    return found


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("scope", ["global", "local-monotonic", "local-predicted"])
@pytest.mark.parametrize("layout", ["tokens", "grid"])
@pytest.mark.parametrize("score", scores.settings)
def test_a_row_looks_alike_alone_and_in_a_batch(score: str, layout: LayoutKind, scope: str, heads: int) -> None:
    window = {} if scope == "global" else {"window": 1}
    settings = attention_of(score=score, scope=scope, heads=heads, size=4, **window)
    attention = build_attention(settings, query=SIZE, view=View(SIZE, layout))
    for parameter in attention.parameters():
        torch.nn.init.normal_(parameter)
    places, queries = batch(layout), torch.randn(len(WIDTHS), STEPS, SIZE)
    together = looks(attention, places, queries)
    for row in range(len(WIDTHS)):
        for one, many in zip(looks(attention, cut(places, row), queries[row : row + 1]), together, strict=True):
            torch.testing.assert_close(one.context[0], many.context[row], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(one.dense()[0], many.dense()[row][:, places.mask[row]], atol=1e-5, rtol=1e-5)
