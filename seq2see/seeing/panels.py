"""Panels: matrices of weights with labels for rows and columns, selected from Looks."""

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

MAX_LABEL = 24
"""Characters of a sentence that labels a row or a column."""

MAX_SYMBOLS = 48
"""Symbols drawn of a longer sequence that attends to itself, unless its map is selected by name."""

ALL = "all"
"""Selects all maps."""

LAYER = re.compile(r"\.layer-\d+$")
"""Suffix of maps of layers below the last."""


@dataclass(frozen=True)
class Panel:
    """One matrix of weights (steps, places) with labels for its rows and columns.

    head: counted from 1; across, down: names of the two axes; part: whether an encoder looks at the same document;
    chosen: the place that a hard choice selected at each step; layer: the layer, if the map's name does not say it.
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
        """The name of the map, with the part and layer that looked if the name alone is ambiguous."""
        notes = ["decoder"] if self.part and not self.inner else []
        notes += [self.layer] if self.layer else []
        return f"{self.name} ({', '.join(notes)})" if notes else self.name

    @property
    def inner(self) -> bool:
        """Whether something other than the output looks: an encoder, or the decoder at its own outputs."""
        return self.down != "output"

    @property
    def steps(self) -> int:
        return len(self.outputs)

    @property
    def places(self) -> int:
        return len(self.inputs)


def panels_of(looks: Looks, *, map: str | None = None, direction: str = "auto") -> list[list[Panel]]:
    """The panels of the selected map, or of the maps that explain the output; one list of heads for each map.

    Self-attention maps and maps of lower layers are many and say less; they are drawn only when selected, by name or
    with `all`. If a model has nothing but self-attention, it is drawn, of long sequences only the beginning.
    """
    if not looks.maps:
        raise UserError(f"nothing to draw: {looks.reason or 'this model has no attention, so it looks at no place'}")
    if map is not None and map not in (*looks.maps, ALL):
        raise UserError(f"unknown map '{map}'{nearest(map, looks.maps)}; this model has: {', '.join(looks.maps)}")
    if direction not in ("auto", "ltr", "rtl"):
        raise UserError(f"unknown direction '{direction}'; allowed: auto, ltr, rtl")
    names = [looks.name, *(name for name in looks.maps if name != looks.name)]
    chosen = {None: [name for name in names if name not in hidden_maps(looks)], ALL: names}
    groups = [_panels_of_map(looks, name, direction) for name in chosen.get(map, [map or ""])]
    return groups if map is not None else [_truncated(looks, group) for group in groups]


def hidden_maps(looks: Looks) -> list[str]:
    """The maps that are drawn only when selected."""
    own = [name for name in looks.maps if looks.onto_itself(name)]
    hidden = own if len(own) < len(looks.maps) else []
    return [name for name in looks.maps if name in hidden or LAYER.sub("", name) in looks.maps.keys() - {name}]


def truncated_length(looks: Looks) -> int:
    """The length of the sequence that is drawn only in part unless a map is selected; 0 if all is drawn."""
    drawn = [name for name in looks.maps if name not in hidden_maps(looks) and looks.onto_itself(name)]
    longest = max((len(looks.inputs[name]) for name in drawn), default=0)
    return longest if longest > MAX_SYMBOLS else 0


def _truncated(looks: Looks, group: list[Panel]) -> list[Panel]:
    """The heads of a map; for long self-attention only the first symbols, which the axis labels then say."""
    panel = group[0]
    if not looks.onto_itself(panel.name) or panel.places <= MAX_SYMBOLS:
        return group
    extent = f", the first {MAX_SYMBOLS} of {panel.places:,}"
    return [
        replace(
            head,
            weights=head.weights[:MAX_SYMBOLS, :MAX_SYMBOLS],
            inputs=head.inputs[:MAX_SYMBOLS],
            outputs=head.outputs[:MAX_SYMBOLS],
            across=f"{head.across}{extent}",
            down=f"{head.down}{extent}",
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
    reading: Direction = direction_of(inputs) if direction == "auto" else "rtl" if direction == "rtl" else "ltr"
    outputs = _row_labels(looks, name, steps, inputs)
    heads: list[NDArray[np.float64]] = list(weights) if weights.ndim == 3 else [weights]
    numbers = [None] if len(heads) == 1 else range(1, len(heads) + 1)
    inputs, outputs = as_words(inputs), as_words(outputs)
    if looks.layouts.get(name, {}).get("kind") == "sentences":
        inputs = [_short(sentence, number) for number, sentence in enumerate(inputs, start=1)]
        outputs = inputs if looks.onto_itself(name) else outputs
    if looks.layouts.get(name, {}).get("kind") == "frames":
        inputs = [
            second.replace(" ", "") for second in inputs
        ]  # spaces would be made visible, but these are not symbols
    axes = {"across": "looked at", "down": "looking"} if name in looks.rows else {}
    layout = looks.layouts.get(name, {})
    part = layout.get("kind") == "sentences" or "parts" in layout
    chosen = tuple(looks.chosen.get(name, ())) if len(heads) == 1 else ()
    return [
        Panel(
            name, matrix, inputs, outputs, reading, number, **axes, part=part, chosen=chosen, layer=_layer(looks, name)
        )
        for matrix, number in zip(heads, numbers, strict=True)
    ]


def _layer(looks: Looks, name: str) -> str:
    """The layer of a map whose name does not say it: the last one, if there are lower ones.

    >>> _layer(Looks(maps={"x": np.eye(2), "x.layer-1": np.eye(2)}), "x")
    'layer 2, the last'
    """
    below = [other for other in looks.maps if other != name and LAYER.sub("", other) == name]
    return f"layer {len(below) + 1}, the last" if below else ""


def _row_labels(looks: Looks, name: str, steps: int, inputs: list[str]) -> list[str]:
    """Labels of the rows: the outputs, the queries of an encoder, or the inputs in self-attention."""
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
    """A sentence as a label: its number and its beginning."""
    return f"{number} {text}" if len(text) <= MAX_LABEL else f"{number} {text[:MAX_LABEL].rstrip()}…"


def mean_panel(group: list[Panel]) -> Panel:
    """The mean of the heads of a map."""
    return replace(group[0], weights=np.mean([panel.weights for panel in group], axis=0), head=None)


def top_of_scale(panels: list[Panel], *, scale: str = "auto") -> float:
    """The weight with the strongest colour, on panels that share a scale (the heads of one map)."""
    return round_top(max(float(panel.weights.max()) for panel in panels), scale=scale)
