"""Which place of an input each symbol of an output comes from: links as people and aligners write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from seq2see.data.columns import ALIGNMENT, OUTPUT
from seq2see.data.store import Ragged
from seq2see.errors import UserError, counted
from seq2see.modalities.base import Example
from seq2see.modalities.text import TextField

_LINK = re.compile(r"(\d+)([-?])(\d+)", re.ASCII)

Link = tuple[int, int]
"""(place of the input, symbol of the output), both from 0"""


@dataclass(frozen=True)
class Links:
    """sure: links that must be there; possible: those that may be, the sure ones among them (Och and Ney 2003)."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def parse(text: str, *, places: int, symbols: int) -> Links:
    """'0-0 1-2 1?3': place-symbol, a question mark where a link is possible and not sure.

    >>> sorted(parse("0-0 1?2", places=2, symbols=3).possible)
    [(0, 0), (1, 2)]
    """
    sure, possible = set[Link](), set[Link]()
    for part in text.split():
        found = _LINK.fullmatch(part)
        if found is None:
            raise UserError(
                f"'{part}' is no link; allowed: pairs like 0-0 or, if merely possible, 0?0, with spaces between"
            )
        link = int(found[1]), int(found[3])
        for position, count, whose in ((link[0], places, "input"), (link[1], symbols, "output")):
            if position >= count:
                known = f"0 to {count - 1}" if count else "none"
                raise UserError(f"'{part}': the {whose} has {counted(count, 'symbol')}, counted from 0: {known}")
        possible.add(link)
        if found[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


class Aligning:
    """Reads the links between one input and the output.

    column: where they stand in the table, for messages; name: of the input; source, output: the two fields.
    """

    def __init__(self, column: str, name: str, source: TextField, output: TextField):
        self.column = column
        self.name = name
        self.source = source
        self.output = output

    def links(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> Links:
        """The links of a row, checked against its input and its output; those of what is cut off an input are left."""
        source = examples[self.name]
        try:
            found = parse(row[ALIGNMENT], places=source.total, symbols=len(examples[OUTPUT].symbols))
        except UserError as error:
            raise UserError(f"column '{self.column}': {error}") from None
        read = len(self.source.row_of(source))
        return Links(*(frozenset(one for one in links if one[0] < read) for links in (found.sure, found.possible)))

    def ids(self, row: Mapping[str, str], examples: Mapping[str, Example]) -> list[int]:
        """What is stored of a row: its sure links one behind the other."""
        return [position for link in sorted(self.links(row, examples).sure) for position in link]


def shares(store: Ragged, rows: Sequence[int], *, steps: int, places: int) -> Float[Tensor, "batch steps places"]:
    """a_true of the given rows: each step's look divided evenly among the places it is linked to; zeros for no link."""
    truth = np.zeros((len(rows), steps, places), dtype=np.float32)
    for number, row in enumerate(rows):
        links = np.asarray(store[row]).reshape(-1, 2)
        truth[number, links[:, 1], links[:, 0]] = 1.0
    return torch.from_numpy(truth / np.maximum(truth.sum(-1, keepdims=True), 1.0))
