"""`seq2see figure code-size`: Error of autoencoders by code size, compared with PCA.

The recipe is trained with every size (and every --vary, as in `seq2see compare`). Finished runs are kept: the same
command continues where it stopped. Errors are measured on the development data.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, check_drawing, finish
from seq2see.cli.parser import Arguments, Parser, add_columns, add_overrides, comma_separated, integer
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart
    from seq2see.training.code_sizes import CodeSize

EXAMPLES = (
    "seq2see figure code-size autoencoder --data train.tsv --dev dev.tsv --sizes 2,8,32 --updates 1000 --out sizes.png",
    "seq2see figure code-size autoencoder --data train.tsv --sizes 2,8 --vary encoder.hidden=[],[64] --out sizes.json",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name listed by `seq2see tasks`, or YAML file")
    parser.add_argument(
        "--data", metavar="TABLE", required=True, help="training data: a table, or the name of a data set"
    )
    parser.add_argument("--dev", metavar="TABLE", help="development data (default: rows held out from --data)")
    add_columns(parser)
    add_overrides(parser)
    parser.add_argument(
        "--sizes", metavar="A,B", type=comma_separated, required=True, help="code sizes, for example 2,8,32"
    )
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        action="append",
        default=[],
        help="draw a line for each value; may be repeated",
    )
    parser.add_argument("--updates", metavar="N", type=integer, help="in every run: stop after N updates")
    parser.add_argument("--seeds", metavar="K", type=integer, default=1, help="seeds for each run (default: 1)")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="folder of the runs (default: runs/compare-TASK)")
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    sizes = [_size(size) for size in args.sizes]
    if len(set(sizes)) < len(sizes):
        raise UserError(f"--sizes: duplicate size in {', '.join(args.sizes)}")
    for name in ("updates", "seeds"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be above 0, got {value}")
    from seq2see.data.tables import locate
    from seq2see.training.code_sizes import code_sizes

    table, dev = locate(args.data)
    points = code_sizes(
        args.recipe,
        table,
        sizes=sorted(sizes),
        vary=args.vary,
        dev=dev if args.dev is None else locate(args.dev)[0],
        columns=args.columns,
        overrides=args.changes,
        updates=args.updates,
        seeds=args.seeds,
        out=args.runs,
    )
    finish(chart_of(points, title=args.title), args)


def _size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise UserError(f"--sizes: positive integers expected, got '{text}'")
    return int(text)


def chart_of(points: list[CodeSize], *, title: str | None = None) -> Chart:
    """One line for each variant and one for PCA, over a logarithmic axis."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    title = title or "Reconstruction error by code size"
    sizes = sorted({point.size for point in points})

    def draw(theme: str) -> Any:
        names = dict.fromkeys(point.model for point in points)
        series = {name: _series([point for point in points if point.model == name]) for name in names}
        labels: dict[str, Any] = {"xlabel": "code size", "ylabel": "mean squared error", "ylim": (0, None)}
        return line_plot(series, title=title, theme=theme, doubling=sizes, **labels)

    return Chart("code-size", title, {"sizes": sizes}, [dict(vars(point)) for point in points], draw)


def _series(points: list[CodeSize]) -> Any:
    sizes, errors = [point.size for point in points], [point.error for point in points]
    if any(point.low is None for point in points):
        return sizes, errors
    return sizes, errors, [point.low for point in points], [point.high for point in points]
