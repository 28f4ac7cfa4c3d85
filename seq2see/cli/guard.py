"""From errors to exit codes: the user's own are one message, everything else says how to see more."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable

from seq2see.errors import UserError

DEBUG = "SEQ2SEE_DEBUG"
DONE, FAILED, AT_FAULT, INTERRUPTED = 0, 1, 2, 130


def guarded(work: Callable[[], None], *, debug: bool = False) -> int:
    """Do the work and give its exit code: 2 for what the user can mend, 130 for Ctrl-C, 1 for anything else."""
    debug = debug or os.environ.get(DEBUG, "") not in ("", "0")
    if not debug:
        warnings.simplefilter("ignore")
    caught: BaseException
    try:
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
