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
    try:
        work()
        sys.stdout.flush()
        return DONE
    except BrokenPipeError:
        # Whoever read our output has enough; Python's own last flush must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except UserError as error:
        code, said = AT_FAULT, f"error: {error}"
    except KeyboardInterrupt:
        code, said = INTERRUPTED, "stopped"
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        what = ": ".join(part for part in (type(error).__name__, str(error)) if part)
        code, said = FAILED, f"failed: {what}\nThis is a fault of seq2see; with {DEBUG}=1 it shows where it arose."
    if debug:
        traceback.print_exc()
    print(said, file=sys.stderr)
    return code
