"""`seq2see COMMAND ...`: the commands by name; only the one that is called is imported."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence

from seq2see import __version__
from seq2see.cli.calling import called
from seq2see.cli.guard import guarded
from seq2see.cli.program import program
from seq2see.errors import UserError, nearest

COMMANDS = {
    "tasks": "the recipes that ship, one line each",
    "show": "the five answers about a recipe or a model, its parameters counted by part",
    "train": "train a recipe on a table",
    "predict": "what a model says of inputs",
    "evaluate": "metrics of a model on a table, trivial models beside it",
    "score": "log-probability and perplexity of given outputs",
    "look": "a picture of where a model looks",
    "explain": "one decoding step worked out with real numbers",
    "compare": "variants of a recipe under the same updates and seeds: which is best, and is that real",
    "faithful": "whether attention tells the truth: its agreement with occlusion and gradients",
    "encode": "inputs as vectors, and which are nearest to each other",
    "sample": "small data to try a recipe on, written as tables",
    "serve": "models behind a page and an HTTP API",
    "figure": "length curves, maps of vectors, learning curves and the other pictures of models",
    "render": "pictures of lines of text from a text file and fonts",
    "demo": "train for two minutes, and see what it learned",
}

HELP = """\
seq2see: encoder-decoder models with attention that show where they look.

Usage: {program} COMMAND ...

Commands:
{commands}

RECIPE is a name that `{program} tasks` lists or a YAML file, MODEL a folder that `{program} train` wrote.
`{program} COMMAND --help` says more; --version the version; --debug (or SEQ2SEE_DEBUG=1) where an error arose."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and leave with its exit code: 0 done, 2 the input is at fault, 130 and 143 ended by SIGINT and
    SIGTERM, 1 anything else."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = given[:1] == ["--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal cannot show is spelled out, and ends no run
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(guarded(lambda: run(given[1:] if debug else given), debug=debug))


def run(arguments: Sequence[str]) -> None:
    """The command the first argument names, with the rest."""
    name = arguments[0] if arguments else "--help"
    if name in ("--help", "-h", "help"):
        commands = "\n".join(f"  {command:<10}{about}" for command, about in COMMANDS.items())
        print(HELP.format(commands=commands, program=program()))
    elif name == "--version":
        print(f"seq2see {__version__}")
    elif name in COMMANDS:
        called(f"seq2see.cli.{name}", name, arguments[1:])
    else:
        what = "option" if name.startswith("-") else "command"
        raise UserError(f"unknown {what} '{name}'{nearest(name, COMMANDS)}; the commands: {', '.join(COMMANDS)}")
