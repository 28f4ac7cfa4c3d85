"""`seq2see page`: Write a model as one HTML page that runs in a browser, offline.

The page contains the model: type an input, and it shows the output with probabilities, where the model looked, and
other outputs of the beam; attention can be edited. For models that read texts and give a text or a label, up to 10 MB.
Needs the extra `onnx`. Examples come from the dev rows unless --example gives others.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Arguments, Parser, add_model, quiet_libraries, say
from seq2see.errors import UserError

EXAMPLES = (
    'seq2see page models/dates --out dates.html --title Dates --about "a date as people write it -> ISO 8601"',
    'seq2see page runs/names --out names.html --title "Names in Devanagari" --example india --example nepal',
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument("--out", metavar="FILE", required=True, help="the page to write, *.html")
    parser.add_argument("--title", metavar="TEXT", help="title of the page (default: the model's name)")
    parser.add_argument(
        "--about", metavar="TEXT", help="what the model does, in one line (default: the recipe's description)"
    )
    parser.add_argument(
        "--example",
        metavar="INPUT",
        action="append",
        help="input to show, the first one at once; may be repeated; separate several inputs with tabs (default: "
        "examples from the dev rows, if the model has any)",
    )
    parser.add_argument(
        "--float32", action="store_true", help="store weights as they are: twice the size (default: rounded to float16)"
    )


def run(args: Arguments) -> None:
    if not args.out.endswith((".html", ".htm")):
        raise UserError(f"--out {args.out}: expected a file *.html")
    if "+" in args.model and not Path(args.model).exists():
        raise UserError(f"{args.model}: page takes a single model, not an ensemble")
    from seq2see.export.page import write_page

    out = Path(args.out)
    with quiet_libraries():
        notes = write_page(
            args.model, out, title=args.title, about=args.about, examples=args.example, float32=args.float32
        )
    for note in notes:
        say(note)
    print(out)
