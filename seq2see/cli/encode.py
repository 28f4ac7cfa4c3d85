"""`seq2see encode`: Encode inputs as vectors (the encoder's summaries), or find nearest neighbours."""

from __future__ import annotations

from typing import Any

from seq2see.cli.inputs import chunked, load_single_model, read_inputs
from seq2see.cli.parser import Arguments, Parser, add_inputs, add_json, add_model, integer, print_json, say
from seq2see.errors import UserError

EXAMPLES = (
    'seq2see encode runs/translation "a dog runs" --json',
    "seq2see encode runs/translation --file sentences.txt --neighbours 3",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_inputs(parser)
    parser.add_argument(
        "--neighbours",
        metavar="K",
        type=integer,
        help="print the K nearest other inputs by cosine similarity instead of vectors",
    )
    add_json(parser)


def run(args: Arguments) -> None:
    model = load_single_model(args.model, "encode", on_error=args.on_error)
    if not model.recipe.inputs:
        raise UserError("a language model has no input to encode")
    from seq2see.pipeline.inputs import Notices
    from seq2see.pipeline.predictor import missing_input

    items = read_inputs(model, args.inputs, args.file, args.columns).items
    notices = Notices(model.bundles)
    if args.neighbours is None:
        for chunk in chunked(items):
            rows = [dict(item.inputs) for item in chunk]
            for row, vector in zip(rows, model.encode(rows, notices=notices), strict=True):
                if args.json:
                    reason = missing_input(model.recipe, row)
                    blank = {"vector": None, "reason": reason} if reason else {}
                    print_json({"input": _value(row), "vector": vector} | blank)
                else:
                    print("\t".join(f"{number:.6g}" for number in vector))
        for line in notices.lines():
            say(line)
        return
    rows = [dict(item.inputs) for item in items]
    for row, others in zip(rows, model.neighbours(rows, args.neighbours), strict=True):
        near: list[dict[str, Any]] = [{"input": _value(rows[i]), "cosine": cosine} for i, cosine in others]
        if args.json:
            print_json({"input": _value(row), "neighbours": near})
        else:
            nearest = "\t".join(f"{_line(rows[i])} {cosine:.4f}" for i, cosine in others)
            print(f"{_line(row)}\t{nearest}")


def _value(row: dict[str, str]) -> str | dict[str, str]:
    return next(iter(row.values())) if len(row) == 1 else row


def _line(row: dict[str, str]) -> str:
    return " | ".join(row.values())
