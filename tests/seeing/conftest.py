"""Looks to draw, and the fonts that some tests need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from seq2see.looks import Looks, Weights
from seq2see.seeing import labels

MakeLooks = Callable[..., Looks]


def some_weights(*shape: int, seed: int = 0) -> Weights:
    """Rows that sum to one."""
    drawn = np.random.default_rng(seed).random(shape, dtype=np.float32) ** 4
    return drawn / drawn.sum(axis=-1, keepdims=True)


@pytest.fixture
def make_looks() -> MakeLooks:
    def make(inputs: list[str], outputs: list[str], *, heads: int = 0, name: str = "source", **more: Any) -> Looks:
        shape = (heads, len(outputs), len(inputs)) if heads else (len(outputs), len(inputs))
        return Looks(maps={name: some_weights(*shape)}, inputs={name: inputs}, outputs=outputs, **more)

    return make


@pytest.fixture
def looks(make_looks: MakeLooks) -> Looks:
    return make_looks(["a", "man", "plays"], ["ein", "mann", "spielt", "<eos>"])


@pytest.fixture(autouse=True)
def _untold() -> Iterator[None]:
    """Warnings of missing fonts come once in the life of a program: begin each test with none told."""
    labels.installed().forget_reported()
    yield
    labels.installed().forget_reported()


@pytest.fixture
def devanagari() -> str:
    """A family that draws Devanagari."""
    family = labels.installed().families("हिन्दी")[0]
    if labels.installed().missing("हिन्दी"):
        pytest.skip("no Devanagari font is installed (Debian: fonts-noto-core)")
    return family
