"""`seq2see pull`: Download a model from the Hugging Face Hub into a new folder.

Only the files of a model are kept, and the folder is created once the model has been loaded and checked.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Arguments, Parser, add_plugin

EXAMPLES = (
    "seq2see pull ada/hindi-names",
    "seq2see pull ada/hindi-names --out models/names --revision v1.0",
)


def arguments(parser: Parser) -> None:
    parser.add_argument("repo", metavar="REPO", help="repository on the Hub: OWNER/NAME")
    parser.add_argument("--out", metavar="DIR", type=Path, help="new folder for the model (default: models/NAME)")
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit (default: main)")
    add_plugin(parser)


def run(args: Arguments) -> None:
    from seq2see.hub import pull

    print(pull(args.repo, args.out, revision=args.revision))
