"""`seq2see figure curve`: Learning curves: a measure over training, of one run or of several.

The numbers are those of each run's metrics.jsonl, which may still be growing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq2see.cli.figures.common import add_drawing, check_drawing, finish, named
from seq2see.cli.parser import Given, Parser
from seq2see.errors import UserError, nearest

EXAMPLES = (
    "seq2see figure curve runs/translation --out curve.png",
    "seq2see figure curve additive=runs/a dot=runs/b --measure dev.bleu --against seconds --out curves.svg",
)
AXES = ("update", "epoch", "seconds")


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "runs", metavar="[NAME=]RUN", nargs="+", help="folders that train wrote (or is writing), with what to call them"
    )
    parser.add_argument(
        "--measure", metavar="KEY", help="a number of metrics.jsonl: dev.bleu, loss; not given: what the run is led by"
    )
    parser.add_argument("--against", metavar="KEY", default="update", help=f"{', '.join(AXES)} (update)")
    add_drawing(parser)


def run(given: Given) -> None:
    check_drawing(given)
    if given.against not in AXES:
        close = nearest(given.against, AXES)
        raise UserError(f"--against: unknown '{given.against}'{close}; allowed: {', '.join(AXES)}")
    folders = {name: Path(folder) for name, folder in named(given.runs).items()}
    for name, folder in folders.items():
        if not (folder / "metrics.jsonl").is_file():
            raise UserError(f"{name}: {folder} is no run's folder: it has no metrics.jsonl")
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.plots import measure_label, read_curve

    measure = given.measure or f"dev.{_leading(next(iter(folders.values())))}"
    curves = {
        name: read_curve(folder / "metrics.jsonl", measure=measure, against=given.against)
        for name, folder in folders.items()
    }
    title = given.title or f"{measure_label(measure)} while learning"

    def draw(theme: str) -> Any:
        return line_plot(curves, xlabel=_said(given.against), ylabel=measure_label(measure), title=title, theme=theme)

    rows = [
        {"run": name, given.against: across, measure: up}
        for name, curve in curves.items()
        for across, up in zip(*curve, strict=True)
    ]
    finish(Chart("curve", title, {"measure": measure, "against": given.against}, rows, draw), given)


def _leading(folder: Path) -> str:
    """The metric that picks the best model of a run."""
    from seq2see.pipeline.measures import followed
    from seq2see.recipe import load_recipe

    return followed(load_recipe(folder / "recipe.yaml", complete=True))[1]


def _said(against: str) -> str:
    return {"update": "updates", "epoch": "epochs", "seconds": "seconds of training"}[against]
