"""The command line and scripts, called in this process: a new one would import torch each time."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seq2see.attention import choices, normalisers, scopes, scores
from seq2see.cells import cells
from seq2see.cli import main
from seq2see.decoders import decoders
from seq2see.encoders import encoders
from seq2see.evaluation import METRICS
from seq2see.modalities import inputs, outputs
from seq2see.registry import Registry


@dataclass
class Run:
    """What a call of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class Commands:
    """Calls the command line: `call("predict", folder, "text")`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Run:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        said = self._capsys.readouterr()
        return Run(int(left.value.code or 0), said.out, said.err)

    def script(self, path: Path) -> Run:
        """Run a script that succeeds."""
        runpy.run_path(str(path), run_name="__main__")
        said = self._capsys.readouterr()
        return Run(0, said.out, said.err)


def own_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder; modules imported from there, and what they register, are forgotten afterwards."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    registries: list[Registry[Any]] = [scores, scopes, normalisers, choices, cells, encoders, decoders]
    registries += [inputs, outputs, METRICS]
    tables = [table for registry in registries for table in (registry._kinds, registry.settings)]
    known, loaded = [dict(table) for table in tables], set(sys.modules)
    yield folder
    for table, before in zip(tables, known, strict=True):
        table.clear()
        table.update(before)
    for module in set(sys.modules) - loaded:
        if str(getattr(sys.modules[module], "__file__", None) or "").startswith(str(folder)):
            del sys.modules[module]
