"""Small untrained models of several kinds, and the command line called in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.cli import main
from tests.hostile.models import KINDS, make_model, write_rows


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def models(table: Path) -> dict[str, Path]:
    """The folder of a model of each kind."""
    return {kind: make_model(kind, table) for kind in KINDS}


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Call the command line in this process: exit code, stdout, stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return run
