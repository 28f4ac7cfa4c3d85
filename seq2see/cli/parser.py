"""argparse with this project's manners: fast to start, options and inputs in any order, errors that help.

(Larger libraries for command lines were measured: they take longer to import than `--help` may take in all.)
"""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Sequence
from typing import Any, NoReturn

from seq2see.cli.program import program, typed
from seq2see.errors import UserError, nearest

Given = argparse.Namespace
"""What the user gave, by the names of the options."""


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Help texts in one column beside their options, no wider than reads well."""

    def __init__(self, prog: str):
        width = min(shutil.get_terminal_size().columns - 2, 110)
        super().__init__(prog, max_help_position=26, width=width)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        return super()._format_usage(usage, actions, groups, "Usage: ")

    def start_section(self, heading: str | None) -> None:
        names = {"positional arguments": "Arguments", "options": "Options"}
        super().start_section(names.get(heading or "", heading))


class Parser(argparse.ArgumentParser):
    """The parser of one command: what is wrong is a UserError, unknown options get the nearest known one."""

    def __init__(self, command: str, *, about: str, examples: Sequence[str] = ()):
        shown = "\n".join(f"  {typed(line)}" for line in examples)
        super().__init__(
            prog=f"{program()} {command}",
            description=about,
            epilog=f"Examples:\n{shown}" if examples else None,
            formatter_class=_Layout,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; {self.prog} --help says more")

    def read(self, arguments: Sequence[str]) -> Given:
        """Options may stand before, between and after the other arguments; `--` ends them."""
        given, rest = self.parse_known_intermixed_args(arguments)
        if rest:
            word = next((one for one in rest if one.startswith("-")), rest[0])
            known = [option for action in self._actions for option in action.option_strings]
            self.error(f"unknown {'option' if word.startswith('-') else 'argument'} '{word}'{nearest(word, known)}")
        return given


def whole(text: str) -> int:
    """A whole number, for `type=`."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got '{text}'") from None


def number(text: str) -> float:
    """A number, for `type=`."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got '{text}'") from None


def listed(text: str) -> list[str]:
    """'a,b' as a list, for `type=`."""
    return [part.strip() for part in text.split(",")]


def column_names(text: str) -> list[str]:
    """'a,b' as a list, for `type=`; a name that holds a comma is quoted as in a CSV file: '"a, b",c'."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise argparse.ArgumentTypeError(f"expected names with commas between them, got {text!r} ({error})") from None
    return [name.strip() for name in names]
