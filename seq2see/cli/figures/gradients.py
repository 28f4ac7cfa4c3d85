"""`seq2see figure gradients`: How far back the loss of the last output is felt, for the plain cell, GRU and LSTM.

A recipe is trained with each cell, with and without clipping, from the same seed. Above: the norm of the gradient of
the last output's loss at each symbol that was read, by its steps back from the end, before and after training. Below:
the norm of the whole gradient at each update, and what clipping leaves of it. A recipe that reads from left to right
without attention (--set attention=none --set encoder.bidirectional=false) shows nothing but the way through time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, check_drawing, finish
from seq2see.cli.parser import Given, Parser, add_changes, add_columns, whole
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart
    from seq2see.training.gradients import Course

EXAMPLES = (
    "seq2see figure gradients transliteration --data names.csv --set attention=none --updates 200 --out gradients.png",
)
NAMES = {"rnn": "plain cell", "gru": "GRU", "lstm": "LSTM"}


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a name that `seq2see tasks` lists, or a YAML file")
    parser.add_argument("--data", metavar="TABLE", required=True, help="rows to learn from, or the name of a data set")
    parser.add_argument("--dev", metavar="TABLE", help="rows whose gradients are taken; not given: some are set aside")
    add_columns(parser)
    add_changes(parser)
    parser.add_argument("--updates", metavar="N", type=whole, default=100, help="updates of each of the six runs (100)")
    parser.add_argument("--rows", metavar="N", type=whole, default=64, help="the N longest rows are asked (64)")
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    for name in ("updates", "rows"):
        if getattr(given, name) < 1:
            raise UserError(f"--{name} must be 1 or more, got {getattr(given, name)}")
    from seq2see.data.locate import locate
    from seq2see.training.gradients import gradient_courses

    table, beside = locate(given.data)
    courses = gradient_courses(
        given.recipe,
        table,
        dev=beside if given.dev is None else locate(given.dev)[0],
        columns=given.columns,
        overrides=given.changes,
        updates=given.updates,
        rows=given.rows,
    )
    finish(chart_of(courses, title=given.title), given)


def chart_of(courses: list[Course], *, title: str | None = None) -> Chart:
    """Two strips of a plot for each cell."""
    from seq2see.seeing.charts import Chart

    title = title or "How far back the last output is felt"
    rows: list[dict[str, Any]] = []
    for course in courses:
        what: dict[str, Any] = {"cell": course.cell, "clip": course.clip}
        for update, found in course.through.items():
            rows += [
                {**what, "update": update, "back": n, "norm": one, "rows": of} for n, (one, of) in enumerate(found)
            ]
        both = zip(course.norms, course.seen, strict=True)
        rows += [{**what, "update": n, "norm": norm, "seen": seen} for n, (norm, seen) in enumerate(both, start=1)]
    return Chart("gradients", title, {}, rows, lambda theme: _drawn(courses, title, theme))


def _drawn(courses: list[Course], title: str, theme: str) -> Any:
    from seq2see.seeing.plots import PlotRow, small_multiples

    through: dict[str, dict[str, Any]] = {}
    norms: dict[str, dict[str, Any]] = {}
    for course in courses:
        head, last = NAMES[course.cell], max(course.through)
        how = "clipped" if course.clip else "not clipped"
        before = through.setdefault(head, {"before training": _curve(course.through[0])})
        before[f"after {last} updates, {how}"] = _curve(course.through[last])
        updates = list(range(1, len(course.norms) + 1))
        lines = norms.setdefault(head, {})
        if course.clip:
            lines["what the optimiser sees, clipped"] = (updates, course.seen)
        else:
            lines["the same, not clipped"] = (updates, course.norms)
    clip = max(course.clip for course in courses)
    above = PlotRow(through, "symbols back from the end of the input", "|gradient of the last loss|", log=True)
    below = PlotRow(norms, "update", "|gradient|", log=True, line=clip, line_label=f"clip {clip:g}")
    return small_multiples([above, below], title=title, theme=theme)


def _curve(found: list[tuple[float, int]]) -> Any:
    return list(range(len(found))), [norm for norm, _ in found]
