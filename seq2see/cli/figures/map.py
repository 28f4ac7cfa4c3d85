"""`seq2see figure map`: Inputs' vectors (the encoder's summaries) in two dimensions, with their nearest neighbours.

The axes are the first two principal components; neighbours go by the cosine of the whole vectors. Names stand at as
many points as fit: the middle, the outliers, and what lies between.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, check_drawing, finish
from seq2see.cli.inputs import one_model
from seq2see.cli.parser import Given, Parser, add_columns, add_model, whole
from seq2see.cli.terminal import say
from seq2see.errors import UserError, counted, nearest

if TYPE_CHECKING:
    from seq2see.api import Model
    from seq2see.cli.inputs import Item
    from seq2see.pipeline.vectors import VectorMap
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see figure map runs/translation --file sentences.txt --neighbours 1 --out map.png",
    "seq2see figure map runs/document-classification --file test.tsv --by label --rows 500 --out map.html",
)
MOST_GROUPS, OTHERS = 6, "others"
"""Colours and marks that can be told apart, and what the groups beyond them are called."""


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument(
        "--file", metavar="TABLE", type=Path, required=True, help="inputs: columns of a table, or lines of a .txt"
    )
    add_columns(parser)
    parser.add_argument("--neighbours", metavar="K", type=whole, default=1, help="lines to the K nearest others (1)")
    parser.add_argument(
        "--by", metavar="COLUMN", help="a column of the table that colours the points (6 values at most)"
    )
    parser.add_argument("--rows", metavar="N", type=whole, default=0, help="the first N different inputs; 0: all (0)")
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    for name in ("neighbours", "rows"):
        if getattr(given, name) < 0:
            raise UserError(f"--{name} must be 0 or more, got {getattr(given, name)}")
    model = one_model(given.model, "figure map")
    if not model.recipe.inputs:
        raise UserError("a language model has no input to encode")
    from seq2see.pipeline.vectors import map_of

    items = _items(model, given)
    names = [" | ".join(item.inputs.values()) for item in items]
    if len(items) < 3:
        raise UserError(f"{given.file}: a map needs three different inputs or more, got {len(items)}")
    groups = None if given.by is None else fewer([str(item.row[given.by]) for item in items])
    found = map_of(model.encode([dict(item.inputs) for item in items]), neighbours=given.neighbours)
    title = given.title or f"What {Path(given.model).name} makes of inputs"
    finish(chart_of(found, names, groups=groups, title=title), given)


def _items(model: Model, given: Given) -> list[Item]:
    """The different inputs in the order of the table: what stands there twice would be its own neighbour."""
    from seq2see.cli.inputs import source

    read = source(model, None, given.file, given.columns)
    if given.by is not None and given.by not in read.columns:
        allowed = ", ".join(read.columns) or "none, as it has no columns"
        raise UserError(
            f"--by: {given.file} has no column '{given.by}'{nearest(given.by, read.columns)}; it has: {allowed}"
        )
    found: dict[tuple[str, ...], Item] = {}
    again = empty = 0
    for item in read.items:
        if any(not item.inputs[name].strip() for name in model.recipe.needed):
            empty += 1
            continue
        key = tuple(item.inputs.values())
        again += key in found
        found.setdefault(key, item)
        if len(found) == given.rows:
            break
    if empty:
        say(f"{counted(empty, 'row')} with an empty input left out")
    if again:
        say(f"{counted(again, 'row')} with an input that was there before left out")
    return list(found.values())


def fewer(groups: list[str]) -> list[str]:
    """As many groups as a figure can tell apart; those of fewest inputs become one.

    >>> fewer(["a", "b", "a"]), fewer(list("aabbccddeefg"))[-3:]
    (['a', 'b', 'a'], ['e', 'others', 'others'])
    """
    often = Counter(groups)
    if len(often) <= MOST_GROUPS:
        return groups
    named = {name for name, _ in often.most_common(MOST_GROUPS - 1)}
    joined = ", ".join(name for name in often if name not in named)
    say(f"--by: a map tells {MOST_GROUPS} groups apart, so these are drawn as '{OTHERS}': {joined}")
    return [group if group in named else OTHERS for group in groups]


def chart_of(found: VectorMap, names: list[str], *, groups: list[str] | None, title: str) -> Chart:
    """Points, and for each of them the neighbours in words."""
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.maps import map_plot

    def draw(theme: str) -> Any:
        near = [[other for other, _ in others] for others in found.neighbours]
        look: dict[str, Any] = {"shares": found.shares, "neighbours": near, "groups": groups}
        return map_plot(found.points, names, title=title, theme=theme, **look)

    rows: list[dict[str, Any]] = []
    for number, (name, (x, y), near) in enumerate(zip(names, found.points.tolist(), found.neighbours, strict=True)):
        row = {"input": name, "x": x, "y": y}
        row |= {} if groups is None else {"group": groups[number]}
        rows.append(
            row | {"neighbours": [names[other] for other, _ in near], "cosines": [cosine for _, cosine in near]}
        )
    return Chart("map", title, {"variance": list(found.shares)}, rows, draw)
