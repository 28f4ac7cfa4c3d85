"""`seq2see figure map`: Encoded inputs (the encoder's summaries) in two dimensions, with nearest neighbours.

The axes are the first two principal components; neighbours are by cosine similarity of the whole vectors. As many
points as fit are named: the centre, the outliers, and some between.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, check_drawing, finish
from seq2see.cli.inputs import load_single_model
from seq2see.cli.parser import Arguments, Parser, add_columns, add_model, integer, say
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
MAX_GROUPS, OTHERS = 6, "others"


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument(
        "--file", metavar="TABLE", type=Path, required=True, help="inputs: a table, or lines of a .txt file"
    )
    add_columns(parser)
    parser.add_argument(
        "--neighbours", metavar="K", type=integer, default=1, help="draw lines to the K nearest neighbours (default: 1)"
    )
    parser.add_argument("--by", metavar="COLUMN", help="column that colours the points (at most 6 values)")
    parser.add_argument(
        "--rows", metavar="N", type=integer, default=0, help="use the first N distinct inputs; 0 for all (default: 0)"
    )
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    for name in ("neighbours", "rows"):
        if getattr(args, name) < 0:
            raise UserError(f"--{name} must be 0 or more, got {getattr(args, name)}")
    model = load_single_model(args.model, "figure map")
    if not model.recipe.inputs:
        raise UserError("a language model has no input to encode")
    from seq2see.pipeline.vectors import vector_map

    items = _items(model, args)
    names = [" | ".join(item.inputs.values()) for item in items]
    if len(items) < 3:
        raise UserError(f"{args.file}: a map needs at least three distinct inputs, got {len(items)}")
    groups = None if args.by is None else merge_groups([str(item.row[args.by]) for item in items])
    vectors = vector_map(model.encode([dict(item.inputs) for item in items]), neighbours=args.neighbours)
    title = args.title or f"Inputs encoded by {Path(args.model).name}"
    finish(chart_of(vectors, names, groups=groups, title=title), args)


def _items(model: Model, args: Arguments) -> list[Item]:
    """The distinct inputs in the order of the table; duplicates would be their own neighbours."""
    from seq2see.cli.inputs import read_inputs

    table = read_inputs(model, None, args.file, args.columns)
    if args.by is not None and args.by not in table.columns:
        allowed = ", ".join(table.columns) or "none"
        raise UserError(
            f"--by: {args.file} has no column '{args.by}'{nearest(args.by, table.columns)}; it has: {allowed}"
        )
    items: dict[tuple[str, ...], Item] = {}
    duplicates = empty = 0
    for item in table.items:
        if any(not item.inputs[name].strip() for name in model.recipe.needed):
            empty += 1
            continue
        key = tuple(item.inputs.values())
        duplicates += key in items
        items.setdefault(key, item)
        if len(items) == args.rows:
            break
    if empty:
        say(f"{counted(empty, 'row')} with an empty input skipped")
    if duplicates:
        say(f"{counted(duplicates, 'row')} with a duplicate input skipped")
    return list(items.values())


def merge_groups(groups: list[str]) -> list[str]:
    """The groups, with the smallest merged if there are too many to draw.

    >>> merge_groups(["a", "b", "a"]), merge_groups(list("aabbccddeefg"))[-3:]
    (['a', 'b', 'a'], ['e', 'others', 'others'])
    """
    counts = Counter(groups)
    if len(counts) <= MAX_GROUPS:
        return groups
    named = {name for name, _ in counts.most_common(MAX_GROUPS - 1)}
    joined = ", ".join(name for name in counts if name not in named)
    say(f"--by: a map can show {MAX_GROUPS} groups; these are drawn as '{OTHERS}': {joined}")
    return [group if group in named else OTHERS for group in groups]


def chart_of(vectors: VectorMap, names: list[str], *, groups: list[str] | None, title: str) -> Chart:
    """Points, each with the names of its neighbours."""
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.maps import map_plot

    def draw(theme: str, width: float | None = None) -> Any:
        near = [[other for other, _ in others] for others in vectors.neighbours]
        options: dict[str, Any] = {"shares": vectors.shares, "neighbours": near, "groups": groups}
        return map_plot(vectors.points, names, title=title, theme=theme, width=width, **options)

    rows: list[dict[str, Any]] = []
    for number, (name, (x, y), near) in enumerate(zip(names, vectors.points.tolist(), vectors.neighbours, strict=True)):
        row = {"input": name, "x": x, "y": y}
        row |= {} if groups is None else {"group": groups[number]}
        rows.append(
            row | {"neighbours": [names[other] for other, _ in near], "cosines": [cosine for _, cosine in near]}
        )
    return Chart("map", title, {"variance": list(vectors.shares)}, rows, draw, draw_sized=draw)
