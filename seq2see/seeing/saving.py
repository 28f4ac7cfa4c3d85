"""One door for all formats: the suffix of the path chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2see.errors import UserError, nearest
from seq2see.looks import Looks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".html", ".json")
DPI = 160
MOST_PIXELS = 8000  # on a side; larger sheets are drawn with fewer dots to the inch


def save(
    looks: Looks,
    path: str | Path,
    *,
    map: str | None = None,
    title: str | None = None,
    theme: str | None = None,
    direction: str = "auto",
    scale: str = "auto",
) -> Path:
    """Write looks to .png, .svg, .html or .json, and give the path back; folders on the way are made.

    map: the map to draw; all: every one, stacked; None: those, stacked, that tell how the output came about, without
        those of a sequence on itself.
    theme: light or dark; None: light, and for .html whichever the reader's system asks for.
    direction: the way columns run; auto: as the input's script does.
    scale: of each map its own; auto: the strongest colour is 1, or the next round number above the largest weight where
        none passes a half; full: always 1, to compare pictures.
    A .json holds the numbers and the symbols; of the options only `map` bears on it.
    """
    path, suffix = checked(path, FORMATS)
    options: dict[str, Any] = {"map": map, "title": title, "direction": direction, "scale": scale}
    if suffix == ".json":
        write(path, json.dumps(_only(looks, map).to_dict(), ensure_ascii=False) + "\n")
    elif suffix == ".html":
        from seq2see.seeing.page import page

        write(path, page(looks, theme=theme, **options))
    else:
        from seq2see.seeing.picture import picture

        save_figure(picture(looks, theme=theme or "light", spell=suffix == ".png", **options), path)
    return path


def plot(looks: Looks, *, theme: str = "light", **options: Any) -> Figure:
    """The picture of `save` as a matplotlib figure."""
    from seq2see.seeing.picture import picture

    return picture(looks, theme=theme, **options)


def _only(looks: Looks, name: str | None) -> Looks:
    """Looks with one map; without a name all of them, and where there is none the record that says why."""
    if name is None:
        return looks
    from seq2see.seeing.panels import ALL, panels_of

    if name == ALL:
        return looks
    panels_of(looks, map=name)
    return replace(looks, maps={name: looks.maps[name]}, default=name)


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure to .png or .svg.

    SVG keeps text as text: it can be searched, copied and read aloud, and the machine that shows it shapes it with its
    own fonts, which know more scripts than the machine that draws, often a server, may have.
    """
    path, suffix = checked(path, (".png", ".svg"))
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _render(figure, path, suffix)
    return path


def svg_of(figure: Figure) -> bytes:
    """A figure as the text of an SVG file, to be put inside a page."""
    file = BytesIO()
    _render(figure, file, ".svg")
    return file.getvalue()


def _render(figure: Figure, target: Path | BytesIO, suffix: str) -> None:
    from seq2see.seeing.fonts import BASE, drawing, letter

    letter(figure, report=suffix != ".svg")  # an SVG's glyphs are the reader's
    dpi = min(DPI, MOST_PIXELS / max(figure.get_size_inches()))
    metadata: dict[str, str | None] = {"Date": None} if suffix == ".svg" else {"Software": "seq2see"}
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "seq2see", "font.sans-serif": [BASE]}
    with drawing(settings):
        figure.savefig(
            target, dpi=dpi, format=suffix.removeprefix("."), facecolor=figure.get_facecolor(), metadata=metadata
        )


def checked(path: str | Path, formats: tuple[str, ...]) -> tuple[Path, str]:
    """A path and its suffix, if that is one of these."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in formats:
        allowed = ", ".join(formats)
        close = nearest(suffix, formats)
        raise UserError(f"cannot write '{path}': unknown suffix '{path.suffix}'{close}; allowed: {allowed}")
    return path, suffix


@contextmanager
def _user_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error.strerror or error}") from error


def write(path: Path, text: str) -> None:
    """Text to a file; folders on the way are made."""
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
