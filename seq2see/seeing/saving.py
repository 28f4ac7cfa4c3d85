"""Saves looks and figures; the suffix of the path chooses the format."""

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
MAX_PIXELS = 8000  # on a side; larger figures get a lower resolution


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
    """Write looks to .png, .svg, .html or .json and return the path; missing folders are created.

    map: the map to draw; all: every map; None: the maps that explain the output, without self-attention.
    theme: light or dark; None: light, and for .html the theme of the reader's system.
    direction: of the columns; auto: the direction of the input's script.
    scale: auto: the strongest colour is 1, or if no weight exceeds 0.5 the next round number above the largest; full:
    always 1, to compare figures.

    A .json file holds the weights and symbols; only `map` affects it.
    """
    path, suffix = check_suffix(path, FORMATS)
    options: dict[str, Any] = {"map": map, "title": title, "direction": direction, "scale": scale}
    if suffix == ".json":
        write_text(path, json.dumps(_select_map(looks, map).to_dict(), ensure_ascii=False) + "\n")
    elif suffix == ".html":
        from seq2see.seeing.page import page

        write_text(path, page(looks, theme=theme, **options))
    else:
        from seq2see.seeing.picture import picture

        save_figure(picture(looks, theme=theme or "light", spell=suffix == ".png", **options), path)
    return path


def plot(looks: Looks, *, theme: str = "light", **options: Any) -> Figure:
    """The figure of `save` as a matplotlib figure."""
    from seq2see.seeing.picture import picture

    return picture(looks, theme=theme, **options)


def _select_map(looks: Looks, name: str | None) -> Looks:
    """Looks with the selected map only."""
    if name is None:
        return looks
    from seq2see.seeing.panels import ALL, panels_of

    if name == ALL:
        return looks
    panels_of(looks, map=name)
    return replace(looks, maps={name: looks.maps[name]}, default=name)


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure to .png or .svg.

    SVG keeps text as text, which can be searched, copied and read aloud; the machine that shows it chooses the fonts
    and
    often has more scripts than a server.
    """
    path, suffix = check_suffix(path, (".png", ".svg"))
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _render(figure, path, suffix)
    return path


def to_svg(figure: Figure) -> bytes:
    """A figure as SVG, to be embedded in a page."""
    file = BytesIO()
    _render(figure, file, ".svg")
    return file.getvalue()


def _render(figure: Figure, target: Path | BytesIO, suffix: str) -> None:
    from seq2see.seeing.fonts import BASE, drawing, set_fonts

    set_fonts(figure, report=suffix != ".svg")  # the machine that shows an SVG chooses its fonts
    dpi = min(DPI, MAX_PIXELS / max(figure.get_size_inches()))
    metadata: dict[str, str | None] = {"Date": None} if suffix == ".svg" else {"Software": "seq2see"}
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "seq2see", "font.sans-serif": [BASE]}
    with drawing(settings):
        figure.savefig(
            target, dpi=dpi, format=suffix.removeprefix("."), facecolor=figure.get_facecolor(), metadata=metadata
        )


def check_suffix(path: str | Path, formats: tuple[str, ...]) -> tuple[Path, str]:
    """The path and its suffix, which must be one of these formats."""
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


def write_text(path: Path, text: str) -> None:
    """Write text to a file; missing folders are created."""
    with _user_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
