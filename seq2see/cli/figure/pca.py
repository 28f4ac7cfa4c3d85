"""`seq2see figure pca`: An autoencoder compared with PCA of the same code size.

Shows errors on --data with 95 % intervals, some reconstructed rows, and for a linear autoencoder the principal angles
between its output space and the principal subspace: all 0 if it has found that subspace.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figure import add_drawing, check_drawing, finish
from seq2see.cli.inputs import load_single_model
from seq2see.cli.parser import Arguments, Parser, add_data, add_model, integer, say
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.pipeline.vectors import PcaComparison
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see figure pca runs/autoencoder --data test.tsv --train train.tsv --shape 8x8 --out pca.png",
    "seq2see figure pca runs/autoencoder --data test.tsv --out pca.json",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_data(parser)
    parser.add_argument(
        "--train", metavar="TABLE", help="rows to compute the components from (default: the model's training data)"
    )
    parser.add_argument("--shape", metavar="HxW", type=_shape, help="draw rows of numbers as grey images of this shape")
    parser.add_argument(
        "--examples", metavar="N", type=integer, help="number of rows to draw (default: 10 images or 4 lines)"
    )
    add_drawing(parser)


def _shape(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if match is None:
        raise UserError(f"--shape: expected HEIGHTxWIDTH such as 8x8, got '{text}'")
    return int(match[1]), int(match[2])


def run(args: Arguments) -> None:
    check_drawing(args)
    if args.examples is not None and args.examples < 1:
        raise UserError(f"--examples must be 1 or more, got {args.examples}")
    model = load_single_model(args.model, "figure pca", on_error=args.on_error)
    from seq2see.data.tables import locate
    from seq2see.pipeline.vectors import check_autoencoder, compare_with_pca

    check_autoencoder(model.recipe)
    table, dev = locate(args.data)
    rows = model.rows_of(dev or table, args.columns)
    training = _training_table(args)
    if training is None:
        say("the training data of the model is unknown: components are computed from --data (or give --train)")
    comparison = compare_with_pca(
        model.bundle, rows if training is None else model.rows_of(training, args.columns), rows
    )
    shape = args.shape or comparison.shape
    if args.shape is not None and args.shape[0] * args.shape[1] != comparison.rows.shape[1]:
        raise UserError(f"--shape {args.shape[0]}x{args.shape[1]}: a row has {comparison.rows.shape[1]:,} numbers")
    number = args.examples or (10 if shape else 4)
    title = args.title or f"{Path(args.model).name} compared with PCA, code size {comparison.size}"
    finish(chart_of(comparison, shape=shape, examples=min(number, len(rows)), title=title), args)


def _training_table(args: Arguments) -> str | Path | None:
    """The table to compute components from, if one is given or known."""
    from seq2see.data.tables import locate
    from seq2see.training.checkpoints import SOURCES, read_sources

    if args.train is not None:
        return locate(args.train)[0]
    path = Path(args.model) / SOURCES
    known = read_sources(path).data if path.is_file() else None
    return known if known is not None and Path(known).exists() else None


def chart_of(comparison: PcaComparison, *, shape: tuple[int, ...] | None, examples: int, title: str) -> Chart:
    """Errors, angles and some rows."""
    from seq2see.evaluation import mean_interval
    from seq2see.seeing import Column, Row
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.plots import pca_comparison_plot

    errors = {name: mean_interval(each.tolist()) for name, each in comparison.errors().items()}
    marks = [
        Row(name, error.value, error.low, error.high, strong=name == "autoencoder") for name, error in errors.items()
    ]
    few = slice(examples)
    drawn = {
        "input": [*comparison.rows[few]],
        "autoencoder": [*comparison.reconstructed[few]],
        "PCA": [*comparison.principal[few]],
    }

    def draw(theme: str) -> Any:
        column = Column("mean squared error, 95 % interval over rows", marks, from_zero=True)
        return pca_comparison_plot(column, drawn, angles=comparison.angles, shape=shape, title=title, theme=theme)

    about: dict[str, Any] = {
        "size": comparison.size,
        "measured": len(comparison.rows),
        "angles": list(comparison.angles),
    }
    about |= {"no_angles": comparison.why_not} if comparison.why_not else {}
    rows = [{"model": name, "mse": error.value, "low": error.low, "high": error.high} for name, error in errors.items()]
    return Chart("pca", title, about, rows, draw)
