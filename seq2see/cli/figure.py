"""`seq2see figure`: Pictures of models and runs beyond a single input: .png, .svg, .html (offline) or .json.

`seq2see look` draws where a model looks, `seq2see faithful --out` whether that is true, `seq2see compare` variants.
"""

from __future__ import annotations

from seq2see.cli.parser import Given, Parser

EXAMPLES = (
    "seq2see figure lengths attention=runs/translation none=runs/translation-none --data test.tsv --out lengths.png",
    "seq2see figure map runs/translation --file sentences.txt --neighbours 1 --out map.html",
    "seq2see figure curve runs/a runs/b --measure dev.bleu --out curves.svg",
)
KINDS = {
    "lengths": "quality against the length of the input, of one or more models",
    "positions": "how much of each part of the input is found again in the output",
    "map": "inputs' vectors in two dimensions, with their nearest neighbours",
    "curve": "learning curves of runs",
    "gradients": "how far back the loss is felt, for three cells, with and without clipping",
    "pca": "an autoencoder beside principal components of the same code size",
    "code-size": "error of autoencoders against the size of their code, PCA beside them",
}
"""Kinds of figures, each with its own arguments: `seq2see figure KIND --help`."""


def arguments(parser: Parser) -> None:
    width = max(map(len, KINDS)) + 2
    listed = "\n".join(f"  {name:<{width}}{about}" for name, about in KINDS.items())
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help="which figure; KIND --help says what it takes")
    parser.add_argument("rest", metavar="...", nargs="*", help="what that figure takes")
    parser.description = f"{parser.description}\n\nKinds:\n{listed}"


def run(given: Given) -> None:
    raise AssertionError(f"'{given.kind}' is called by its own module")
