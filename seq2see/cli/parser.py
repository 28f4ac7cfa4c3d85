"""argparse as this project uses it, and the arguments and options that several commands share."""

from __future__ import annotations

import argparse
import csv
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from seq2see.cli.terminal import program, typed
from seq2see.errors import UserError, nearest

# ---------------- argparse with this project's manners

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


# ---------------- Arguments and options that several commands share, said once


def add_model(parser: Parser, *, ensembles: bool = True) -> None:
    more = "; several joined by + are an ensemble" if ensembles else ""
    parser.add_argument("model", metavar="MODEL", help=f"a folder that train wrote{more}")
    add_plugin(parser)


def add_input(parser: Parser) -> None:
    """INPUT, which a language model has not: whether it must be there is known when the model is."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="?",
        help="the input; several in the recipe's order, a tab between them; none for a language model",
    )


def add_inputs(parser: Parser) -> None:
    """INPUT..., --file and --columns: see `reading.source`."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="inputs; a model of several takes them in the recipe's order, a tab between them; without INPUT and "
        "--file, the lines of standard input",
    )
    parser.add_argument(
        "--file", metavar="TABLE", type=Path, help="inputs from the columns of a table, or the lines of a .txt"
    )
    add_columns(parser)
    add_on_error(parser)


def add_on_error(parser: Parser) -> None:
    """--on-error, for commands that read tables with a model: see `models.reading`."""
    parser.add_argument(
        "--on-error",
        metavar="HOW",
        choices=("stop", "skip"),
        help="bad rows and files: stop, or skip them and say so; not given: as the recipe says",
    )


def add_data(parser: Parser) -> None:
    parser.add_argument(
        "--data",
        metavar="TABLE",
        required=True,
        help="a table with inputs and outputs, or the name of a data set (its dev rows)",
    )
    add_columns(parser)
    add_on_error(parser)


def add_training(parser: Parser, *, each: str = "") -> None:
    """--data, --dev, --columns, --set and what ends a run (`each`: said before, where there are several runs)."""
    parser.add_argument(
        "--data",
        metavar="TABLE",
        help="rows to learn from: a table, a folder with train.* and dev.*, a data set's name",
    )
    parser.add_argument("--dev", metavar="TABLE", help="rows to measure on; not given: some rows are set aside")
    add_columns(parser)
    add_changes(parser)
    parser.add_argument("--epochs", metavar="N", type=whole, help=f"{each}stop after N readings of the rows")
    parser.add_argument("--updates", metavar="N", type=whole, help=f"{each}stop after N updates")
    parser.add_argument("--minutes", metavar="M", type=number, help=f"{each}stop after M minutes")


def add_columns(parser: Parser) -> None:
    parser.add_argument(
        "--columns",
        metavar="A,B",
        type=column_names,
        help="columns of the table in the recipe's order, inputs first; one whose name holds a comma in quotes: "
        "'\"A, B\",C'",
    )


def add_changes(parser: Parser) -> None:
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change one key of the recipe (decoder.size=256); may be given several times",
    )
    add_plugin(parser)


def add_plugin(parser: Parser) -> None:
    """Wherever a recipe or a model is named: either may name a score, encoder or decoder of the user's own."""
    parser.add_argument(
        "--plugin",
        dest="plugins",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a module of yours, which registers scores, encoders or decoders; may be given several times",
    )


def add_beam(parser: Parser) -> None:
    parser.add_argument("--beam", metavar="K", type=whole, help="hypotheses the search keeps; 1: greedy")


def add_json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="JSON, one object per line")
