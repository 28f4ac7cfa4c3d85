"""Sequences that look at themselves: encoders while they read, decoders at what they have written."""

from __future__ import annotations

from collections.abc import Sequence

from seq2see.decoders import Ready
from seq2see.memory import InnerMap, Memory, Places
from seq2see.search.hypothesis import InnerLook
from seq2see.search.joint import JointPlaces


def inner_looks(readies: Sequence[Ready]) -> list[dict[str, InnerLook]]:
    """For each input of the batch {name: where its encoder looked}.

    An ensemble's encoders look each for itself, at what they alone compute: of them nothing is told together.
    """
    rows = readies[0].rows
    if len(readies) > 1:
        return [{} for _ in range(rows)]
    memory = readies[0].memory
    return [{name: _of_row(name, one, memory, row) for name, one in memory.maps.items()} for row in range(rows)]


def inward_name(layer: int) -> str:
    """What the looks of a decoder's layer (from 1) at what it has read of its own output are called.

    No input can have this name: `output` is reserved.
    """
    return f"output.self-{layer}"


def _of_row(name: str, one: InnerMap, memory: Memory, row: int) -> InnerLook:
    """The real rows and places of a map: what asks are the places it is named after (`document`, of a map
    `document.words` or `document.self-1`), what is looked at further places of the map's own name, or the same."""
    weights = one.weights[row][..., one.rows[row], :][..., one.places[row]].float().cpu().numpy()
    asking = memory.places[name.rpartition(".")[0]]
    over = memory.places.get(name, asking)
    layout = JointPlaces(over.mask, over.mask.any(-1), one.layout, parent=over.parent).layout_of(row)
    return InnerLook(weights, layout, _tokens(over, row), _tokens(asking, row))


def _tokens(places: Places, row: int) -> list[str]:
    return [] if places.tokens is None else places.tokens[row]
