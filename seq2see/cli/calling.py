"""A command, or one kind of those that have several, called with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from seq2see.cli.parser import Given, Parser
from seq2see.cli.plugins import bring, theirs
from seq2see.cli.program import program
from seq2see.errors import UserError, nearest

HELP = ("--help", "-h")


def called(module: str, name: str, arguments: Sequence[str]) -> None:
    """Import a command's module and run it."""
    command, given = understood(module, name, arguments)
    with theirs(bring(getattr(given, "plugins", []))):
        command.run(given)


def understood(module: str, name: str, arguments: Sequence[str]) -> tuple[Any, Given]:
    """(the command's module, what it was given). One with KINDS is a family: its first argument says which is meant,
    and that one's module lies in a package of the family's name (`figure.py`, `figures/lengths.py`)."""
    command = import_module(module)
    kinds: dict[str, str] = getattr(command, "KINDS", {})
    if kinds and not (arguments and arguments[0] in HELP):
        kind = _checked(kinds, name, arguments)
        return understood(f"{module}s.{kind.replace('-', '_')}", f"{name} {kind}", arguments[1:])
    parser = Parser(name, about=str(command.__doc__).split(": ", 1)[1], examples=command.EXAMPLES)
    command.arguments(parser)
    return command, parser.read(arguments)


def _checked(kinds: dict[str, str], name: str, arguments: Sequence[str]) -> str:
    allowed = ", ".join(kinds)
    if not arguments:
        raise UserError(f"which {name}? allowed: {allowed}; {program()} {name} --help says more")
    if arguments[0] not in kinds:
        raise UserError(f"unknown {name} '{arguments[0]}'{nearest(arguments[0], kinds)}; allowed: {allowed}")
    return arguments[0]
