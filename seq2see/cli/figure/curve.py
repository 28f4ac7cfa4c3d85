"""`seq2see figure curve`: Learning curves: a measure over training, of one or several runs.

The numbers come from each run's metrics.jsonl, which may still be growing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seq2see.cli.figure import add_drawing, check_drawing, finish, named_paths
from seq2see.cli.parser import Arguments, Parser, add_plugin
from seq2see.errors import UserError, nearest

EXAMPLES = (
    "seq2see figure curve runs/translation --out curve.png",
    "seq2see figure curve additive=runs/a dot=runs/b --measure dev.bleu --against seconds --out curves.svg",
)
AXES = ("update", "epoch", "seconds")


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "runs", metavar="[NAME=]RUN", nargs="+", help="run folders, finished or in progress, each with an optional name"
    )
    parser.add_argument(
        "--measure",
        metavar="KEY",
        help="key of metrics.jsonl such as dev.bleu or loss (default: the metric that selects the best model)",
    )
    parser.add_argument(
        "--against", metavar="KEY", default="update", help=f"x axis: {', '.join(AXES)} (default: update)"
    )
    add_plugin(parser)
    add_drawing(parser)


def run(args: Arguments) -> None:
    check_drawing(args)
    if args.against not in AXES:
        close = nearest(args.against, AXES)
        raise UserError(f"--against: unknown axis '{args.against}'{close}; allowed: {', '.join(AXES)}")
    from seq2see.pipeline.packing import model_folder

    paths = named_paths(args.runs)
    folders = {name: model_folder(path) for name, path in paths.items()}
    for name, folder in folders.items():
        if not (folder / "metrics.jsonl").is_file():
            raise UserError(f"{name}: {paths[name]} is not a run folder: it has no metrics.jsonl")
    from seq2see.seeing import line_plot
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.plots import measure_label, read_curve

    measure = args.measure or f"dev.{_main_metric(next(iter(folders.values())))}"
    curves = {
        name: read_curve(folder / "metrics.jsonl", measure=measure, against=args.against)
        for name, folder in folders.items()
    }
    title = args.title or f"{measure_label(measure)} during training"

    def draw(theme: str) -> Any:
        return line_plot(
            curves, xlabel=_axis_label(args.against), ylabel=measure_label(measure), title=title, theme=theme
        )

    rows = [
        {"run": name, args.against: x, measure: y}
        for name, curve in curves.items()
        for x, y in zip(*curve, strict=True)
    ]
    finish(Chart("curve", title, {"measure": measure, "against": args.against}, rows, draw), args)


def _main_metric(folder: Path) -> str:
    """The metric that selects the best model of a run."""
    from seq2see.pipeline.bundle import saved_recipe
    from seq2see.pipeline.evaluator import report_metrics

    return report_metrics(saved_recipe(folder))[1]


def _axis_label(against: str) -> str:
    return {"update": "updates", "epoch": "epochs", "seconds": "seconds of training"}[against]
