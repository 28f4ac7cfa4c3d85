"""`seq2see get`: Build a small trained model from generated data.

The first time, its data are generated and the model is trained, which takes up to a few minutes; after that it is
copied from the cache ($SEQ2SEE_CACHE, or seq2see in the user's cache folder).
"""

from __future__ import annotations

import shlex

from seq2see.cli.parser import Arguments, Parser, program, say
from seq2see.errors import UserError

EXAMPLES = ("seq2see get dates", "seq2see get german --out german.seq2see", "seq2see get dates --rebuild")


def arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="a name that `seq2see models` lists")
    parser.add_argument(
        "--out", metavar="DIR", help="folder for the model, or a packed file *.seq2see (default: models/NAME)"
    )
    parser.add_argument("--rebuild", action="store_true", help="build it again even if it is in the cache")


def run(args: Arguments) -> None:
    from seq2see.zoo.building import cached, example, find, get, measured

    entry = find(args.name)
    if args.out == "":
        raise UserError("--out is empty; give a folder, or omit it for models/NAME")
    if args.rebuild or cached(args.name) is None:
        known = measured().get(args.name)
        about = "" if known is None else f", about {known.seconds:.0f} s of one core"
        say(f"building {args.name}: sample {entry.sample}, recipe {entry.recipe}, {entry.updates:,} updates{about}")
    path = get(args.name, args.out, rebuild=args.rebuild)
    print(path)
    record = cached(args.name)
    if record is not None:
        say(record.summary)
    words = example(entry, str(path))
    if path.is_dir() or words == list(entry.example):  # a packed model has no files to try
        say(f"try: {program()} predict {path} {shlex.join(words)}")
    if path.is_dir():
        say(f"{path}/README.md describes it, {path}/examples.tsv has rows to try")
