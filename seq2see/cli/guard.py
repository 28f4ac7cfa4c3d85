"""From errors to exit codes: the user's own are one message, everything else says how to see more."""

from __future__ import annotations

import functools
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import typer

from seq2see.errors import UserError

DEBUG = "SEQ2SEE_DEBUG"
FAILED, AT_FAULT, INTERRUPTED = 1, 2, 130


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, leaving with 2 for what the user can mend, 130 for Ctrl-C and 1 for anything else."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        if not debugging():
            warnings.simplefilter("ignore")
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except UserError as error:
            _leave(f"error: {error}", AT_FAULT)
        except KeyboardInterrupt:
            _leave("stopped", INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has enough; Python's last flush must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except typer.Exit:
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
            said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            _leave(f"failed: {said}\n(this is a fault of seq2see; {DEBUG}=1 shows where it arose)", FAILED)

    return run


def debugging() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _leave(message: str, code: int) -> None:
    if debugging():
        traceback.print_exc()
    print(message, file=sys.stderr)
    raise typer.Exit(code) from None
