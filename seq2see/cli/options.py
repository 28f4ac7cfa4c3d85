"""Arguments and options that several commands share, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Recipe = Annotated[str, typer.Argument(metavar="RECIPE", help="A shipped recipe (seq2see tasks) or a YAML file.")]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A folder that train wrote; several joined by + are an ensemble.")
]
Input = Annotated[
    str, typer.Argument(metavar="INPUT", help="Several inputs: in the recipe's order, tabs between them.")
]
Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help="Inputs; a model of several inputs takes them in the recipe's order with tabs between them. "
        "Without INPUT and --file, lines of standard input.",
        show_default=False,
    ),
]
File = Annotated[
    Path | None, typer.Option("--file", metavar="TABLE|TXT", help="Inputs from a table, or one per line of a .txt.")
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B", help="Columns of the table in the recipe's order, inputs first."),
]
Data = Annotated[
    str, typer.Option("--data", metavar="TABLE", help="A table with inputs and outputs, or the name of a data set.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one key of the recipe; may be given several times."),
]
Beam = Annotated[int | None, typer.Option("--beam", metavar="K", help="Hypotheses kept by the search; 1: greedy.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, one object per line.")]


def parted(columns: str | None) -> list[str] | None:
    """'a,b' -> ['a', 'b']; None stays None."""
    return None if columns is None else [column.strip() for column in columns.split(",")]
