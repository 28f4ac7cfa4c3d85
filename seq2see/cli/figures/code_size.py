"""`seq2see figure code-size`: Error of autoencoders against the size of their code, PCA beside them.

The recipe is trained with every size (and every --vary, as `seq2see compare` takes it); finished runs are kept, so that
the same command goes on where it was stopped. Errors are those on the dev rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, check_drawing, finish
from seq2see.cli.parser import Given, Parser, add_changes, add_columns, listed, whole
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart
    from seq2see.training.code_sizes import CodeSize

EXAMPLES = (
    "seq2see figure code-size autoencoder --data train.tsv --dev dev.tsv --sizes 2,8,32 --updates 1000 --out sizes.png",
    "seq2see figure code-size autoencoder --data train.tsv --sizes 2,8 --vary encoder.hidden=[],[64] --out sizes.json",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="a name that `seq2see tasks` lists, or a YAML file")
    parser.add_argument("--data", metavar="TABLE", required=True, help="rows to learn from, or the name of a data set")
    parser.add_argument("--dev", metavar="TABLE", help="rows to measure on; not given: some rows are set aside")
    add_columns(parser)
    add_changes(parser)
    parser.add_argument("--sizes", metavar="A,B", type=listed, required=True, help="numbers in the code (2,8,32)")
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B",
        action="append",
        default=[],
        help="a line for each value; may be given again",
    )
    parser.add_argument("--updates", metavar="N", type=whole, help="every run: stop after N updates")
    parser.add_argument("--seeds", metavar="K", type=whole, default=1, help="train everything from K seeds (1)")
    parser.add_argument("--runs", metavar="DIR", type=Path, help="where runs are kept; not given: runs/compare-TASK")
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    sizes = [_size(one) for one in given.sizes]
    if len(set(sizes)) < len(sizes):
        raise UserError(f"--sizes: a size is given twice: {', '.join(given.sizes)}")
    for name in ("updates", "seeds"):
        value = getattr(given, name)
        if value is not None and value < 1:
            raise UserError(f"--{name} must be above 0, got {value}")
    from seq2see.data.locate import locate
    from seq2see.training.code_sizes import code_sizes

    table, beside = locate(given.data)
    found = code_sizes(
        given.recipe,
        table,
        sizes=sorted(sizes),
        vary=given.vary,
        dev=beside if given.dev is None else locate(given.dev)[0],
        columns=given.columns,
        overrides=given.changes,
        updates=given.updates,
        seeds=given.seeds,
        out=given.runs,
    )
    finish(chart_of(found, title=given.title), given)


def _size(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise UserError(f"--sizes: whole numbers from 1 on expected, got '{text}'")
    return int(text)


def chart_of(found: list[CodeSize], *, title: str | None = None) -> Chart:
    """A line for each variant, one for PCA, over sizes that double."""
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart

    title = title or "What a code can hold"
    sizes = sorted({one.size for one in found})

    def draw(theme: str) -> Any:
        names = dict.fromkeys(one.model for one in found)
        series = {name: _series([one for one in found if one.model == name]) for name in names}
        look: dict[str, Any] = {"xlabel": "numbers in the code", "ylabel": "mean squared error", "ylim": (0, None)}
        return line_plot(series, title=title, theme=theme, doubling=sizes, **look)

    return Chart("code-size", title, {"sizes": sizes}, [dict(vars(one)) for one in found], draw)


def _series(found: list[CodeSize]) -> Any:
    sizes, errors = [one.size for one in found], [one.error for one in found]
    if any(one.low is None for one in found):
        return sizes, errors
    return sizes, errors, [one.low for one in found], [one.high for one in found]
