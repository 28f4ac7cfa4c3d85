"""`seq2see score`: how likely a model holds given outputs."""

from __future__ import annotations

from typing import Annotated

import typer

from seq2see.cli import options as o
from seq2see.cli.saying import emit
from seq2see.errors import UserError


def score(
    model: o.Model,
    data: o.Data,
    columns: o.Columns = None,
    each: Annotated[bool, typer.Option("--each", help="One line per row instead of one for all.")] = False,
    as_json: o.Json = False,
) -> None:
    """Log-probability and perplexity of the outputs in a table."""
    from seq2see.api import load
    from seq2see.data.locate import locate

    made = load(model)
    if len(made.bundles) > 1:
        raise UserError(f"{model}: score takes one model, got {len(made.bundles)} joined by +")
    if each and made.recipe.data.stream:
        raise UserError("--each: no meaning here: the model reads one contiguous text, which has no rows")
    table, beside = locate(data)
    found = made.score(beside or table, columns=o.parted(columns))
    if each:
        for row in found.each:
            parts = [
                {"text": symbol, "log_probability": value}
                for symbol, value in zip(row.symbols, row.log_probs, strict=True)
            ]
            if as_json:
                emit({"log_probability": row.log_probability, "tokens": parts})
            else:
                print(f"{row.log_probability:.4f}\t{' '.join(row.symbols)}")
    elif as_json:
        emit(found.to_dict())
    else:
        print(
            f"{found.rows:,} rows, {found.tokens:,} tokens  log-probability {found.log_probability:,.4f}  "
            f"perplexity {found.perplexity:.4f}"
        )
