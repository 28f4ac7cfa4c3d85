"""Looks taken apart into panels: one matrix each, with the labels of its rows and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from seq2see.errors import UserError, nearest
from seq2see.looks import Looks
from seq2see.seeing.labels import Direction, as_words, direction_of
from seq2see.seeing.style import round_top

LABEL = 24
"""Letters shown of a sentence that labels a row or a column."""

PART = 48
"""Symbols drawn of a longer sequence that looks at itself, where its map was not asked for by name."""

ALL = "all"
"""In place of a map's name: every map there is."""

LAYER = re.compile(r"\.layer-\d+$")
"""How the names end of maps of layers below the last."""


@dataclass(frozen=True)
class Panel:
    """One matrix of weights (steps, places) and what its rows and columns stand for; `head` counts from 1.

    chosen: the place each step went by, where one was chosen; across, down: what columns and rows are called; part: of
    a document, which an encoder looks at too; layer: which one's looks these are, where the map's name does not tell.
    """

    name: str
    weights: Float[np.ndarray, "steps places"]
    inputs: list[str]
    outputs: list[str]
    direction: Direction
    head: int | None = None
    across: str = "input"
    down: str = "output"
    part: bool = False
    chosen: tuple[int, ...] = ()
    layer: str = ""

    @property
    def title(self) -> str:
        """The map's name, and who looked where the name may be read as another's."""
        who = ["decoder"] if self.part and not self.inner else []
        who += [self.layer] if self.layer else []
        return f"{self.name} ({', '.join(who)})" if who else self.name

    @property
    def inner(self) -> bool:
        """Whether it is something else than the output that looks."""
        return self.down != "output"

    @property
    def steps(self) -> int:
        return len(self.outputs)

    @property
    def places(self) -> int:
        return len(self.inputs)


def panels_of(looks: Looks, *, map: str | None = None, direction: str = "auto") -> list[list[Panel]]:
    """The panels of the named map, or of those that tell how the output came about, the default one first: of each one
    panel, or one for each head.

    Maps of a sequence on itself are many (each layer of each part has one), and those of the layers below the last
    tell less; they are drawn where they are asked for, by name or with `all`. Where there are none but maps of a
    sequence on itself these are drawn, of long ones the first symbols.
    """
    if not looks.maps:
        raise UserError(f"nothing to draw: {looks.reason or 'this model has no attention, so it looks at no place'}")
    if map is not None and map not in (*looks.maps, ALL):
        raise UserError(f"unknown map '{map}'{nearest(map, looks.maps)}; this model has: {', '.join(looks.maps)}")
    if direction not in ("auto", "ltr", "rtl"):
        raise UserError(f"unknown direction '{direction}'; allowed: auto, ltr, rtl")
    every = [looks.name, *(name for name in looks.maps if name != looks.name)]
    chosen = {None: [name for name in every if name not in left_out(looks)], ALL: every}
    made = [_panels_of_map(looks, name, direction) for name in chosen.get(map, [map or ""])]
    return made if map is not None else [_begun(looks, group) for group in made]


def left_out(looks: Looks) -> list[str]:
    """The maps that are not drawn unless they are asked for."""
    onto_themselves = [name for name in looks.maps if looks.onto_itself(name)]
    kept_back = onto_themselves if len(onto_themselves) < len(looks.maps) else []
    return [name for name in looks.maps if name in kept_back or LAYER.sub("", name) in looks.maps.keys() - {name}]


def in_part(looks: Looks) -> int:
    """How long the sequence is of which only the first symbols are drawn unless a map is asked for; 0: all is drawn."""
    drawn = [name for name in looks.maps if name not in left_out(looks) and looks.onto_itself(name)]
    longest = max((len(looks.inputs[name]) for name in drawn), default=0)
    return longest if longest > PART else 0


