"""CTC against the sum over all alignments, one by one."""

from __future__ import annotations

from itertools import groupby, product

import pytest
import torch
from torch import Tensor

from seq2see.decoders import CtcHead
from seq2see.decoders.ctc import as_sequence
from seq2see.errors import UserError
from seq2see.looks import Layout
from seq2see.memory import Places, View

SYMBOLS = 4


def read(alignment: tuple[int, ...]) -> list[int]:
    """What an alignment says: repetitions merged, then blanks dropped."""
    return [symbol for symbol, _ in groupby(alignment) if symbol]


def summed(log_probs: Tensor, target: list[int]) -> Tensor:
    """-log of the sum over every alignment that says the target."""
    fitting = [one for one in product(range(SYMBOLS), repeat=len(log_probs)) if read(one) == target]
    chances = [log_probs[torch.arange(len(log_probs)), torch.tensor(one)].sum() for one in fitting]
    return -torch.logsumexp(torch.stack(chances), 0)


TARGETS = torch.tensor([[1, 2, 0], [3, 3, 0], [2, 0, 0], [1, 1, 2], [0, 0, 0]])
LENGTHS = torch.tensor([5, 4, 3, 3, 2])


def example() -> tuple[CtcHead, Places, Tensor]:
    mask = torch.arange(5) < LENGTHS[:, None]
    places = Places(torch.randn(5, 5, 6, requires_grad=True), mask, Layout("frames"))
    return CtcHead(View(6, "frames"), SYMBOLS), places, TARGETS != 0


def test_the_loss_is_the_sum_over_all_alignments() -> None:
    head, places, mask = example()
    found = head.loss(places, TARGETS, mask=mask)
    log_probs = head.log_probs(places)[0]
    rows = [0, 1, 2, 4]
    expected = sum(
        (summed(log_probs[row, : LENGTHS[row]], TARGETS[row][mask[row]].tolist()) for row in rows), torch.zeros(())
    )
    torch.testing.assert_close(found.total, expected, rtol=1e-5, atol=1e-5)
    ours, theirs = (torch.autograd.grad(one, places.states, retain_graph=True)[0] for one in (found.total, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rows_without_places_enough_are_left_out_and_counted() -> None:
    head, places, mask = example()
    assert head.loss(places, TARGETS, mask=mask).left_out == 1  # 1 1 2 takes four places and has three
    fewer = Places(places.states, torch.zeros_like(places.mask), places.layout)
    none = head.loss(fewer, TARGETS, mask=mask)
    assert none.left_out == 5
    none.total.backward()
    assert none.total == 0
    assert all(one.grad is not None and torch.isfinite(one.grad).all() for one in head.parameters())


def test_columns_of_a_grid_are_the_means_of_their_rows() -> None:
    states = torch.randn(2, 6, 4)
    mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 0, 1, 0, 0]], dtype=torch.bool)
    line, real = as_sequence(Places(states, mask, Layout("grid", (2, 3))))
    torch.testing.assert_close(line[0, 1], (states[0, 1] + states[0, 4]) / 2)
    torch.testing.assert_close(line[1, 1], states[1, 1])
    assert real.tolist() == [[True, True, True], [True, True, False]]


@pytest.mark.parametrize("layout", ["set", "sentences", "vector"])
def test_places_in_no_line_are_refused(layout: str) -> None:
    with pytest.raises(UserError, match=r"loss\.ctc: places laid out as"):
        CtcHead(View(6, layout), SYMBOLS)  # type: ignore[arg-type]
