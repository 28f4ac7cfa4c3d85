"""`seq2see figure gradients`: Gradients through time, for the plain RNN cell, GRU and LSTM.

A recipe is trained with each cell, with and without clipping, from the same seed. Top: the norm of the gradient of
the last output's loss at each input symbol, by its distance from the end, before and after training. Bottom: the
norm of the whole gradient at each update, and after clipping. To see the path through time alone, use a
unidirectional recipe without attention (--set attention=none --set encoder.bidirectional=false).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, check_drawing, finish
from seq2see.cli.parser import Arguments, Parser, add_columns, add_overrides, integer
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart
    from seq2see.training.gradients import GradientRun

EXAMPLES = (
    "seq2see figure gradients transliteration --data names.csv --set attention=none --updates 200 --out gradients.png",
)
NAMES = {"rnn": "plain cell", "gru": "GRU", "lstm": "LSTM"}


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name listed by `seq2see tasks`, or YAML file")
    parser.add_argument(
        "--data", metavar="TABLE", required=True, help="training data: a table, or the name of a data set"
    )
    parser.add_argument(
        "--dev", metavar="TABLE", help="rows whose gradients are measured (default: rows held out from --data)"
    )
    add_columns(parser)
    add_overrides(parser)
    parser.add_argument("--updates", metavar="N", type=integer, default=100, help="updates of each run (default: 100)")
    parser.add_argument(
        "--rows", metavar="N", type=integer, default=64, help="measure the N longest rows (default: 64)"
    )
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    for name in ("updates", "rows"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be 1 or more, got {getattr(args, name)}")
    from seq2see.data.tables import locate
    from seq2see.training.gradients import gradient_runs

    table, dev = locate(args.data)
    courses = gradient_runs(
        args.recipe,
        table,
        dev=dev if args.dev is None else locate(args.dev)[0],
        columns=args.columns,
        overrides=args.changes,
        updates=args.updates,
        rows=args.rows,
    )
    finish(chart_of(courses, title=args.title), args)


def chart_of(courses: list[GradientRun], *, title: str | None = None) -> Chart:
    """Two rows with a plot for each cell."""
    from seq2see.seeing.charts import Chart

    title = title or "Gradients through time"
    rows: list[dict[str, Any]] = []
    for course in courses:
        what: dict[str, Any] = {"cell": course.cell, "clip": course.clip}
        for update, norms_by_step in course.through.items():
            rows += [
                {**what, "update": update, "back": n, "norm": norm, "rows": number}
                for n, (norm, number) in enumerate(norms_by_step)
            ]
        both = zip(course.norms, course.seen, strict=True)
        rows += [{**what, "update": n, "norm": norm, "seen": seen} for n, (norm, seen) in enumerate(both, start=1)]
    return Chart("gradients", title, {}, rows, lambda theme: _draw(courses, title, theme))


def _draw(courses: list[GradientRun], title: str, theme: str) -> Any:
    from seq2see.seeing.plots import PlotRow, small_multiples

    through: dict[str, dict[str, Any]] = {}
    norms: dict[str, dict[str, Any]] = {}
    for course in courses:
        head, last = NAMES.get(course.cell, course.cell), max(course.through)
        how = "clipped" if course.clip else "not clipped"
        before = through.setdefault(head, {"before training": _curve(course.through[0])})
        before[f"after {last} updates, {how}"] = _curve(course.through[last])
        updates = list(range(1, len(course.norms) + 1))
        lines = norms.setdefault(head, {})
        if course.clip:
            lines["after clipping"] = (updates, course.seen)
        else:
            lines["without clipping"] = (updates, course.norms)
    clip = max(course.clip for course in courses)
    above = PlotRow(through, "symbols back from the end of the input", "|gradient of the last loss|", log=True)
    below = PlotRow(norms, "update", "|gradient|", log=True, line=clip, line_label=f"clip {clip:g}")
    return small_multiples([above, below], title=title, theme=theme)


def _curve(points: list[tuple[float, int]]) -> Any:
    return list(range(len(points))), [norm for norm, _ in points]
