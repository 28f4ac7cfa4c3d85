"""`seq2see export`: Write a trained model for another engine, which runs it without torch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from seq2see.cli.inputs import load_single_model
from seq2see.cli.parser import Arguments, Parser, add_columns, add_model, quiet_libraries, say
from seq2see.errors import UserError

EXAMPLES = (
    "seq2see export runs/names --to onnx --out exported",
    "seq2see export runs/translation --to onnx --int8 --shortlist train.tsv --out exported",
    "seq2see export runs/translation-transformer --to ctranslate2 --out exported",
    "seq2see export runs/translation-transformer --to ctranslate2 --int8 --out exported-int8",
)

ENGINES = {"onnx": "seq2see.export.onnx", "ctranslate2": "seq2see.export.ctranslate2"}
"""The module of each engine, whose `export(bundle, out, *, int8)` writes a folder and returns notes for the user; that
of onnx also takes the pairs of a shortlist."""


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument(
        "--to",
        metavar="ENGINE",
        required=True,
        choices=ENGINES,
        help="onnx: graphs for seq2see-runtime, which needs only numpy and onnxruntime; ctranslate2: for CTranslate2 "
        "(Transformers from text to text only)",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="new folder for the exported model")
    parser.add_argument(
        "--int8",
        action="store_true",
        help="store the weights of matrix products as 8-bit integers: smaller and faster; scores change slightly",
    )
    parser.add_argument(
        "--shortlist",
        metavar="TABLE",
        help="onnx: training table from which to learn which output words go with which input words; the runtime then "
        "considers only those: faster with a large vocabulary, but outputs may change slightly",
    )
    add_columns(parser)


def run(args: Arguments) -> None:
    if not args.out:
        raise UserError("--out is empty; give a folder")
    out = Path(args.out)
    if args.shortlist is not None and args.to != "onnx":
        raise UserError(f"--shortlist works with --to onnx only, got --to {args.to}")
    if args.shortlist is None and args.columns is not None:
        raise UserError("--columns: no table is read; they are those of --shortlist")
    model = load_single_model(args.model, "export")
    engine = import_module(ENGINES[args.to])
    more = {}
    if args.shortlist is not None:
        from seq2see.data.tables import locate
        from seq2see.export.shortlist import check_shortlist

        check_shortlist(model.bundle)
        more["pairs"] = model.rows_of(locate(args.shortlist)[0], args.columns)
    with quiet_libraries():
        notes = engine.export(model.bundle, out, int8=args.int8, **more)
    for note in notes:
        say(note)
    print(out)
