"""docs/seeing.md: its commands are understood as they stand, and its pictures are there, and light."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from seq2see.cli.app import parse_command
from seq2see.cli.figure import KINDS

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "seeing.md").read_text("utf-8")


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


MAKE = script()


@pytest.mark.parametrize("command", MAKE.commands(), ids=lambda command: command[command.index("--out") + 1])
def test_every_command_is_understood(command: list[str]) -> None:
    _, given = parse_command(f"seq2see.cli.{command[0]}", command[0], command[1:])
    assert given.out is not None


def test_every_kind_of_figure_is_on_the_page() -> None:
    assert {command[1] for command in MAKE.commands() if command[0] == "figure"} == set(KINDS)


def test_every_picture_is_there_and_light() -> None:
    shown = re.findall(r"!\[[^\]]+\]\((pictures/[^)]+)\)", PAGE)
    made = [command[command.index("--out") + 1] for command in MAKE.commands()]
    assert {f"pictures/{one}" for one in made if one.endswith(".png")} <= set(shown)
    for name in shown:
        assert (DOCS / name).stat().st_size <= MAKE.MOST, name


def test_names_are_put_in_their_places() -> None:
    given = {"runs/a": "/x/a", "data": "/d"}
    assert MAKE.placed("no attention=runs/a", given) == "no attention=/x/a"
    assert MAKE.placed("data/test.tsv", given) == "/d/test.tsv"
    assert MAKE.placed("runs/ab", given) == "runs/ab"
    assert MAKE.placed("encoder.hidden=[]", given) == "encoder.hidden=[]"
