"""`seq2see figure positions`: How much of each part of the input recurs in the output.

For one or several models on the same rows, in tasks that carry words over (copying, summarisation, sequence
autoencoders). Each point has a 95 % bootstrap interval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, add_models, answers, check_drawing, finish
from seq2see.cli.parser import Arguments, Parser, integer
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.evaluation import PositionBin
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see figure positions attention=runs/copy none=runs/copy-none --data test.tsv --out positions.png",
    "seq2see figure positions runs/summarisation --data test.tsv --bins 20 --out positions.html",
)
METRIC = "recall"


def arguments(parser: Parser) -> None:
    add_models(parser)
    parser.add_argument(
        "--bins", metavar="N", type=integer, default=10, help="number of parts of the input (default: 10)"
    )
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    if args.bins < 1:
        raise UserError(f"--bins must be 1 or more, got {args.bins}")
    from seq2see.evaluation import recall_by_position

    _, rows = answers(args, METRIC)
    parts = {name: recall_by_position(outputs, bins=args.bins, intervals=True) for name, outputs in rows.items()}
    finish(chart_of(parts, title=args.title), args)


def chart_of(parts: dict[str, list[PositionBin]], *, title: str | None = None) -> Chart:
    """One line with a band for each model, from the start of the inputs to their end."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    title = title or "Recall by position in the input"

    def draw(theme: str) -> Any:
        series = {name: _series(bins) for name, bins in parts.items()}
        return line_plot(
            series,
            xlabel="position in the input (% of its length)",
            ylabel="recall in the output (%)",
            title=title,
            theme=theme,
            ylim=(0, None),
        )

    rows = [{"model": name} | part.to_dict() for name, bins in parts.items() for part in bins]
    return Chart("positions", title, {"metric": METRIC}, rows, draw)


def _series(bins: list[PositionBin]) -> Any:
    middle = [50 * (part.start + part.end) for part in bins]
    columns = [[100 * (getattr(part, name) or 0.0) for part in bins] for name in ("recall", "low", "high")]
    return (middle, *columns)
