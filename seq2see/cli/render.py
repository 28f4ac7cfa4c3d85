"""`seq2see render`: Render lines of text, in any script, as images, from a text file and fonts."""

from __future__ import annotations

from pathlib import Path

from seq2see.cli.parser import Arguments, Parser, comma_separated, integer, number, say

EXAMPLES = (
    'seq2see render urdu.txt --fonts "Noto Nastaliq Urdu" --out lines --dev-share 0.05',
    "seq2see render names.txt --fonts DejaVuSans.ttf,DejaVuSerif.ttf --copies 3 --out lines",
)
DISTORTIONS = {
    "rotation": (1.0, "maximum rotation in degrees"),
    "shear": (5.0, "maximum slant in degrees"),
    "blur": (0.8, "maximum blur radius in pixels"),
    "noise": (6.0, "standard deviation of pixel noise (of 255)"),
    "ink": (0.5, "maximum change of stroke width in pixels at each edge, up to 1"),
    "paper": (0.2, "strength of dark, uneven paper and pale ink, up to 1"),
    "elastic": (0.3, "strength of elastic distortion, up to 1"),
}


def arguments(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", help="text file, UTF-8, one line per image")
    parser.add_argument(
        "--fonts", metavar="A,B", type=comma_separated, required=True, help="installed font families or font files"
    )
    parser.add_argument("--out", metavar="FOLDER", required=True, help="folder for images/, train.tsv and dev.tsv")
    parser.add_argument(
        "--max-characters",
        metavar="N",
        type=integer,
        default=40,
        help="split longer lines between words; 0 for never (default: 40)",
    )
    parser.add_argument("--copies", metavar="N", type=integer, default=1, help="images of each line (default: 1)")
    parser.add_argument("--size", metavar="PIXELS", type=integer, default=40, help="font size in pixels (default: 40)")
    parser.add_argument(
        "--dev-share", metavar="S", type=number, default=0.0, help="share of lines in dev.tsv (default: 0)"
    )
    parser.add_argument("--seed", metavar="N", type=integer, default=1, help="random seed (default: 1)")
    parser.add_argument("--overwrite", action="store_true", help="replace existing tables")
    for name, (default, about) in DISTORTIONS.items():
        parser.add_argument(
            f"--{name}", metavar="X", type=number, default=default, help=f"{about} (default: {default:g})"
        )


def run(args: Arguments) -> None:
    from seq2see.rendering import Distortions, Rendering, render

    distortions = Distortions(**{name: getattr(args, name) for name in DISTORTIONS})
    settings = Rendering(
        fonts=args.fonts,
        size=args.size,
        max_characters=args.max_characters,
        copies=args.copies,
        dev_share=args.dev_share,
        seed=args.seed,
        distortions=distortions,
    )
    out = Path(args.out)
    counts = render(Path(args.text), out, settings, say=say, overwrite=args.overwrite)
    if args.dev_share and not counts.dev:
        say(f"--dev-share {args.dev_share:g}: no line was selected for dev.tsv; use a larger share")
    for table, rows in (("train.tsv", counts.train), ("dev.tsv", counts.dev)):
        if rows:
            print(f"{out / table}\t{rows}")
