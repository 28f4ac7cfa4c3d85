"""`seq2see COMMAND ...`: the commands by name; only the one that is called is imported."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from seq2see import __version__
from seq2see.cli.parser import Given, Parser
from seq2see.cli.terminal import program
from seq2see.errors import Notice, UserError, nearest

# ---------------- From errors to exit codes

DEBUG = "SEQ2SEE_DEBUG"
DONE, FAILED, AT_FAULT, INTERRUPTED, TERMINATED = 0, 1, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM


def guarded(work: Callable[[], None], *, debug: bool = False) -> int:
    """Do the work and give its exit code: 2 for what the user can mend, 130 for Ctrl-C, 1 for anything else.

    SIGTERM raises SystemExit with 143, without a word."""
    debug = debug or os.environ.get(DEBUG, "") not in ("", "0")
    caught: BaseException
    try:
        with _terminable(), _warnings(debug=debug):
            work()
        sys.stdout.flush()
        return DONE
    except BrokenPipeError:
        # Whoever read our output has enough; Python's own last flush must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except UserError as error:
        caught, code, said = error, AT_FAULT, f"error: {error}"
    except KeyboardInterrupt as error:
        caught, code, said = error, INTERRUPTED, "stopped"
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        said = f"failed: {what}\nThis is a fault of seq2see; with {DEBUG}=1 it shows where it arose."
        caught, code = error, FAILED
    if debug:
        traceback.print_exception(caught)
    print(said, file=sys.stderr)
    return code


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM is raised like Ctrl-C, so that files are closed and locks released on the way out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


@contextmanager
def _warnings(*, debug: bool) -> Iterator[None]:
    """Our own notices are lines for the user, each once; warnings of libraries are for whoever looks for a fault."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        said: set[str] = set()

        def shown(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, Notice):
                if str(message) not in said:
                    print(message, file=sys.stderr, flush=True)
                said.add(str(message))
            else:
                usual(message, category, *place, **more)

        if not debug:
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", Notice)
        warnings.showwarning = shown
        yield


# ---------------- `--plugin my_module`


def bring(names: Sequence[str]) -> list[ModuleType]:
    """Import the modules of these names, from the current folder too, so that what they register can be asked for."""
    here = str(Path.cwd())
    if names and here not in sys.path:
        sys.path.append(here)  # last: a file of the user's must not stand in for a library that others import
    return [_brought(name) for name in names]


@contextmanager
def theirs(brought: Sequence[ModuleType]) -> Iterator[None]:
    """Whatever fails inside the code of a plug-in is told with the line of that code, and is no fault of seq2see."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = {frame.filename: frame.lineno for frame in traceback.extract_tb(error.__traceback__)}
        found = next((one for one in brought if one.__file__ in lines), None)
        if found is None:
            raise
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        place = f"{Path(str(found.__file__)).name}, line {lines[str(found.__file__)]}"
        raise UserError(f"--plugin {found.__name__}: failed: {what} ({place})") from error


def _brought(name: str) -> ModuleType:
    _check_name(name)
    try:
        return import_module(name)
    except Exception as error:  # whatever is wrong in the user's module is the user's to mend
        raise UserError(
            f"--plugin {name}: cannot be imported: {type(error).__name__}: {error}{_place(error)}"
        ) from error


def _check_name(name: str) -> None:
    module = name.removesuffix(".py").replace("/", ".").strip(".")
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        hint = f" (did you mean '{module}'?)" if all(part.isidentifier() for part in module.split(".")) else ""
        raise UserError(f"--plugin {name}: not the name of a module, as `import` takes it{hint}")
    first = name.split(".")[0]
    own = [path for path in (Path.cwd() / f"{first}.py", Path.cwd() / first / "__init__.py") if path.is_file()]
    spec = find_spec(first)
    if spec is None:
        raise UserError(
            f"--plugin {name}: no such module: there is no {first}.py in {Path.cwd()}, and none is installed"
        )
    if own and spec.origin is not None and not own[0].samefile(spec.origin):
        raise UserError(
            f"--plugin {name}: {own[0].name} is not what `import {first}` finds, which is {spec.origin}; "
            "give the file another name"
        )


def _place(error: Exception) -> str:
    """Where in the user's code it went wrong: the last line that is neither ours nor the import system's."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
        and Path(frame.filename) != Path(__file__)
        and "importlib" not in frame.filename
    ]
    mine = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())] or frames
    return f" ({Path(mine[-1].filename).name}, line {mine[-1].lineno})" if mine else ""


# ---------------- A command, or one kind of those that have several, called with its arguments

HELP_OPTIONS = ("--help", "-h")


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
    if kinds and not (arguments and arguments[0] in HELP_OPTIONS):
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
