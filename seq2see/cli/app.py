"""`seq2see COMMAND ...`: finds the command, imports only that one, runs it and returns its exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from seq2see import __version__
from seq2see.cli.parser import Arguments, Parser, program
from seq2see.errors import Notice, PeerLost, RankError, UserError, nearest, processes, speaks
from seq2see.threads import configure

DEBUG = "SEQ2SEE_DEBUG"
DONE, FAILED, AT_FAULT, INTERRUPTED, TERMINATED = 0, 1, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM


def exit_code(work: Callable[[], None], *, debug: bool = False) -> int:
    """Run `work` and return its exit code: 0 done, 2 error in the user's input, 130 Ctrl-C, 1 anything else.

    SIGTERM raises SystemExit(143) without a message.
    """
    debug = debug or os.environ.get(DEBUG, "") not in ("", "0")
    caught_error: BaseException
    try:
        with _terminate_cleanly(), print_warnings(debug=debug):
            work()
        sys.stdout.flush()
        return DONE
    except BrokenPipeError:
        # The reader closed the pipe; Python's final flush must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except UserError as error:
        caught_error, code, message = error, AT_FAULT, f"error: {error}"
    except KeyboardInterrupt as error:
        caught_error, code, message = error, INTERRUPTED, "stopped"
    except PeerLost as error:
        caught_error, code, message = error, FAILED, f"failed: {error}"
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        message = f"failed: {what}\nThis is a bug in seq2see; set {DEBUG}=1 to see the traceback."
        caught_error, code = error, FAILED
    if debug:
        traceback.print_exception(caught_error)
    print(message, file=sys.stderr)
    return code


@contextmanager
def _terminate_cleanly() -> Iterator[None]:
    """Raise SystemExit on SIGTERM, so that files are closed and locks released."""
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
def print_warnings(*, debug: bool) -> Iterator[None]:
    """Print our own notices to stderr, each once; hide the warnings of libraries unless debugging."""
    with warnings.catch_warnings():
        usual = warnings.showwarning
        printed: set[str] = set()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, Notice):
                if str(message) not in printed:
                    print(message, file=sys.stderr, flush=True)
                printed.add(str(message))
            else:
                usual(message, category, *place, **more)

        if not debug:
            warnings.simplefilter("ignore")
        warnings.simplefilter("always", Notice)
        warnings.showwarning = show
        yield


def import_plugins(names: Sequence[str]) -> list[ModuleType]:
    """Import these modules, also from the current folder, so that the parts they register can be used."""
    here = str(Path.cwd())
    if names and here not in sys.path:
        sys.path.append(here)  # last: the user's files must not shadow installed libraries
    return [_import_plugin(name) for name in names]


@contextmanager
def plugin_errors(modules: Sequence[ModuleType]) -> Iterator[None]:
    """Turn an exception inside a plug-in into a UserError that names the line of the plug-in."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        lines = {frame.filename: frame.lineno for frame in traceback.extract_tb(error.__traceback__)}
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        module = next((module for module in modules if module.__file__ in lines), None)
        if module is None and not modules:
            raise
        if module is None:  # what a part gave may be at fault, or the part's signature
            names = ", ".join(module.__name__ for module in modules)
            hint = f"a part may return or accept something other than it should; set {DEBUG}=1 to see the traceback"
            raise UserError(f"--plugin {names}: failed: {what}; {hint}") from error
        place = f"{Path(str(module.__file__)).name}, line {lines[str(module.__file__)]}"
        raise UserError(f"--plugin {module.__name__}: failed: {what} ({place})") from error


def _import_plugin(name: str) -> ModuleType:
    _check_name(name)
    try:
        return import_module(name)
    except Exception as error:  # errors in the user's module are for the user to fix
        raise UserError(f"--plugin {name}: cannot import it: {type(error).__name__}: {error}{_place(error)}") from error


def _check_name(name: str) -> None:
    module = name.removesuffix(".py").replace("/", ".").strip(".")
    if not all(part.isidentifier() for part in name.split(".")) or name.endswith(".py"):
        hint = f" (did you mean '{module}'?)" if all(part.isidentifier() for part in module.split(".")) else ""
        raise UserError(f"--plugin {name}: not a module name{hint}")
    first = name.split(".")[0]
    own = [path for path in (Path.cwd() / f"{first}.py", Path.cwd() / first / "__init__.py") if path.is_file()]
    spec = find_spec(first)
    if spec is None:
        raise UserError(
            f"--plugin {name}: no such module: {first}.py is not in {Path.cwd()}, and no package {first} is installed"
        )
    if own and spec.origin is not None and not own[0].samefile(spec.origin):
        raise UserError(f"--plugin {name}: `import {first}` finds {spec.origin}, not {own[0].name}; rename the file")


