"""`seq2see figure lengths`: Quality against the length of the input, of one or more models on the same rows.

Rows are parted by the length of their inputs, into parts of about equally many; each point has the 95 % interval of
rows drawn anew. Where there are several models the numbers tell how far each is ahead of the first, and how sure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, add_models, answers, check_drawing, finish
from seq2see.cli.parser import Given, Parser, listed, whole
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
    parser.add_argument("--metric", metavar="M", help="what is measured; not given: the first model's leading metric")
    parser.add_argument("--bins", metavar="N", type=whole, help="parts of about equally many rows (6)")
    parser.add_argument(
        "--edges", metavar="A,B", type=listed, help="instead: the first length of each part but the first (10,20,30)"
    )
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    if given.bins is not None and given.edges is not None:
        raise UserError("--bins and --edges: give one of them")
    if given.bins is not None and given.bins < 1:
        raise UserError(f"--bins must be 1 or more, got {given.bins}")
    edges = None if given.edges is None else [_length(edge) for edge in given.edges]
    from seq2see.evaluation.by_length import length_curves

    metric, rows = answers(given, given.metric)
    points = length_curves(metric, rows, bins=given.bins or 6, edges=edges)
    unit = next(iter(rows.values())).input_unit or "word"
    finish(chart_of(points, metric=metric, unit=unit, title=given.title), given)


def _length(edge: str) -> int:
    if not edge.isdecimal() or int(edge) < 1:
        raise UserError(f"--edges: lengths are whole numbers from 1 on, got '{edge}'")
    return int(edge)


def chart_of(points: list[LengthPoint], *, metric: str, unit: str, title: str | None = None) -> Chart:
    """Each model a line with a band."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    names = list(dict.fromkeys(point.model for point in points))
    title = title or f"{metric} by the length of the input"
    noun = "words" if unit in ("word", "bpe") else f"{unit}s"

    def draw(theme: str) -> Any:
        series = {name: _series([point for point in points if point.model == name]) for name in names}
        return line_plot(series, xlabel=f"{noun} in the input", ylabel=metric, title=title, theme=theme)

    return Chart("lengths", title, {"metric": metric, "unit": noun}, [point.to_dict() for point in points], draw)


def _series(points: list[LengthPoint]) -> Any:
    across, up = [point.mean_length for point in points], [point.value for point in points]
    low, high = [point.low for point in points], [point.high for point in points]
    return (across, up) if None in low else (across, up, low, high)
