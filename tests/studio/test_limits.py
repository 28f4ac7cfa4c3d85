"""One list of limits: the command line and the docs have the same."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from seq2see.cli.parser import Parser
from seq2see.cli.serve import arguments
from seq2see.studio.limits import MEGABYTE, Limits

DOCS = Path(__file__).parents[2] / "docs" / "serving.md"


def parsed(*options: str) -> Limits:
    parser = Parser("serve", about="")
    arguments(parser)
    return Limits.from_options(parser.read(["runs/a", *options]))


def test_defaults_of_the_command_line() -> None:
    assert parsed() == Limits()
    assert {type(getattr(parsed(), entry.name)) for entry in fields(Limits)} == {int, float}


def test_options_change_limits() -> None:
    changed = replace(Limits(), body_bytes=int(0.5 * MEGABYTE), timeout=5.5, connections_per_address=3)
    assert parsed("--max-upload", "0.5", "--timeout", "5.5", "--max-connections-each", "3") == changed


def test_the_docs_list_every_limit() -> None:
    """To renew: python -c "from seq2see.studio.limits import Limits; print(Limits.table())"."""
    assert Limits.table() in DOCS.read_text("utf-8")
