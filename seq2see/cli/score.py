"""`seq2see score`: The log-probability and perplexity a model gives to the outputs in a table."""

from __future__ import annotations

from seq2see.cli.options import add_data, add_json, add_model
from seq2see.cli.parser import Given, Parser
from seq2see.cli.saying import emit
from seq2see.errors import UserError

EXAMPLES = ("seq2see score runs/translation --data pairs.tsv --each",)


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_data(parser)
    parser.add_argument("--each", action="store_true", help="one line per row instead of one for all")
    add_json(parser)


def run(given: Given) -> None:
    from seq2see.api import load
    from seq2see.data.locate import locate

    model = load(given.model)
    if given.each and model.recipe.data.stream:
        raise UserError("--each: no meaning here: the model reads one contiguous text, which has no rows")
    table, dev = locate(given.data)
    found = model.score(dev or table, columns=given.columns)
    if given.each:
        for row in found.each:
            tokens = zip(row.symbols, row.log_probs, strict=True)
            if given.json:
                parts = [{"text": symbol, "log_probability": value} for symbol, value in tokens]
                emit({"log_probability": row.log_probability, "tokens": parts})
            else:
                print(f"{row.log_probability:.4f}\t" + " ".join(f"{symbol} {value:.3f}" for symbol, value in tokens))
    elif given.json:
        emit(found.to_dict())
    else:
        print(
            f"{found.rows:,} rows  {found.tokens:,} tokens  log-probability {found.log_probability:,.4f}  "
            f"perplexity {found.perplexity:.4f}"
        )
