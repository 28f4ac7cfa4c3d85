"""What all commands use: output to the terminal, the argument parser, and the arguments that several commands share."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any, NoReturn

from seq2see.errors import UserError, nearest
from seq2see.files import SURROGATES, finite

# --- Output: results to stdout, messages and progress to stderr


def say(message: str) -> None:
    """Print a message to stderr."""
    print(message, file=sys.stderr, flush=True)


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Without the remarks of exporting libraries, which are about torch and not about the model."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def print_json(record: dict[str, Any]) -> None:
    """Print one JSON object on one line.

    Infinities and NaN become null. File names that are not valid text contain surrogates, which are escaped.
    """
    line = json.dumps(finite(record), ensure_ascii=False, allow_nan=False)
    print(SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", line), flush=True)


NAME = "seq2see"


def program() -> str:
    """`seq2see` if the shell finds it; otherwise the way this process was called (`.venv/bin/seq2see`)."""
    called = Path(sys.argv[0])
    if which(NAME) is not None:
        return NAME
    if called.name == "__main__.py" and called.parent.name == NAME:
        return f"{sys.executable} -m {NAME}"
    return str(called) if called.name == NAME else NAME


def as_typed(line: str) -> str:
    """A line that begins with `seq2see`, as it has to be typed here."""
    return f"{program()}{line.removeprefix(NAME)}"


# --- The parser of a command

Arguments = argparse.Namespace
"""The parsed arguments of a command."""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help texts in one column, at most 110 characters wide."""

    def __init__(self, prog: str):
        width = min(shutil.get_terminal_size().columns - 2, 110)
        super().__init__(prog, max_help_position=26, width=width)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        return super()._format_usage(usage, actions, groups, "Usage: ")

    def start_section(self, heading: str | None) -> None:
        names = {"positional arguments": "Arguments", "options": "Options"}
        super().start_section(names.get(heading or "", heading))


class Parser(argparse.ArgumentParser):
    """The parser of one command: errors are UserErrors, unknown options suggest the nearest known one."""

    def __init__(self, command: str, *, about: str, examples: Sequence[str] = ()):
        lines = "\n".join(f"  {as_typed(line)}" for line in examples)
        super().__init__(
            prog=f"{program()} {command}",
            description=about,
            epilog=f"Examples:\n{lines}" if examples else None,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")

    def read(self, arguments: Sequence[str]) -> Arguments:
        """Parse the arguments; options may stand anywhere, `--` ends them."""
        parsed, rest = self.parse_known_intermixed_args(arguments)
        if rest:
            word = next((argument for argument in rest if argument.startswith("-")), rest[0])
            known = [option for action in self._actions for option in action.option_strings]
            self.error(f"unknown {'option' if word.startswith('-') else 'argument'} '{word}'{nearest(word, known)}")
        return parsed


MOST_THREADS = 1024


def integer(text: str) -> int:
    """An integer, for `type=`."""
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


def threads(text: str) -> int:
    """A number of threads, for `type=`."""
    if not 1 <= integer(text) <= MOST_THREADS:
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_THREADS:,} threads, got '{text}'")
    return integer(text)


def comma_separated(text: str) -> list[str]:
    """'a,b' as a list, for `type=`."""
    return [part.strip() for part in text.split(",")]


def column_names(text: str) -> list[str]:
    """'a,b' as a list, for `type=`; names that contain commas are quoted as in CSV: '"a, b",c'."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise argparse.ArgumentTypeError(f"expected comma-separated names, got {text!r} ({error})") from None
    return [name.strip() for name in names]


# --- Arguments that several commands share


def add_model(parser: Parser, *, ensembles: bool = True) -> None:
    """MODEL, --plugin and --threads."""
    more = "; join several with + for an ensemble" if ensembles else ""
    parser.add_argument("model", metavar="MODEL", help=f"model folder written by train, or file written by pack{more}")
    add_plugin(parser)
    add_threads(parser)


def add_input(parser: Parser) -> None:
    """INPUT, optional because a language model has none."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="?",
        help="the input; separate several inputs with tabs, in the recipe's order; none for a language model",
    )


