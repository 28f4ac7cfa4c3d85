"""From errors to exit codes: the user's own are one message, everything else says how to see more."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from seq2see.errors import Notice, UserError

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
