"""`seq2see faithful`: Test whether attention is faithful: its agreement with what the output depends on.

For each step of the outputs in the table, attention weights are ranked against (a) occlusion: how much log P(y_t)
drops when one symbol or sentence is removed, or one cell of an image, frame (or cell of a frame) of a video or
stretch of a sound is hidden, and (b) gradient: the norm of the gradient of log P(y_t) times e(x_j), summed over a
sentence if sentences are looked at; for a sound, e(x_j) are its frames, for a video the feature maps of its frames.
tau is Kendall's tau: 1 for the same order, 0 for chance. Each number is shown next to that of shuffled attention.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_theme, check_drawing
from seq2see.cli.inputs import load_single_model
from seq2see.cli.parser import Arguments, Parser, add_data, add_json, add_model, add_paper, integer, print_json, say
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
    parser.add_argument(
        "--rows", metavar="N", type=integer, default=200, help="use at most N distinct inputs; 0 for all (default: 200)"
    )
    parser.add_argument(
        "--places",
        metavar="N",
        type=integer,
        default=0,
        help="use at most N places of each input, drawn with a fixed seed; 0 for all (default: 0)",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="output file: image (.png, .svg, .pdf), page (.html) or data (.json)"
    )
    add_theme(parser)
    add_paper(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    if args.rows < 0:
        raise UserError(f"--rows must be 0 or more, got {args.rows}")
    if args.places < 0 or args.places == 1:
        raise UserError(f"--places must be 0 (all) or at least 2, got {args.places}: one place has no order")
    if args.out is not None:
        check_drawing(args)
    else:
        for option in ("theme", "width", "font_size"):
            if getattr(args, option) is not None:
                raise UserError(f"--{option.replace('_', '-')} needs --out")
    from seq2see.data.tables import locate

    model = load_single_model(args.model, "faithful", on_error=args.on_error)
    table, dev = locate(args.data)
    with closing(Meter()) as meter:
        faithfulness = model.faithful(
            dev or table, columns=args.columns, rows=args.rows, places=args.places, progress=meter
        )
    if args.json:
        print_json(faithfulness.to_dict())
    else:
        print(faithfulness.text(), end="")
    if args.out is not None:
        figure = chart(faithfulness, title=f"Is attention faithful? {Path(args.model).name}")
        say(f"figure saved to {figure.save(args.out, theme=args.theme, width=args.width, font_size=args.font_size)}")


def chart(faithfulness: Faithfulness, *, title: str) -> Chart:
    """Kendall's tau of attention and of shuffled attention, for each measure, on one axis."""
    from seq2see.seeing import Column, Row, interval_plot
    from seq2see.seeing.charts import Chart

    rows = []
    several = len({agreement.input for agreement in faithfulness.agreements}) > 1
    for agreement in faithfulness.agreements:
        name = f"{agreement.measure} ({agreement.input})" if several else agreement.measure
        rows.append(Row(name, agreement.tau.value, agreement.tau.low, agreement.tau.high, strong=True))
        chance = agreement.shuffled_tau
        rows.append(Row(f"{name}, shuffled", chance.value, chance.low, chance.high))
    label = (
        f"Kendall's tau with attention, 95 % interval over {faithfulness.rows:,} rows (0: chance, 1: the same order)"
    )

    def draw(theme: str) -> Any:
        return interval_plot([Column(label, rows, line=0.0, width=1.3)], title=title, theme=theme)

    records = [
        {
            "input": agreement.input,
            "measure": agreement.measure,
            **_flat("tau", agreement.tau),
            **_flat("shuffled", agreement.shuffled_tau),
        }
        for agreement in faithfulness.agreements
    ]
    about = {"rows_compared": faithfulness.rows, "steps": faithfulness.steps, "left_out": faithfulness.left_out}
    return Chart("faithful", title, about, records, draw)


def _flat(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}
