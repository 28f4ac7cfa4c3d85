"""Pyramids: each place stands for a power of two of frames, and padding has no say."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from seq2see.cells import GRU
from seq2see.data.batches import Frames
from seq2see.encoders import PyramidalEncoder
from seq2see.encoders.layers import join_pairs
from seq2see.encoders.pyramidal import PyramidalEncoderSettings

REAL = torch.ones(1, 7, dtype=torch.bool)


def encoder(**changes: object) -> PyramidalEncoder:
    settings = PyramidalEncoderSettings.model_validate({"size": 4, "layers": 2, "halvings": 2, **changes})
    return PyramidalEncoder(settings, width=3).eval()


def test_pairs_are_neighbours_side_by_side() -> None:
    states = torch.randn(2, 5, 3)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], dtype=torch.bool)
    joined, real = join_pairs(states, mask)
    assert joined.shape == (2, 3, 6)
    assert real.tolist() == [[True, True, True], [True, True, False]]
    assert torch.equal(joined[0, 1], torch.cat([states[0, 2], states[0, 3]]))
    assert torch.equal(joined[1, 1], torch.cat([states[1, 2], torch.zeros(3)]))
    assert not joined[1, 2].any()


@pytest.mark.parametrize(("layers", "halvings", "places"), [(1, 0, 7), (2, 1, 4), (2, 2, 2), (3, 2, 2), (3, 3, 1)])
def test_every_halving_halves(layers: int, halvings: int, places: int) -> None:
    made = encoder(layers=layers, halvings=halvings)(torch.randn(1, 7, 3), REAL)
    assert made.places.states.shape == (1, places, 8)
    assert made.places.mask.all()
    assert made.places.layout.kind == "frames"


def test_places_that_are_frames_are_called_so() -> None:
    assert "one place for each frame" in encoder(layers=1, halvings=0).equations()[0]
    assert "one place for 4 frames" in encoder(layers=2, halvings=2).equations()[0]


def test_the_equations_step_by_step() -> None:
    made = encoder(bidirectional=False)
    x = torch.randn(1, 7, 3)
    below = torch.cat([x, torch.zeros(1, 1, 3)], 1)
    for readers in made.layers.readers():
        (cell,) = readers
        assert isinstance(cell, GRU)
        state = (torch.zeros(1, 4),)
        states = []
        for j in range(below.shape[1] // 2):
            pair = torch.cat([below[:, 2 * j], below[:, 2 * j + 1]], -1)
            state = cell(cell.project("x", pair, bias=True), state)
            states.append(state[0])
        below = torch.stack(states, 1)
    found = made(x, REAL)
    torch.testing.assert_close(found.places.states, below)
    torch.testing.assert_close(found.summary, below[:, -1])


def test_convolutions_step_by_step() -> None:
    """conv, normalised over the row's frames and bands, relu, the maximum of 2 x 2; one level after the other."""
    made = encoder(layers=1, halvings=0, convolutions=[4, 8])
    assert made.convolutions is not None
    x = torch.randn(1, 7, 3)
    maps = x.transpose(1, 2)[:, None]
    for level in made.convolutions:
        weight, groups = level[0].weight, level[1]
        convolved = functional.conv2d(maps, weight, padding=1).unflatten(1, (groups.num_groups, -1))
        mean = convolved.mean((2, 3, 4), keepdim=True)
        deviation = (convolved.var((2, 3, 4), keepdim=True, unbiased=False) + groups.eps).sqrt()
        normal = ((convolved - mean) / deviation).flatten(1, 2)
        maps = functional.max_pool2d(normal.relu(), 2, ceil_mode=True)
    states, mask = made.convolutions(x, REAL)
    assert (states.shape, mask.shape, made.every) == ((1, 2, 8), (1, 2), 4)
    torch.testing.assert_close(states, maps.flatten(1, 2).transpose(1, 2))
    torch.testing.assert_close(made(x, REAL).places.states, made.layers(states, mask).states)
    assert "one place for 4 frames" in made.equations()[0]


@pytest.mark.parametrize("convolutions", [[], [4], [4, 8]])
def test_a_row_does_not_depend_on_its_batch(convolutions: list[int]) -> None:
    made = encoder(layers=3, halvings=2 - len(convolutions), convolutions=convolutions)
    frames = torch.randn(2, 11, 3)
    mask = torch.arange(11) < torch.tensor([[5], [11]])
    both, alone = made(frames, mask), made(frames[:1, :5], mask[:1, :5])
    assert both.places.mask.sum(1).tolist() == [2, 3]
    torch.testing.assert_close(both.places.states[0, :2], alone.places.states[0])
    torch.testing.assert_close(both.summary[0], alone.summary[0])
    assert not both.places.states[0, 2:].any()


@pytest.mark.parametrize("convolutions", [[], [4, 8]])
def test_a_place_is_called_by_its_first_frame(convolutions: list[int]) -> None:
    names = [[f"{i / 100:.2f} s" for i in range(7)]]
    found = encoder(halvings=2 - len(convolutions), convolutions=convolutions).read(
        Frames(torch.randn(1, 7, 3), REAL, names)
    )
    assert found.places.tokens == [["0.00 s", "0.04 s"]]


def test_gradients_reach_every_weight() -> None:
    made = encoder(layers=3, convolutions=[4])
    made(torch.randn(2, 9, 3), torch.ones(2, 9, dtype=torch.bool)).places.states.sum().backward()
    assert all(one.grad is not None and one.grad.any() for one in made.parameters())
