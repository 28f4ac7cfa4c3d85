"""`seq2see score`: Compute the log-probability and perplexity that a model gives to the outputs in a table."""

from __future__ import annotations

from contextlib import closing

from seq2see.cli.inputs import load_model
from seq2see.cli.parser import Arguments, Parser, add_data, add_json, add_model, print_json
from seq2see.errors import UserError, counted
from seq2see.progress import Meter

EXAMPLES = ("seq2see score runs/translation --data pairs.tsv --each",)


def arguments(parser: Parser) -> None:
    add_model(parser)
    add_data(parser)
    parser.add_argument("--each", action="store_true", help="print one line per row instead of the total")
    add_json(parser)


def run(args: Arguments) -> None:
    from seq2see.data.tables import locate

    model = load_model(args.model, args.on_error)
    if args.each and model.recipe.data.stream:
        raise UserError("--each: the model reads one contiguous text, which has no rows")
    table, dev = locate(args.data)
    rows = model.rows_of(dev or table, args.columns)
    with closing(Meter()) as meter:
        scores = model.score(rows, progress=meter)
    if args.each:
        for row, scored in zip(rows, scores.each, strict=True):
            if args.json:
                print_json(scored.to_dict(row))
            else:
                tokens = zip(scored.symbols, scored.log_probs, strict=True)
                print(f"{scored.log_probability:.4f}\t" + " ".join(f"{symbol} {value:.3f}" for symbol, value in tokens))
    elif args.json:
        print_json(scores.to_dict())
    else:
        print(
            f"{counted(scores.rows, 'row')}  {counted(scores.tokens, 'token')}  "
            f"log-probability {scores.log_probability:,.4f}  perplexity {scores.perplexity:.4f}"
            + (f"  (given {scores.given})" if scores.given else "")
        )