def _place(error: Exception) -> str:
    """The line of the user's code that failed: the last one that is neither ours nor the import system's."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
        and Path(frame.filename) != Path(__file__)
        and "importlib" not in frame.filename
    ]
    user_frames = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())] or frames
    return f" ({Path(user_frames[-1].filename).name}, line {user_frames[-1].lineno})" if user_frames else ""


HELP_OPTIONS = ("--help", "-h")


def run_command(module: str, name: str, arguments: Sequence[str]) -> None:
    """Import a command's module and run it."""
    if processes() > 1:
        from seq2see.training.distributed import check_command

        with one_voice():
            check_command(name)
    command, args = parse_command(module, name, arguments)
    configure(getattr(args, "threads", None))
    voice = one_voice() if name == "train" else nullcontext()
    with voice, plugin_errors(import_plugins(getattr(args, "plugins", []))):
        command.run(args)


@contextmanager
def one_voice() -> Iterator[None]:
    """Of several processes that do one thing together, the first alone tells what is true of all of them."""
    if speaks():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        try:
            yield
        except RankError:
            raise
        except UserError:
            raise SystemExit(AT_FAULT) from None
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None


def parse_command(module: str, name: str, arguments: Sequence[str]) -> tuple[Any, Arguments]:
    """(the command's module, its parsed arguments).

    A command with KINDS is a package, in which each kind has a module: `seq2see figure lengths` is `figure/lengths.py`.
    """
    command = import_module(module)
    kinds: dict[str, str] = getattr(command, "KINDS", {})
    if kinds and not (arguments and arguments[0] in HELP_OPTIONS):
        kind = _check_kind(kinds, name, arguments)
        return parse_command(f"{module}.{kind.replace('-', '_')}", f"{name} {kind}", arguments[1:])
    parser = Parser(name, about=str(command.__doc__).split(": ", 1)[1], examples=command.EXAMPLES)
    command.arguments(parser)
    return command, parser.read(arguments)


def _check_kind(kinds: dict[str, str], name: str, arguments: Sequence[str]) -> str:
    allowed = ", ".join(kinds)
    if not arguments:
        raise UserError(f"{name}: which kind? allowed: {allowed}; see {program()} {name} --help")
    if arguments[0] not in kinds:
        raise UserError(f"unknown {name} '{arguments[0]}'{nearest(arguments[0], kinds)}; allowed: {allowed}")
    return arguments[0]


COMMANDS = {
    "tasks": "list the recipes that come with seq2see",
    "show": "describe a recipe or a model: data, encoder, decoder, parameters, loss",
    "inspect": "describe a table, what a recipe makes of it, and which recipes fit it",
    "train": "train a recipe on a table",
    "predict": "predict outputs for inputs",
    "evaluate": "compute metrics of a model on a table, next to trivial baselines",
    "score": "compute log-probability and perplexity of given outputs",
    "look": "draw where a model looks",
    "explain": "work through one decoding step with real numbers",
    "compare": "train variants of a recipe with the same updates and seeds, and rank them",
    "crossval": "cross-validate a recipe on speakers, books or writers that it was not trained on",
    "tune": "search for the best settings of a recipe within a given time",
    "distill": "train one model on the predictions of an ensemble",
    "faithful": "test whether attention is faithful: its agreement with occlusion and gradients",
    "encode": "encode inputs as vectors, or find nearest neighbours",
    "nearest": "find the training rows nearest to an input, or to one step of its output",
    "sample": "write a small data set to try a recipe on",
    "serve": "serve models with a web page and an HTTP API",
    "export": "export a model to run without torch",
    "page": "write a model as one HTML page that runs in a browser, offline",
    "pack": "write a model as one file, which every command takes in place of its folder",
    "models": "list small trained models that are ready to be built, with their figures",
    "get": "build one of these models",
    "push": "upload a model with its card to the Hugging Face Hub",
    "pull": "download a model from the Hugging Face Hub",
    "figure": "draw length curves, maps of vectors, learning curves and more",
    "render": "render lines of text as images with fonts",
    "demo": "train a small model for two minutes and show what it learned",
}

HELP = """\
seq2see: encoder-decoder models with attention that show where they look.

Usage: {program} COMMAND ...

Commands:
{commands}

Options:
  --help      show this help; `{program} COMMAND --help` shows the options of a command
  --version   print the version
  --debug     print tracebacks of errors (also SEQ2SEE_DEBUG=1)

RECIPE is a name listed by `{program} tasks` or a YAML file; MODEL is a folder written by
`{program} train` or `{program} get`, or a file written by `{program} pack`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 done, 2 error in the user's input, 130 and 143 ended by SIGINT and SIGTERM, 1
    anything else."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = words[:1] == ["--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that the terminal cannot show must not end a run
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(exit_code(lambda: run(words[1:] if debug else words), debug=debug))


def run(arguments: Sequence[str]) -> None:
    """Run the command that the first argument names."""
    name = arguments[0] if arguments else "--help"
    if name in ("--help", "-h", "help"):
        commands = "\n".join(f"  {command:<10}{about}" for command, about in COMMANDS.items())
        print(HELP.format(commands=commands, program=program()))
    elif name == "--version":
        print(f"seq2see {__version__}")
    elif name in COMMANDS:
        run_command(f"seq2see.cli.{name}", name, arguments[1:])
    else:
        what = "option" if name.startswith("-") else "command"
        raise UserError(f"unknown {what} '{name}'{nearest(name, COMMANDS)}; commands: {', '.join(COMMANDS)}")