def add_inputs(parser: Parser) -> None:
    """INPUT..., --file and --columns, read by `inputs.read_inputs`."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        default=[],
        help="inputs to read (default: lines of standard input); for models with several inputs, all of a row one "
        "after the other, or separated by tabs, in the recipe's order",
    )
    parser.add_argument(
        "--file", metavar="TABLE", type=Path, help="read inputs from the columns of a table or the lines of a .txt file"
    )
    add_columns(parser)
    add_on_error(parser)


def add_on_error(parser: Parser) -> None:
    """--on-error, for commands that read tables, used by `inputs.load_model`."""
    parser.add_argument(
        "--on-error",
        metavar="HOW",
        choices=("stop", "skip"),
        help="what to do with bad rows and files: stop, or skip with a warning (default: the recipe's setting)",
    )


def add_data(parser: Parser) -> None:
    """--data, --columns and --on-error."""
    parser.add_argument(
        "--data",
        metavar="TABLE",
        required=True,
        help="table with inputs and outputs, or name of a data set (its dev rows)",
    )
    add_columns(parser)
    add_on_error(parser)


def add_training(parser: Parser, *, each: str = "", dev: bool = True) -> None:
    """--data, --dev, --columns, --set, --threads and limits of a run; each: prefix of help texts, for several runs;
    dev: false where dev rows always come from --data."""
    parser.add_argument(
        "--data",
        metavar="TABLE",
        help="training data: a table, a folder with train.* and dev.*, or the name of a data set",
    )
    if dev:
        parser.add_argument("--dev", metavar="TABLE", help="development data (default: rows held out from --data)")
    add_columns(parser)
    add_overrides(parser)
    parser.add_argument("--epochs", metavar="N", type=integer, help=f"{each}stop after N epochs")
    parser.add_argument("--updates", metavar="N", type=integer, help=f"{each}stop after N updates")
    parser.add_argument("--minutes", metavar="M", type=number, help=f"{each}stop after M minutes")
    add_threads(parser)


def add_folds(parser: Parser) -> None:
    """--by, --folds and --dev-from, of commands that leave groups out."""
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="column whose values (speakers, books, writers) are held out in turn, with one model for each",
    )
    parser.add_argument(
        "--folds",
        metavar="K",
        type=integer,
        help="number of folds, at most 100 (default: with --by one for each value, at most 10; otherwise 5)",
    )
    parser.add_argument(
        "--dev-from",
        metavar="WHAT",
        choices=("group", "rows"),
        help="with --by, the rows that select the best weights: those of another value, which is not trained on either "
        "(group), or some of the values trained on (rows) (default: group with 8 folds or more)",
    )


def check_above_zero(args: Arguments, *names: str) -> None:
    """Refuse options that are not above 0, or infinite."""
    for name in names:
        value = getattr(args, name)
        if value is not None and not 0 < value < float("inf"):
            raise UserError(f"--{name} must be above 0, got {value}")


def overrides_of(args: Arguments) -> list[str]:
    """--set of a command that trains; --threads is more than the recipe's own."""
    return [*args.changes, *([] if args.threads is None else [f"training.threads={args.threads}"])]


def add_columns(parser: Parser) -> None:
    """--columns."""
    parser.add_argument(
        "--columns",
        metavar="A,B",
        type=column_names,
        help="columns of the table in the recipe's order, inputs first; quote names that contain commas: '\"A, B\",C'",
    )


def add_overrides(parser: Parser) -> None:
    """--set and --plugin."""
    parser.add_argument(
        "--set",
        dest="changes",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="override a key of the recipe (decoder.size=256); may be repeated",
    )
    add_plugin(parser)


def add_plugin(parser: Parser) -> None:
    """--plugin, for recipes and models that use the user's own parts."""
    parser.add_argument(
        "--plugin",
        dest="plugins",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a Python module that registers your own parts; may be repeated",
    )


def add_threads(parser: Parser) -> None:
    """--threads, set by `app.run_command` before torch is imported."""
    parser.add_argument(
        "--threads",
        metavar="N",
        type=threads,
        help="CPU threads (default: OMP_NUM_THREADS, or one per core, at most 8)",
    )


def add_device(parser: Parser) -> None:
    """--device, of commands that run a model."""
    parser.add_argument(
        "--device", metavar="D", default="cpu", help="device: cpu, cuda, cuda:1, mps ... (default: cpu)"
    )


def add_beam(parser: Parser) -> None:
    """--beam."""
    parser.add_argument(
        "--beam", metavar="K", type=integer, help="beam size; 1 is greedy search (default: the recipe's setting)"
    )


def add_language_model(parser: Parser) -> None:
    """--language-model and its weights, read by `language_model_options`."""
    parser.add_argument(
        "--language-model",
        metavar="PATH",
        help="language model that helps to rank the outputs: a folder written by train, or a file in ARPA format "
        "(also .gz); none: no language model (default: the recipe's setting)",
    )
    parser.add_argument("--lm-weight", metavar="W", type=number, help="weight of the language model")
    parser.add_argument(
        "--lm-internal", metavar="U", type=number, help="weight of the internal language model, which is subtracted"
    )
    parser.add_argument(
        "--lm-use",
        metavar="HOW",
        choices=("fusion", "rescore"),
        help="when the language model is used: at every step (fusion), or to rank the outputs found (rescore)",
    )


def language_model_options(args: Arguments) -> dict[str, Any]:
    """The options of a search that `add_language_model` reads, as far as they are given."""
    options = {
        "language_model": args.language_model,
        "language_model_weight": args.lm_weight,
        "language_model_internal": args.lm_internal,
        "language_model_use": args.lm_use,
    }
    return {name: value for name, value in options.items() if value is not None}


def add_paper(parser: Parser) -> None:
    """--width and --font-size."""
    parser.add_argument(
        "--width",
        metavar="LENGTH",
        help="width of a picture for print: 84mm, 8.4cm, 3.3in or 240pt (default: its own size)",
    )
    parser.add_argument(
        "--font-size", metavar="POINTS", type=number, help="size of labels in points (default with --width: 8)"
    )


def add_json(parser: Parser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
