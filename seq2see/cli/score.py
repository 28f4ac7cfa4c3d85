"""`seq2see score`: The log-probability and perplexity a model gives to the outputs in a table."""

from __future__ import annotations

from contextlib import closing

from seq2see.cli.inputs import reading
from seq2see.cli.parser import Given, Parser, add_data, add_json, add_model
from seq2see.cli.terminal import emit
from seq2see.errors import UserError, counted
from seq2see.progress import Meter

EXAMPLES = ("seq2see score runs/translation --data pairs.tsv --each",)


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_data(parser)
    parser.add_argument("--each", action="store_true", help="one line per row instead of one for all")
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.data.locate import locate

    model = reading(given.model, given.on_error)
    if given.each and model.recipe.data.stream:
        raise UserError("--each: no meaning here: the model reads one contiguous text, which has no rows")
    table, dev = locate(given.data)
    rows = model.rows_of(dev or table, given.columns)
    with closing(Meter()) as meter:
        found = model.score(rows, progress=meter)
    if given.each:
        for row, scored in zip(rows, found.each, strict=True):
            if given.json:
                emit(scored.to_dict(row))
            else:
                tokens = zip(scored.symbols, scored.log_probs, strict=True)
                print(f"{scored.log_probability:.4f}\t" + " ".join(f"{symbol} {value:.3f}" for symbol, value in tokens))
    elif given.json:
        emit(found.to_dict())
    else:
        print(
            f"{counted(found.rows, 'row')}  {counted(found.tokens, 'token')}  "
            f"log-probability {found.log_probability:,.4f}  perplexity {found.perplexity:.4f}"
            + (f"  (given {found.given})" if found.given else "")
        )
