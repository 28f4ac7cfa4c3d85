"""`seq2see render`: Pictures of lines of text, of any script, from a text file and fonts."""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Given, Parser, listed, number, whole
from seq2see.cli.terminal import say

EXAMPLES = (
    'seq2see render urdu.txt --fonts "Noto Nastaliq Urdu" --out lines --dev-share 0.05',
    "seq2see render names.txt --fonts DejaVuSans.ttf,DejaVuSerif.ttf --copies 3 --out lines",
)
DISTORTIONS = {
    "rotation": (1.0, "turned by up to so many degrees"),
    "shear": (5.0, "slanted by up to so many degrees"),
    "blur": (0.8, "smeared with a radius of up to so many pixels"),
    "noise": (6.0, "deviation of the noise on every pixel, of 255"),
    "ink": (0.5, "strokes thicker or thinner by up to so many pixels at each edge, at most 1"),
    "paper": (0.2, "how dark and uneven paper may be, and how pale ink, at most 1"),
    "elastic": (0.3, "how far letters wander, at most 1"),
}


def arguments(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", help="file of text, UTF-8, line by line")
    parser.add_argument("--fonts", metavar="A,B", type=listed, required=True, help="names of installed fonts, or files")
    parser.add_argument("--out", metavar="FOLDER", required=True, help="for images/, train.tsv and dev.tsv")
    parser.add_argument(
        "--max-characters", metavar="N", type=whole, default=40, help="longer lines are cut between words; 0: not (40)"
    )
    parser.add_argument("--copies", metavar="N", type=whole, default=1, help="pictures of each line (1)")
    parser.add_argument("--size", metavar="PIXELS", type=whole, default=40, help="of the font (40)")
    parser.add_argument("--dev-share", metavar="S", type=number, default=0.0, help="of the lines, for dev.tsv (0)")
    parser.add_argument("--seed", metavar="N", type=whole, default=1, help="same seed, same pictures (1)")
    parser.add_argument("--overwrite", action="store_true", help="begin anew where tables are there already")
    for name, (usual, about) in DISTORTIONS.items():
        parser.add_argument(f"--{name}", metavar="X", type=number, default=usual, help=f"{about}; 0: none ({usual:g})")


def run(given: Given) -> None:
    from seq2see.rendering import Distortions, Rendering, render

    distortions = Distortions(**{name: getattr(given, name) for name in DISTORTIONS})
    settings = Rendering(
        fonts=given.fonts,
        size=given.size,
        most=given.max_characters,
        copies=given.copies,
        share=given.dev_share,
        seed=given.seed,
        distortions=distortions,
    )
    out = Path(given.out)
    made = render(Path(given.text), out, settings, say=say, overwrite=given.overwrite)
    if given.dev_share and not made.dev:
        say(f"--dev-share {given.dev_share:g}: no line fell to dev.tsv, so there is none; allowed: a larger share")
    for table, rows in (("train.tsv", made.train), ("dev.tsv", made.dev)):
        if rows:
            print(f"{out / table}\t{rows}")
