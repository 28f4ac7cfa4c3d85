"""What a model cannot read of its inputs: unknown symbols, and what lies beyond the longest input."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from seq2see.data.columns import OUTPUT
from seq2see.errors import Notice, counted
from seq2see.modalities.base import Watcher
from seq2see.modalities.text import SHOWN, TextField, name_unknown
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields

OURS = ("seq2see", "torch")
"""Packages whose frames lie between a warning and the user: torch wraps what runs in inference mode."""


class Notices:
    """What is to be said of the rows read so far, gathered so that a table of any size gets one line for each matter.

    outputs: of given outputs too. Models of an ensemble may differ in what they know; what any of them misses is told.
    """

    def __init__(self, bundles: Sequence[Bundle], *, outputs: bool = False):
        self._recipe = bundles[0].recipe
        self._rows = self._blank = 0
        self._watchers = [(bundle.fields, _watchers(bundle.fields, outputs=outputs)) for bundle in bundles]

    def read(self, rows: Iterable[Mapping[str, str]]) -> None:
        for row in rows:
            self._rows += 1
            self._blank += any(not row[name].strip() for name in self._recipe.needed)
            for fields, watchers in self._watchers:
                examples = fields.read(row, output=OUTPUT in watchers) if watchers else {}
                for name, watcher in watchers.items():
                    watcher.read(examples[name], row)

    def lines(self) -> list[str]:
        blank = []
        if self._blank:
            have = "has an" if self._blank == 1 else "have an"
            blank = [f"{self._blank:,} of {counted(self._rows, 'row')} {have} empty input: left blank"]
        return blank + list(
            dict.fromkeys(
                line for _, watchers in self._watchers for watcher in watchers.values() for line in watcher.lines()
            )
        )


def tell(lines: Iterable[str]) -> None:
    """Warn at the line of the user's own code that led here, through however many frames of ours."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in OURS:
        depth, frame = depth + 1, frame.f_back
    for line in lines:
        warnings.warn(line, Notice, stacklevel=depth)


def conditional(bundles: Sequence[Bundle]) -> list[str]:
    """A line if what is reported of the models' probabilities is given more than the input."""
    given = dict.fromkeys(bundle.recipe.attention.conditions for bundle in bundles)
    return [f"perplexity is given {one} (attention.choice hard), not summed over all others" for one in given if one]


def unknown_labels(bundle: Bundle, rows: Iterable[Mapping[str, str]]) -> list[str]:
    """A line if rows have labels that the model does not know, and so can never say."""
    field = bundle.fields.output
    missing = Counter(row[OUTPUT] for row in rows if not field.knows(row[OUTPUT]))
    if not missing:
        return []
    named = ", ".join(f"'{label}'" for label, _ in missing.most_common(SHOWN))
    more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
    rows_of = counted(sum(missing.values()), "row")
    return [f"{rows_of} with a label that the model does not know, which count as wrong: {named}{more}"]


def unknown_in(bundle: Bundle, text: str, rows: Iterable[Mapping[str, str]], *, what: str) -> list[str]:
    """A line if an output given for rows (`what`: prefix, target) has symbols that the model cannot write there."""
    field = bundle.fields.text_output
    missing = [symbol for symbol in dict.fromkeys(field.symbols(text)) if symbol not in field.vocabulary]
    if missing and bundle.fields.copying is not None:
        copied = [set(bundle.fields.copied_words(row)) for row in rows]
        missing = [symbol for symbol in missing if not all(symbol in words for words in copied)]
    return [f"{what}: {name_unknown(missing)}"] if missing else []


def _watchers(fields: Fields, *, outputs: bool) -> dict[str, Watcher]:
    """What watches the columns of which something may be unreadable, by name."""
    columns = fields.all if outputs else fields.inputs
    several = sum(isinstance(field, TextField) for field in columns.values()) > 1
    found = {}
    for name, field in columns.items():
        copied = fields.copied_words if name == OUTPUT and fields.copying is not None else None
        watcher = field.watcher(name, named=several, copied=copied)
        if watcher is not None:
            found[name] = watcher
    return found
