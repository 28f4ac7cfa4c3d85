"""`seq2see figure`: Draw figures of models and runs, as .png, .svg, .html (standalone) or .json.

See also `seq2see look` (where a model looks), `seq2see faithful --out` and `seq2see compare`.
"""

from __future__ import annotations

from seq2see.cli.parser import Arguments, Parser

EXAMPLES = (
    "seq2see figure lengths attention=runs/translation none=runs/translation-none --data test.tsv --out lengths.png",
    "seq2see figure map runs/translation --file sentences.txt --neighbours 1 --out map.html",
    "seq2see figure curve runs/a runs/b --measure dev.bleu --out curves.svg",
)
KINDS = {
    "lengths": "quality by input length, for one or more models",
    "positions": "how much of each part of the input recurs in the output",
    "map": "encoded inputs in two dimensions, with nearest neighbours",
    "curve": "learning curves of runs",
    "gradients": "gradients through time for three cells, with and without clipping",
    "pca": "an autoencoder compared with PCA of the same code size",
    "code-size": "error of autoencoders by code size, compared with PCA",
}
"""Kinds of figures, each with its own arguments: `seq2see figure KIND --help`."""


def arguments(parser: Parser) -> None:
    width = max(map(len, KINDS)) + 2
    lines = "\n".join(f"  {name:<{width}}{about}" for name, about in KINDS.items())
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help="the figure; KIND --help shows its options")
    parser.add_argument("rest", metavar="...", nargs="*", help="arguments of the figure")
    parser.description = f"{parser.description}\n\nKinds:\n{lines}"


def run(args: Arguments) -> None:
    raise AssertionError(f"'{args.kind}' is called by its own module")
