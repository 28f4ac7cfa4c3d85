"""What a model cannot read of its inputs: unknown symbols, and what lies beyond the longest input."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from seq2see.data.columns import OUTPUT
from seq2see.data.vocabulary import SPECIALS
from seq2see.errors import Notice, counted
from seq2see.modalities.label import LabelField
from seq2see.modalities.text import TextField
from seq2see.modalities.texts import TextsField
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.copying import Copying
from seq2see.recipe import Recipe

SHOWN = 8
"""Unknown symbols told by name; the others are counted."""
UNKNOWN = SPECIALS[1]
OURS = ("seq2see", "torch")
"""Packages whose frames lie between a warning and the user: torch wraps what runs in inference mode."""


class Notices:
    """What is to be said of the rows read so far, gathered so that a table of any size gets one line for each matter.

    outputs: of given outputs too. Models of an ensemble may differ in what they know; what any of them misses is told.
    """

    def __init__(self, bundles: Sequence[Bundle], *, outputs: bool = False):
        self._recipe = bundles[0].recipe
        self._rows = self._blank = 0
        self._readers = [reader for bundle in bundles for reader in _readers(bundle, outputs=outputs)]

    def read(self, rows: Iterable[Mapping[str, str]]) -> None:
        for row in rows:
            self._rows += 1
            self._blank += any(not row[name].strip() for name in self._recipe.needed)
            for reader in self._readers:
                reader.read(row)

    def lines(self) -> list[str]:
        blank = []
        if self._blank:
            have = "has an" if self._blank == 1 else "have an"
            blank = [f"{self._blank:,} of {counted(self._rows, 'row')} {have} empty input: left blank"]
        return blank + list(dict.fromkeys(line for reader in self._readers for line in reader.lines()))


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
    if not isinstance(field, LabelField):
        return []
    missing = Counter(row[OUTPUT] for row in rows if not field.knows(row[OUTPUT]))
    if not missing:
        return []
    named = ", ".join(f"'{label}'" for label, _ in missing.most_common(SHOWN))
    more = f" and {len(missing) - SHOWN:,} more" if len(missing) > SHOWN else ""
    rows_of = counted(sum(missing.values()), "row")
    return [f"{rows_of} with a label that the model does not know, which count as wrong: {named}{more}"]


def unknown_in(bundle: Bundle, text: str, rows: Iterable[Mapping[str, str]], *, what: str) -> list[str]:
    """A line if an output given for rows (`what`: prefix, target) has symbols that the model cannot write there."""
    field, copying = bundle.fields.text_output, bundle.fields.copying
    missing = [symbol for symbol in dict.fromkeys(field.symbols(text)) if symbol not in field.vocabulary]
    if missing and copying is not None:
        copied = [set(copying.words(row)) for row in rows]
        missing = [symbol for symbol in missing if not all(symbol in words for words in copied)]
    return [f"{what}: {_not_known(missing)}"] if missing else []


def _readers(bundle: Bundle, *, outputs: bool) -> list[_Reader]:
    recipe, fields = bundle.recipe, dict(bundle.fields.text_inputs)
    if outputs and isinstance(bundle.fields.output, TextField):
        fields[OUTPUT] = bundle.fields.output
    several = len(fields) > 1
    copying = bundle.fields.copying
    return [
        _Reader(
            name,
            field,
            open_ended=_open_ended(recipe, name),
            named=several,
            copying=copying if name == OUTPUT else None,
        )
        for name, field in fields.items()
    ]


def _open_ended(recipe: Recipe, name: str) -> bool:
    """Whether unknown symbols are nothing to speak of: words of which training itself left out the rare ones."""
    owner = recipe.vocabulary_owner(name)
    settings = recipe.output if owner == OUTPUT else recipe.inputs[owner]
    limited = getattr(settings, "vocabulary", 0) > 0 or getattr(settings, "min_count", 1) > 1
    return getattr(settings, "tokens", None) == "word" and limited


class _Reader:
    """The notices of one column; copying: how words of an input become known to it."""

    def __init__(self, name: str, field: TextField, *, open_ended: bool, named: bool, copying: Copying | None):
        self.name, self.field, self.open_ended, self.copying = name, field, open_ended, copying
        self.noun = "output" if field.output else "input"
        self.start = f"'{name}': " if named else ""
        self.rows, self.longest = 0, 0
        self.cut, self.partly, self.wholly = 0, 0, 0
        self.unknown: dict[str, None] = {}

    def read(self, row: Mapping[str, str]) -> None:
        value = row[self.name]
        whole = self.field.whole(value)
        read = self.field.symbols(value)
        missing = [symbol for symbol in read if symbol not in self.field.vocabulary]
        if missing and self.copying is not None:
            copied = self.copying.words(row)
            missing = [symbol for symbol in missing if symbol not in copied]
        self.rows += 1
        self.longest = max(self.longest, len(whole))
        self.cut += len(whole) > len(read)
        self.partly += bool(missing)
        self.wholly += bool(read) and len(missing) == len(read)
        if not self.open_ended:
            self.unknown.update(dict.fromkeys(missing))

    def lines(self) -> list[str]:
        found = []
        if self.unknown:
            where = f" (in {self._share(self.partly)})" if self.rows > 1 else ""
            found.append(f"{self.start}{_not_known(list(self.unknown))}{where}")
        elif self.open_ended and self.wholly:
            which = f"the {self.noun}" if self.rows == 1 else self._share(self.wholly)
            found.append(f"{self.start}no word of {which} is known to the model: all are read as {UNKNOWN}")
        if self.cut:
            found.append(f"{self.start}{self._cut_short()}")
        return found

    def _cut_short(self) -> str:
        most, key = self.field.settings.max_length, f"inputs.{self.name}.max_length"
        cut, are = f"cut to the first {most:,} ({key})", "is" if self.cut == 1 else "are"
        if isinstance(self.field, TextsField):
            cut, key = f"cut by {self.field.limit}", f"inputs.{self.name}"
            longer = f"longer than {key} allows"
        else:
            longer = f"longer than {most:,} symbols"
        if self.rows == 1:
            return f"the {self.noun} has {counted(self.longest, 'symbol')}: {cut}"
        return f"{self._share(self.cut)} {are} {longer}: {cut}"

    def _share(self, number: int) -> str:
        return f"{number:,} of {counted(self.rows, self.noun)}"


def _not_known(symbols: Sequence[str]) -> str:
    shown = [f"'{symbol}'" for symbol in symbols[:SHOWN]]
    if len(symbols) > SHOWN:
        shown.append(f"{len(symbols) - SHOWN:,} more")
    *others, last = shown
    joined = f"{', '.join(others)} and {last}" if others else last
    return f"{joined} {'is' if len(symbols) == 1 else 'are'} not known to the model: read as {UNKNOWN}"
