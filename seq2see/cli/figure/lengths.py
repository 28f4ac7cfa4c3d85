"""`seq2see figure lengths`: Quality by input length, for one or more models on the same rows.

Rows are divided by input length into bins of about equal size; each point has a 95 % bootstrap interval. With several
models the data also show how far each is ahead of the first, and how certain that is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, add_models, answers, check_drawing, finish
from seq2see.cli.parser import Arguments, Parser, comma_separated, integer
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.evaluation.by_length import LengthPoint
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see figure lengths attention=runs/translation none=runs/translation-none --data test.tsv --out lengths.png",
    "seq2see figure lengths runs/translation --data test.tsv --metric perplexity --edges 10,20,30 --out lengths.json",
)


def arguments(parser: Parser) -> None:
    add_models(parser)
    parser.add_argument("--metric", metavar="M", help="metric (default: the main metric of the first model)")
    parser.add_argument(
        "--bins", metavar="N", type=integer, help="number of bins with about equally many rows (default: 6)"
    )
    parser.add_argument(
        "--edges", metavar="A,B", type=comma_separated, help="bin edges instead of --bins, for example 10,20,30"
    )
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    if args.bins is not None and args.edges is not None:
        raise UserError("give either --bins or --edges, not both")
    if args.bins is not None and args.bins < 1:
        raise UserError(f"--bins must be 1 or more, got {args.bins}")
    edges = None if args.edges is None else [_length(edge) for edge in args.edges]
    from seq2see.evaluation.by_length import length_curves

    metric, rows = answers(args, args.metric)
    points = length_curves(metric, rows, bins=args.bins or 6, edges=edges)
    unit = next(iter(rows.values())).input_unit or "word"
    finish(chart_of(points, metric=metric, unit=unit, title=args.title), args)


def _length(edge: str) -> int:
    if not edge.isdecimal() or int(edge) < 1:
        raise UserError(f"--edges: positive integers expected, got '{edge}'")
    return int(edge)


def chart_of(points: list[LengthPoint], *, metric: str, unit: str, title: str | None = None) -> Chart:
    """One line with a band for each model."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    names = list(dict.fromkeys(point.model for point in points))
    title = title or f"{metric} by input length"
    noun = "words" if unit in ("word", "bpe") else f"{unit}s"

    def draw(theme: str) -> Any:
        series = {name: _series([point for point in points if point.model == name]) for name in names}
        return line_plot(series, xlabel=f"{noun} in the input", ylabel=metric, title=title, theme=theme)

    return Chart("lengths", title, {"metric": metric, "unit": noun}, [point.to_dict() for point in points], draw)


def _series(points: list[LengthPoint]) -> Any:
    x, y = [point.mean_length for point in points], [point.value for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    return (x, y) if None in low else (x, y, low, high)
