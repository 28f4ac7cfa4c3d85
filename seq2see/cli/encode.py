"""`seq2see encode`: Inputs as vectors (the encoder's summaries), or which of them are nearest to each other."""

from __future__ import annotations

from typing import Any

from seq2see.cli.inputs import chunked, one_model, source
from seq2see.cli.parser import Given, Parser, add_inputs, add_json, add_model, whole
from seq2see.cli.terminal import emit, say
from seq2see.errors import UserError

EXAMPLES = (
    'seq2see encode runs/translation "a dog runs" --json',
    "seq2see encode runs/translation --file sentences.txt --neighbours 3",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_inputs(parser)
    parser.add_argument(
        "--neighbours", metavar="K", type=whole, help="instead: the K nearest of the other inputs, by cosine"
    )
    add_json(parser)


def run(given: Given) -> None:
    model = one_model(given.model, "encode", on_error=given.on_error)
    if not model.recipe.inputs:
        raise UserError("a language model has no input to encode")
    from seq2see.pipeline.input_warnings import Notices
    from seq2see.pipeline.predictor import lacking

    items = source(model, given.inputs, given.file, given.columns).items
    notices = Notices(model.bundles)
    if given.neighbours is None:
        for chunk in chunked(items):
            rows = [dict(item.inputs) for item in chunk]
            for row, vector in zip(rows, model.encode(rows, notices=notices), strict=True):
                if given.json:
                    reason = lacking(model.recipe, row)
                    blank = {"vector": None, "reason": reason} if reason else {}
                    emit({"input": _shown(row), "vector": vector} | blank)
                else:
                    print("\t".join(f"{number:.6g}" for number in vector))
        for line in notices.lines():
            say(line)
        return
    rows = [dict(item.inputs) for item in items]
    for row, others in zip(rows, model.neighbours(rows, given.neighbours), strict=True):
        near: list[dict[str, Any]] = [{"input": _shown(rows[i]), "cosine": cosine} for i, cosine in others]
        if given.json:
            emit({"input": _shown(row), "neighbours": near})
        else:
            said = "\t".join(f"{_line(rows[i])} {cosine:.4f}" for i, cosine in others)
            print(f"{_line(row)}\t{said}")


def _shown(row: dict[str, str]) -> str | dict[str, str]:
    return next(iter(row.values())) if len(row) == 1 else row


def _line(row: dict[str, str]) -> str:
    return " | ".join(row.values())
