"""Shared by all tests: checked shapes, one thread, the same seed, and the data sets where they are present."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import shapes

# Packages whose signatures carry shapes; the hook has to be there before any of them is imported.
# Not the whole package: beartype checks one method at a time and cannot know what `typing.Self` is there.
SHAPED_PACKAGES = [
    "seq2see.attention",
    "seq2see.cells",
    "seq2see.data.batches",
    "seq2see.decoders",
    "seq2see.embeddings",
    "seq2see.encoders",
    "seq2see.memory",
    "seq2see.model",
    "seq2see.deferred_gradients",
    "seq2see.search",
]
shapes.install(SHAPED_PACKAGES)

from tests.commands import Commands, own_folder  # noqa: E402 - the hook comes first

# Workers share the machine's cores, and sums over several threads do not always round alike.
torch.set_num_threads(1)

# A shell's background job ignores Ctrl-C, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _same_seed() -> None:
    """Every test starts from the same random state and checks shapes anew, whichever tests ran before it."""
    shapes.begin()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what a library draws from the old generator has to repeat too
    torch.manual_seed(0)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Commands:
    """Call the command line in this process."""
    return Commands(capsys)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of one's own; what a plug-in registers is forgotten with it."""
    yield from own_folder(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of data sets: `SEQ2SEE_DATA`, or `shared/data` beside the project; without, the test is skipped."""
    named = os.environ.get("SEQ2SEE_DATA")
    folder = Path(named) if named else PROJECT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data sets: {folder} is not a folder (SEQ2SEE_DATA names another one)")
    return folder


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    """What several tests share is made before the first of them begins, and checked as if it were one."""
    if fixturedef.scope != "function":
        shapes.begin()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes lend a test no name: gzip writes the time of day into them, and workers have to agree on every name."""
    return argname if isinstance(val, bytes) else None
