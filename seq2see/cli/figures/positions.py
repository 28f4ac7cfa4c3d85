"""`seq2see figure positions`: How much of each part of the input is found again in the output.

Of one model or of several on the same rows; for tasks that carry words over (copying, summarising, sequence
autoencoders). Each point has the 95 % interval of rows drawn anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, add_models, answers, check_drawing, finish
from seq2see.cli.parser import Given, Parser, whole
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
    parser.add_argument("--bins", metavar="N", type=whole, default=10, help="parts an input is divided into (10)")
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    if given.bins < 1:
        raise UserError(f"--bins must be 1 or more, got {given.bins}")
    from seq2see.evaluation import recall_by_position

    _, rows = answers(given, METRIC)
    parts = {name: recall_by_position(one, bins=given.bins, intervals=True) for name, one in rows.items()}
    finish(chart_of(parts, title=given.title), given)


def chart_of(parts: dict[str, list[PositionBin]], *, title: str | None = None) -> Chart:
    """Each model a line with a band, from the start of the inputs to their end."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    title = title or "What is found again, by where it stood"

    def draw(theme: str) -> Any:
        series = {name: _series(found) for name, found in parts.items()}
        return line_plot(
            series,
            xlabel="where a symbol stands in the input (% of its length)",
            ylabel="found in the output (%)",
            title=title,
            theme=theme,
            ylim=(0, None),
        )

    rows = [{"model": name} | part.to_dict() for name, found in parts.items() for part in found]
    return Chart("positions", title, {"metric": METRIC}, rows, draw)


def _series(found: list[PositionBin]) -> Any:
    middle = [50 * (part.start + part.end) for part in found]
    columns = [[100 * (getattr(part, name) or 0.0) for part in found] for name in ("recall", "low", "high")]
    return (middle, *columns)
