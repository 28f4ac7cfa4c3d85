"""What users are told: errors that are theirs to mend (one clear message, exit code 2, never a traceback), notices."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from importlib import import_module
from typing import Any

MOST_CHARACTERS = 20_000
"""Of a message: values that it repeats may be megabytes."""


class UserError(Exception):
    """The input is at fault. The message names file, line, column or key, the value given and what is allowed."""

    def __init__(self, message: str = ""):
        message = message if len(message) <= MOST_CHARACTERS else f"{message[:MOST_CHARACTERS]} ..."
        super().__init__(message.encode("utf-8", "backslashreplace").decode("utf-8"))  # names of files may be no text


class CellError(UserError):
    """One of several cells is at fault. place: which, from 0."""

    def __init__(self, message: str, place: int):
        super().__init__(message)
        self.place = place


class SettingError(UserError):
    """A setting of an input or output does not fit the values, whatever the row. The message begins with its key."""

    def __init__(self, key: str, message: str):
        super().__init__(f"{key}: {message}")


class SharedError(UserError):
    """Every process of a run has this error, and the first one tells it."""


class RankError(UserError):
    """Only one process of a run, which is not the first, has this error; the message names it."""


class PeerLost(RuntimeError):
    """Another process of a run has ended, or does not answer."""


class MissingExtra(UserError):
    """An optional library is not installed; the message says which extra brings it."""

    def __init__(self, library: str, extra: str):
        super().__init__(f"{library} is not installed: pip install 'seq2see[{extra}]'")


def imported(module: str, *, extra: str) -> Any:
    """A module of an optional package, or an error that says how to get it.

    >>> imported("no_such_package.part", extra="pictures")
    Traceback (most recent call last):
    seq2see.errors.MissingExtra: no_such_package is not installed: pip install 'seq2see[pictures]'
    """
    try:
        return import_module(module)
    except (ImportError, OSError) as error:  # OSError: the package is there, a library of the system's is not
        raise MissingExtra(module.partition(".")[0], extra) from error


def processes() -> int:
    """How many processes torchrun has started for one run; 1 without it."""
    return max(_number("WORLD_SIZE", 1), 1)


def speaks() -> bool:
    """Whether this process tells the user what happens: of several that torchrun has started, the first."""
    return processes() == 1 or _number("RANK", 0) == 0


def _number(variable: str, otherwise: int) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else otherwise


class Notice(UserWarning):
    """Something to know that is no error, given with `warnings.warn`; the command line prints it as a plain line."""


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(1940, "row")
    ('1 row', '1,940 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LONGEST_WORD, MOST_WORDS = 200, 2_000
"""Comparing spellings takes time that grows with both."""


def listing(names: Iterable[str], most: int = 20, *, between: str = ", ") -> str:
    """Names with commas between them, each cut where it is long; those beyond the most are counted.

    >>> listing(["en", "de", "fr"], most=2)
    'en, de, ... (3 in total)'
    """
    known = list(names)
    shown = [name if len(name) <= LONGEST_WORD else f"{name[:LONGEST_WORD]}..." for name in known[:most]]
    return between.join([*shown, *([f"... ({len(known):,} in total)"] if len(known) > most else [])])


def nearest(given: str, allowed: Iterable[str]) -> str:
    """' (did you mean 'x'?)' for an allowed word that begins like that, or the closest spelling, or nothing.

    >>> nearest("local", ["global", "local-monotonic"])
    " (did you mean 'local-monotonic'?)"
    """
    if len(given) > LONGEST_WORD:
        return ""
    known = [word for word in allowed if len(word) <= LONGEST_WORD][:MOST_WORDS]
    longer = [word for word in known if len(given) > 2 and word.startswith(f"{given}-")]
    close = longer or difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    return f" (did you mean '{close[0]}'?)" if close else ""
