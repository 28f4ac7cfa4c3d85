"""Alignments: which places of an input the symbols of an output come from, as a column of the table tells.

Of a text they are links between symbols (`0-0 1-2`), of a sound or a video the times of words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.batches import Ragged, Sequences, TimeSpans
from seq2see.data.columns import ALIGNMENT, OUTPUT
from seq2see.errors import UserError, counted
from seq2see.files import shortened
from seq2see.modalities.base import Column, Example, Modality
from seq2see.modalities.text import TextField
from seq2see.recipe.schema import AlignmentSettings, Recipe, timed_alignment

Link = tuple[int, int]
"""(place of the input, symbol of the output), both from 0"""


@dataclass(frozen=True)
class Links:
    """sure: links that must be there; possible: those that may be, the sure ones among them (Och and Ney 2003)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


class AlignmentReader(Protocol):
    """Reads the alignment of rows with one input. name: of that input."""

    name: str

    def links(self, row: Mapping[str, str], examples: Mapping[str, Example], *, places: int) -> Links:
        """The links of a row whose input has so many places."""
        ...

    def ids(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> list[int]:
        """The alignment of a row as it is stored."""
        ...

    def batch(
        self, store: Ragged, rows: Sequence[int], *, target: Column, source: Column
    ) -> Float[Tensor, "batch steps places"] | TimeSpans:
        """Where each step of some stored rows should look."""
        ...


def alignment_reader(recipe: Recipe, inputs: Mapping[str, Modality], output: TextField) -> AlignmentReader | None:
    """The reader for the first input that is looked at; None where that is neither a text nor timed (regions of a
    video), which `loss.alignment.optional` allows."""
    settings, name = recipe.loss.alignment, recipe.looked_at[0]
    source = inputs.get(name)
    if timed_alignment(recipe):
        return TimeReader(settings, name, inputs[name], output)
    if isinstance(source, TextField) and settings.column is not None:
        return LinkReader(settings.column, name, source, output)
    return None


# ---------------------------------------------------------------- links between symbols

_LINK = re.compile(r"(\d+)([-?])(\d+)", re.ASCII)


def parse_links(text: str, *, places: int, symbols: int) -> Links:
    """'0-0 1-2 1?3': place-symbol, with a question mark where a link is possible but not sure.

    >>> sorted(parse_links("0-0 1?2", places=2, symbols=3).possible)
    [(0, 0), (1, 2)]
    """
    sure, possible = set[Link](), set[Link]()
    for part in text.split():
        match = _LINK.fullmatch(part)
        if match is None:
            raise UserError(
                f"'{part}' is not a link; allowed: pairs like 0-0 or, if merely possible, 0?0, with spaces between"
            )
        link = int(match[1]), int(match[3])
        for position, count, whose in ((link[0], places, "input"), (link[1], symbols, "output")):
            if position >= count:
                known = f"0 to {count - 1}" if count else "none"
                raise UserError(f"'{part}': the {whose} has {counted(count, 'symbol')}, counted from 0: {known}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


class LinkReader:
    """Reads the alignment links between one input and the output.

    column: of the links in the table, for messages; name: of the input; source, output: the two fields.
    """

    def __init__(self, column: str, name: str, source: TextField, output: TextField):
        self.column = column
        self.name = name
        self.source = source
        self.output = output

    def links(self, row: Mapping[str, str], examples: Mapping[str, Example], *, places: int = 0) -> Links:
        """The links of a row, checked against its input and its output; without those to places that are cut off."""
        source = examples[self.name]
        try:
            links = parse_links(row.get(ALIGNMENT, ""), places=source.total, symbols=len(examples[OUTPUT].symbols))
        except UserError as error:
            raise UserError(f"column '{self.column}': {error}") from None
        length = len(self.source.row_of(source))
        sure, possible = (frozenset(link for link in part if link[0] < length) for part in (links.sure, links.possible))
        return Links(sure, possible)

    def ids(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> list[int]:
        """The sure links of a row as they are stored: place, symbol, place, symbol, ..."""
        return [position for link in sorted(self.links(row, examples).sure) for position in link]

    def batch(
        self, store: Ragged, rows: Sequence[int], *, target: Column, source: Column
    ) -> Float[Tensor, "batch steps places"]:
        assert isinstance(target, Sequences)
        assert isinstance(source, Sequences)
        steps, places = target.ids.shape[1], source.ids.shape[1]
        return link_weights(store, rows, steps=steps, places=places)


def link_weights(store: Ragged, rows: Sequence[int], *, steps: int, places: int) -> Float[Tensor, "batch steps places"]:
    """a_true of rows: each step is divided evenly among the places it is linked to; zeros where there is no link."""
    truth = np.zeros((len(rows), steps, places), dtype=np.float32)
    for number, row in enumerate(rows):
        links = np.asarray(store[row]).reshape(-1, 2)
        truth[number, links[:, 1], links[:, 0]] = 1.0
    return torch.from_numpy(truth / np.maximum(truth.sum(-1, keepdims=True), 1.0))


# ---------------------------------------------------------------- times of words

WHOLE = 1_000_000
"""Times are stored as parts in a million of the sound or clip, so that they hold at any speed."""

FIRST, EARLY = 100, 0.1
"""In so many rows some word has to end later than this share of its sound or clip."""

LATEST = 1e12
"""The latest time, in any unit."""

EXAMPLE = '[["yes", 0.2, 0.5], ["sir", 0.5, 0.9]]'


@dataclass(frozen=True)
class Timed:
    """A word that is said or shown from `start` to `end`, in the unit of the table."""

    word: str
    start: float
    end: float


def parse_times(text: str) -> list[Timed]:
    """JSON, a list of [word, start, end] in the order of the output; a blank cell has none.

    >>> parse_times('[["yes", 0.2, 0.5]]')
    [Timed(word='yes', start=0.2, end=0.5)]
    """
    if not text.strip():
        return []
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise UserError(f"{shortened(text)} is not a list of times; allowed: JSON such as {EXAMPLE}")
    found = []
    for item in items:
        match item:
            case [str(word), int() | float() as start, int() | float() as end] if 0 <= start < end <= LATEST:
                found.append(Timed(word, float(start), float(end)))
            case _:
                shown = shortened(json.dumps(item, ensure_ascii=False), quotes=False)
                raise UserError(
                    f"{shown} is not the time of a word; allowed: [word, start, end], 0 <= start < end, such as "
                    f"{EXAMPLE}"
                )
    return found


class TimeReader:
    """Reads when the words of the output are said in a sound, or shown in a video."""

    def __init__(self, settings: AlignmentSettings, name: str, source: Modality, output: TextField):
        self.column, self.rate = settings.column, settings.rate
        self.name, self.source, self.output = name, source, output

    def spans(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> dict[int, tuple[float, float]]:
        """For each symbol of a timed word its start and end, as shares of the input."""
        begin, length = self._extent(examples[self.name])
        symbols, step = examples[OUTPUT].symbols, 0
        found: dict[int, tuple[float, float]] = {}
        try:
            for timed in parse_times(row.get(ALIGNMENT, "")):
                start, end = ((second / self.rate - begin) / length for second in (timed.start, timed.end))
                if start >= 1:
                    last = f"{(begin + length) * self.rate:g}"
                    raise UserError(
                        f"'{timed.word}' begins at {timed.start:g}, and '{self.name}' ends at {last}; times are read "
                        f"as {self.rate:g} to a second (loss.alignment.rate)"
                    )
                for symbol in self.output.whole(timed.word):
                    while step < len(symbols) and symbols[step] != symbol and symbols[step].isspace():
                        step += 1
                    if step == len(symbols) or symbols[step] != symbol:
                        raise UserError(
                            f"'{timed.word}' is not the next word of the output, {examples[OUTPUT].value!r}; allowed: "
                            "its words in their order"
                        )
                    if end > 0:
                        found[step] = max(start, 0.0), min(end, 1.0)
                    step += 1
        except UserError as error:
            raise UserError(f"column '{self.column}': {error}") from None
        return found

    def _extent(self, example: Example) -> tuple[float, float]:
        """The second at which the input begins, and how many it lasts."""
        begin, end = self.source.extent(example.value)
        return begin, max(end - begin, 1e-6)

    def links(self, row: Mapping[str, str], examples: Mapping[str, Example], *, places: int) -> Links:
        """Every place that lies within the time of a symbol, if only in part, is a possible one; none is sure."""
        spans = TimeSpans.of([self.spans(row, examples)], steps=len(examples[OUTPUT].symbols))
        inside = spans.inside(torch.ones(1, places, dtype=torch.bool))[0]
        return Links(frozenset(), frozenset((place, step) for step, place in inside.nonzero().tolist()))

    def ids(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> list[int]:
        """Symbol, start, end, symbol, start, end, ..."""
        spans = self.spans(row, examples).items()
        return [n for step, (start, end) in spans for n in (step, round(start * WHOLE), round(end * WHOLE))]

    def check_unit(self, store: Ragged) -> None:
        """Refuse times of which the first rows say that they are in a larger unit than the recipe's."""
        rows = (np.asarray(store[row]).reshape(-1, 3) for row in range(min(len(store), FIRST)))
        latest = max((int(row[:, 2].max()) for row in rows if len(row)), default=WHOLE)
        if latest < EARLY * WHOLE:
            raise UserError(
                f"column '{self.column}': in the first {counted(min(len(store), FIRST), 'row')} all words end within "
                f"{latest / WHOLE:.1%} of '{self.name}'; times are read as {self.rate:g} to a second, set "
                "loss.alignment.rate to what they are (1 for seconds)"
            )

    def batch(self, store: Ragged, rows: Sequence[int], *, target: Column, source: Column) -> TimeSpans:
        assert isinstance(target, Sequences)
        spans = []
        for row in rows:
            triples = np.asarray(store[row]).reshape(-1, 3).tolist()
            spans.append({step: (start / WHOLE, end / WHOLE) for step, start, end in triples})
        return TimeSpans.of(spans, steps=target.ids.shape[1])
