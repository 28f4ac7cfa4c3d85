"""`seq2see nearest`: Find the training rows nearest to an input, or to one step of its output.

Rows are compared by the encoder's vector of the input, or with --step by the decoder's state at that step, and ranked
by cosine similarity. --data builds the index of training rows, once; it is stored with the rows in the model's folder,
and is not part of packed or published models.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from seq2see.cli.inputs import load_single_model, parse_input
from seq2see.cli.parser import (
    Arguments,
    Parser,
    add_beam,
    add_columns,
    add_input,
    add_json,
    add_model,
    integer,
    print_json,
    say,
)
from seq2see.errors import UserError
from seq2see.progress import Meter

if TYPE_CHECKING:
    from seq2see.api import Model

EXAMPLES = (
    "seq2see nearest runs/transliteration --data dakshina-hi",
    "seq2see nearest runs/transliteration india",
    "seq2see nearest runs/transliteration india --step 2 --neighbours 10",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    add_input(parser)
    parser.add_argument("--data", metavar="TABLE", help="table the model was trained on: index its rows first")
    add_columns(parser)
    parser.add_argument(
        "--rows", metavar="N", type=integer, help="index at most N rows, an even sample (default: 50,000); with --data"
    )
    parser.add_argument(
        "--step", metavar="T", type=integer, help="compare the decoder's state at this step, counted from 0"
    )
    parser.add_argument("--target", metavar="TEXT", help="follow this output instead of the model's own; with --step")
    parser.add_argument(
        "--neighbours", metavar="K", type=integer, default=5, help="print the K nearest rows (default: 5)"
    )
    add_beam(parser)
    add_json(parser)


def run(args: Arguments) -> None:
    _check(args)
    model = load_single_model(args.model, "nearest")
    asks = args.input is not None or args.step is not None
    if model.recipe.inputs and asks and args.input is None:
        raise UserError("INPUT is missing")
    if not asks and args.data is None:
        missing = "INPUT is missing" if model.recipe.inputs else "--step is missing (a language model takes no INPUT)"
        raise UserError(f"{missing}; or give --data, to index the training rows")
    if not asks and model.bundle.folder is None:
        raise UserError(f"{args.model}: a packed model cannot keep an index; give INPUT too, or the model's folder")
    if args.data is not None:
        _index(model, args)
    if not asks:
        return
    row = parse_input(model, args.input) if model.recipe.inputs else {}
    near = model.nearest_rows(row, step=args.step, target=args.target, k=args.neighbours, beam=args.beam)
    for each in near:
        if args.json:
            print_json(each.to_dict())
            continue
        values = each.input if isinstance(each.input, str) else " | ".join((each.input or {}).values())
        where = [] if each.step is None else [f"step {each.step}: {each.symbol}"]
        print("\t".join([f"{each.cosine:.4f}", *([values] if values else []), each.output, *where]))


def _check(args: Arguments) -> None:
    """Refuse options that would have no effect, and numbers that cannot be."""
    from seq2see.pipeline.row_index import MOST_VECTORS

    for needed, options in {"data": ("columns", "rows"), "step": ("target", "beam")}.items():
        for option in options:
            if getattr(args, needed) is None and getattr(args, option) is not None:
                raise UserError(f"--{option} needs --{needed}")
    if args.target is not None and args.beam is not None:
        raise UserError("--beam cannot be used with --target: there is no search")
    if not 1 <= args.neighbours <= MOST_VECTORS:
        raise UserError(f"--neighbours must be from 1 to {MOST_VECTORS:,}, got {args.neighbours:,}")


def _index(model: Model, args: Arguments) -> None:
    """Index the rows of --data."""
    from seq2see.data.tables import locate

    table, _ = locate(args.data)
    with closing(Meter()) as meter:
        path = model.index_rows(table, columns=args.columns, rows=args.rows, progress=meter)
    index = model.bundle.row_index
    assert index is not None
    kept = f" in {path}" if path else "; a packed model cannot keep them"
    say(f"{len(index):,} rows with {len(index.steps):,} steps indexed{kept}")
