"""Looks in a notebook: the page of `.html`, in a frame of its own."""

from __future__ import annotations

from html import escape

from seq2see.looks import Looks
from seq2see.seeing.page import page

HEIGHT = 460
"""Pixels of the frame; what is longer can be scrolled."""


def inline(looks: Looks, *, said: str = "") -> str:
    """HTML for `_repr_html_`: the page stands in a frame, so that neither its styles nor those of the notebook reach
    the other; where there is no map, why. said: what the model answered."""
    answer = f'<p dir="auto"><b>{escape(said)}</b></p>\n' if said else ""
    if not looks.maps:
        return f"{answer}<p>{escape(looks.reason or 'this model has no attention: there is nothing to look at')}</p>"
    held = escape(page(looks), quote=True)
    frame = f'style="width: 100%; height: {HEIGHT}px; border: 0; resize: vertical; overflow: auto"'
    return f'{answer}<iframe title="where the model looked" sandbox="allow-scripts" {frame} srcdoc="{held}"></iframe>'
