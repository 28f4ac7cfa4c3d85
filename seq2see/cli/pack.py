"""`seq2see pack`: Write a model as one file without checkpoints, which every command takes in place of its folder.

The file is an uncompressed zip archive: recipe, weights, vocabularies, baselines, training metrics, example texts and
checksums. It contains neither tables nor their paths.
"""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Arguments, Parser, add_model, say

EXAMPLES = (
    "seq2see pack runs/transliteration --out transliteration.seq2see",
    "seq2see pack runs/translation --out models/translation.seq2see",
)


def arguments(parser: Parser) -> None:
    add_model(parser, ensembles=False)
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="the file to write; a packed model there is replaced"
    )


def run(args: Arguments) -> None:
    from seq2see.api import pack

    path = pack(args.model, args.out)
    print(path)
    say(f"{path.stat().st_size / 1e6:,.1f} MB")
