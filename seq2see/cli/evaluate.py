"""`seq2see evaluate`: metrics on a table, the trivial models beside them."""

from __future__ import annotations

from typing import Annotated

import typer

from seq2see.cli import options as o
from seq2see.cli.saying import emit
from seq2see.errors import UserError

BINS = 5


def evaluate(
    model: o.Model,
    data: o.Data,
    columns: o.Columns = None,
    beam: o.Beam = None,
    n_best: Annotated[
        int | None, typer.Option("--n-best", metavar="N", help="Hypotheses looked at by metrics such as exact@N.")
    ] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="Also by the length of the input.")] = False,
    positions: Annotated[
        bool, typer.Option("--positions", help="Also: how much of which part of the input is found in the output.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="A,B", help="Metrics by name.", show_default="the recipe's")
    ] = None,
    as_json: o.Json = False,
) -> None:
    """Measure a model on a table with known outputs.

    Rows with equal inputs are references of each other.
    """
    from seq2see.api import load
    from seq2see.data.locate import locate

    made = load(model)
    if beam is not None or n_best is not None:
        _check_searches(made.recipe.output.kind, bool(made.recipe.inputs))
    table, beside = locate(data)
    report = made.evaluate(
        beside or table,
        columns=o.parted(columns),
        beam=beam,
        n_best=n_best,
        by_length=BINS if by_length else 0,
        positions=positions,
        metrics=o.parted(metrics),
    )
    if as_json:
        emit(report.to_dict())
    else:
        print(report.text(), end="")


def _check_searches(output: str, inputs: bool) -> None:
    if output == "label":
        raise UserError("--beam, --n-best: no meaning here: a label is not searched for")
    if not inputs:
        raise UserError("--beam, --n-best: no meaning here: a language model is measured by its perplexity")
