"""Coloured shapes, drawn here: what pictures and films of samples are made of."""

from __future__ import annotations

from PIL import ImageDraw

COLOURS = {"red": (205, 30, 40), "green": (40, 185, 60), "blue": (40, 60, 215), "yellow": (245, 225, 50)}
"""As far apart in grey as in colour: some recipes read no more."""
SHAPES = ("square", "circle", "triangle")


def draw_shape(brush: ImageDraw.ImageDraw, shape: str, colour: str, *, left: float, top: float, side: float) -> None:
    """A shape that fills a square of that side."""
    if shape == "triangle":
        corners = [(left + side / 2, top), (left, top + side), (left + side, top + side)]
        brush.polygon(corners, fill=COLOURS[colour])
    else:
        outline = brush.rectangle if shape == "square" else brush.ellipse
        outline((left, top, left + side, top + side), fill=COLOURS[colour])