def _begun(looks: Looks, group: list[Panel]) -> list[Panel]:
    """The heads of a map; of a long sequence on itself the first symbols, which its axes then say."""
    panel = group[0]
    if not looks.onto_itself(panel.name) or panel.places <= PART:
        return group
    said = f", the first {PART} of {panel.places:,}"
    return [
        replace(
            head,
            weights=head.weights[:PART, :PART],
            inputs=head.inputs[:PART],
            outputs=head.outputs[:PART],
            across=f"{head.across}{said}",
            down=f"{head.down}{said}",
        )
        for head in group
    ]


def _panels_of_map(looks: Looks, name: str, direction: str) -> list[Panel]:
    weights = np.asarray(looks.maps[name], dtype=np.float64)
    if weights.ndim not in (2, 3) or 0 in weights.shape:
        raise UserError(f"map '{name}' has shape {weights.shape}; allowed: (steps, places) or (heads, steps, places)")
    if not np.isfinite(weights).all():
        raise UserError(f"map '{name}' holds weights that are not finite numbers")
    steps, places = weights.shape[-2:]
    inputs = looks.inputs.get(name) or [str(place + 1) for place in range(places)]
    if len(inputs) != places:
        raise UserError(f"map '{name}' has {places} places, but {len(inputs)} input symbols are given for them")
    way: Direction = direction_of(inputs) if direction == "auto" else "rtl" if direction == "rtl" else "ltr"
    outputs = _rows(looks, name, steps, inputs)
    heads: list[NDArray[np.float64]] = list(weights) if weights.ndim == 3 else [weights]
    numbers = [None] if len(heads) == 1 else range(1, len(heads) + 1)
    inputs, outputs = as_words(inputs), as_words(outputs)
    if looks.layouts.get(name, {}).get("kind") == "sentences":
        inputs = [_short(sentence, number) for number, sentence in enumerate(inputs, start=1)]
        outputs = inputs if looks.onto_itself(name) else outputs
    if looks.layouts.get(name, {}).get("kind") == "frames":
        inputs = [second.replace(" ", "") for second in inputs]  # a blank would be shown as one: these are no symbols
    axes = {"across": "looked at", "down": "looking"} if name in looks.rows else {}
    layout = looks.layouts.get(name, {})
    part = layout.get("kind") == "sentences" or "parts" in layout
    chosen = tuple(looks.chosen.get(name, ())) if len(heads) == 1 else ()
    return [
        Panel(name, matrix, inputs, outputs, way, number, **axes, part=part, chosen=chosen, layer=_layer(looks, name))
        for matrix, number in zip(heads, numbers, strict=True)
    ]


def _layer(looks: Looks, name: str) -> str:
    """Which layer looked, for the last one's map: those below it have theirs in their names.

    >>> _layer(Looks(maps={"x": np.eye(2), "x.layer-1": np.eye(2)}), "x")
    'layer 2, the last'
    """
    below = [other for other in looks.maps if other != name and LAYER.sub("", other) == name]
    return f"layer {len(below) + 1}, the last" if below else ""


def _rows(looks: Looks, name: str, steps: int, inputs: list[str]) -> list[str]:
    """Labels of the rows: the outputs; what an encoder asked from; the inputs where a sequence looks at itself."""
    if looks.onto_itself(name):
        return inputs
    if len(looks.rows.get(name, ())) == steps:
        return [_short(row, number) for number, row in enumerate(looks.rows[name], start=1)]
    if steps == len(looks.outputs):
        return looks.outputs
    if steps == len(inputs):
        return inputs
    raise UserError(f"map '{name}' has {steps} steps, but {len(looks.outputs)} output symbols are given for them")


def _short(text: str, number: int) -> str:
    """A sentence as a label: its number and how it begins."""
    return f"{number} {text}" if len(text) <= LABEL else f"{number} {text[:LABEL].rstrip()}…"


def mean_of(group: list[Panel]) -> Panel:
    """The heads of a map as one panel: their mean."""
    return replace(group[0], weights=np.mean([panel.weights for panel in group], axis=0), head=None)


def top_of_scale(panels: list[Panel], *, scale: str = "auto") -> float:
    """The weight that gets the strongest colour on panels that share a scale: the heads of one map."""
    return round_top(max(float(panel.weights.max()) for panel in panels), scale=scale)
