"""`seq2see figure pca`: An autoencoder beside principal components of the same code size.

Errors on the rows of --data with their 95 % intervals, some rows as each gives them back, and for a linear autoencoder
the angles between what it can write and the principal subspace: all 0 where it has found that.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.cli.figures.common import add_drawing, check_drawing, finish
from seq2see.cli.inputs import one_model
from seq2see.cli.parser import Given, Parser, add_data, add_model, whole
from seq2see.cli.terminal import say
from seq2see.errors import UserError

if TYPE_CHECKING:
    from seq2see.pipeline.pca import BesidePca
    from seq2see.seeing.charts import Chart

EXAMPLES = (
    "seq2see figure pca runs/autoencoder --data test.tsv --train train.tsv --shape 8x8 --out pca.png",
    "seq2see figure pca runs/autoencoder --data test.tsv --out pca.json",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_data(parser)
    parser.add_argument(
        "--train", metavar="TABLE", help="rows whose components are taken; not given: those the model learned from"
    )
    parser.add_argument("--shape", metavar="HxW", type=_shape, help="draw rows of numbers as pictures, in grey")
    parser.add_argument("--examples", metavar="N", type=whole, help="rows that are drawn (10 pictures, 4 lines)")
    add_drawing(parser)


def _shape(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if found is None:
        raise UserError(f"--shape: height x width expected, as in 8x8, got '{text}'")
    return int(found[1]), int(found[2])


def run(given: Given) -> None:
    check_drawing(given)
    if given.examples is not None and given.examples < 1:
        raise UserError(f"--examples must be 1 or more, got {given.examples}")
    model = one_model(given.model, "figure pca", on_error=given.on_error)
    from seq2see.data.locate import locate
    from seq2see.pipeline.pca import beside_pca, check_autoencoder

    check_autoencoder(model.recipe)
    table, dev = locate(given.data)
    rows = model.rows_of(dev or table, given.columns)
    learned = _learned(given)
    if learned is None:
        say("the rows the model learned from are not known: components are taken of --data itself (--train says which)")
    found = beside_pca(model.bundle, rows if learned is None else model.rows_of(learned, given.columns), rows)
    shape = given.shape or found.shape
    if given.shape is not None and given.shape[0] * given.shape[1] != found.given.shape[1]:
        raise UserError(f"--shape {given.shape[0]}x{given.shape[1]}: a row has {found.given.shape[1]:,} numbers")
    number = given.examples or (10 if shape else 4)
    title = given.title or f"{Path(given.model).name} beside PCA, codes of {found.size} numbers"
    finish(chart_of(found, shape=shape, examples=min(number, len(rows)), title=title), given)


def _learned(given: Given) -> str | Path | None:
    """The table whose components are taken, where one is given or known."""
    from seq2see.data.locate import locate
    from seq2see.training.run import SOURCES, known_sources

    if given.train is not None:
        return locate(given.train)[0]
    path = Path(given.model) / SOURCES
    found = known_sources(path).data if path.is_file() else None
    return found if found is not None and Path(found).exists() else None


def chart_of(found: BesidePca, *, shape: tuple[int, ...] | None, examples: int, title: str) -> Chart:
    """Errors, angles and some rows."""
    from seq2see.evaluation import mean_interval
    from seq2see.seeing import Column, Row
    from seq2see.seeing.charts import Chart
    from seq2see.seeing.plots import pca_comparison_plot

    errors = {name: mean_interval(each.tolist()) for name, each in found.errors().items()}
    marks = [Row(name, one.value, one.low, one.high, strong=name == "autoencoder") for name, one in errors.items()]
    few = slice(examples)
    drawn = {"given": [*found.given[few]], "autoencoder": [*found.made[few]], "PCA": [*found.principal[few]]}

    def draw(theme: str) -> Any:
        column = Column("mean squared error, 95 % interval over rows", marks, from_zero=True)
        return pca_comparison_plot(column, drawn, angles=found.angles, shape=shape, title=title, theme=theme)

    about: dict[str, Any] = {"size": found.size, "measured": len(found.given), "angles": list(found.angles)}
    about |= {"no_angles": found.why_not} if found.why_not else {}
    rows = [{"model": name, "mse": one.value, "low": one.low, "high": one.high} for name, one in errors.items()]
    return Chart("pca", title, about, rows, draw)
