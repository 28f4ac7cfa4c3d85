"""`seq2see faithful`: Does the attention tell the truth? Its agreement with what the output really depends on.

For each step of the outputs in the table, the weights of attention are ranked beside (a) occlusion: how much log P(y_t)
falls when one input symbol or sentence is left out, or one cell of a picture, frame of a video (or cell of one) or
stretch of a sound is hidden, and (b) gradient: the norm of the gradient of log P(y_t) times e(x_j), added up over a
sentence where sentences are looked at; of a sound, e(x_j) are its frames, of a video the maps of its frames.
tau is Kendall's: 1 the same order, 0 no more alike than chance. Beside each number stands that of shuffled attention.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_theme, check_drawing
from seq2see.cli.inputs import one_model
from seq2see.cli.parser import Given, Parser, add_data, add_json, add_model, whole
from seq2see.cli.terminal import emit, say
from seq2see.errors import UserError
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.evaluation.bootstrap import Interval
    from seq2see.evaluation.faithfulness import Faithfulness
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see faithful runs/transliteration --data dakshina-hi --rows 200 --out faithful.png",
    "seq2see faithful runs/translation --data test.tsv --json",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_data(parser)
    parser.add_argument("--rows", metavar="N", type=whole, default=200, help="at most N distinct inputs; 0: all (200)")
    parser.add_argument(
        "--places",
        metavar="N",
        type=whole,
        default=0,
        help="at most N places of each input, drawn at random, always the same; 0: all (0)",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="picture (.png, .svg), page (.html) or numbers (.json)"
    )
    add_theme(parser)
    add_json(parser)


def run(given: Given) -> None:
    if given.rows < 0:
        raise UserError(f"--rows must be 0 or more, got {given.rows}")
    if given.places < 0 or given.places == 1:
        raise UserError(f"--places: {given.places} places have no order; allowed: 2 or more, or 0 for all")
    if given.out is not None:
        check_drawing(given)
    elif given.theme is not None:
        raise UserError("--theme: no meaning without --out")
    from seq2see.data.locate import locate

    model = one_model(given.model, "faithful", on_error=given.on_error)
    table, dev = locate(given.data)
    with closing(Meter()) as meter:
        found = model.faithful(
            dev or table, columns=given.columns, rows=given.rows, places=given.places, progress=meter
        )
    if given.json:
        emit(found.to_dict())
    else:
        print(found.text(), end="")
    if given.out is not None:
        made = chart(found, title=f"Does attention tell the truth? {Path(given.model).name}")
        say(f"the picture: {made.save(given.out, theme=given.theme)}")


def chart(found: Faithfulness, *, title: str) -> Chart:
    """tau of attention and of shuffled attention, for each measure, on one axis."""
    from seq2see.seeing import Column, Row, interval_plot
    from seq2see.seeing.charts import Chart

    rows = []
    several = len({one.input for one in found.agreements}) > 1
    for one in found.agreements:
        name = f"{one.measure} ({one.input})" if several else one.measure
        rows.append(Row(name, one.tau.value, one.tau.low, one.tau.high, strong=True))
        chance = one.shuffled_tau
        rows.append(Row(f"{name}, shuffled", chance.value, chance.low, chance.high))
    label = f"Kendall's tau with attention, 95 % interval over {found.rows:,} rows (0: chance, 1: the same order)"

    def draw(theme: str) -> Any:
        return interval_plot([Column(label, rows, line=0.0, width=1.3)], title=title, theme=theme)

    told = [
        {"input": one.input, "measure": one.measure, **_flat("tau", one.tau), **_flat("shuffled", one.shuffled_tau)}
        for one in found.agreements
    ]
    about = {"rows_compared": found.rows, "steps": found.steps, "left_out": found.left_out}
    return Chart("faithful", title, about, told, draw)


def _flat(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
