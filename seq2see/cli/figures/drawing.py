"""What every figure is told, and where it ends up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seq2see.cli.options import add_json
from seq2see.cli.parser import Given, Parser
from seq2see.cli.saying import emit, say
from seq2see.errors import UserError, nearest

if TYPE_CHECKING:
    from seq2see.seeing.charts import Chart

FORMATS = (".png", ".svg", ".html", ".json")
THEMES = ("light", "dark")


def add_drawing(parser: Parser) -> None:
    parser.add_argument(
        "--out", metavar="FILE", type=Path, required=True, help="picture (.png, .svg), page (.html) or numbers (.json)"
    )
    parser.add_argument("--title", metavar="TEXT", help="the title of the picture")
    add_theme(parser)
    add_json(parser)


def add_theme(parser: Parser) -> None:
    parser.add_argument(
        "--theme", metavar="NAME", help="light or dark; not given: light, a page as the reader's system asks"
    )


def check_drawing(given: Given) -> None:
    """Whatever is wrong with where the picture goes is said before anything takes time."""
    suffix = given.out.suffix.lower()
    if suffix not in FORMATS:
        close = nearest(suffix, FORMATS)
        raise UserError(f"--out {given.out}: unknown suffix '{given.out.suffix}'{close}; allowed: {', '.join(FORMATS)}")
    if given.out.is_dir():
        raise UserError(f"--out {given.out}: a folder; a figure is a file")
    if given.theme is not None and given.theme not in THEMES:
        raise UserError(
            f"--theme: unknown theme '{given.theme}'{nearest(given.theme, THEMES)}; allowed: {', '.join(THEMES)}"
        )
    if suffix == ".json" and given.theme is not None:
        raise UserError("--theme: no meaning here: a .json file has no colours")


def finish(chart: Chart, given: Given) -> None:
    """Save the figure, and tell its numbers."""
    path = chart.save(given.out, theme=given.theme)
    if given.json:
        emit(chart.to_dict())
    else:
        print(chart.text(), end="")
    say(f"the figure: {path}")
