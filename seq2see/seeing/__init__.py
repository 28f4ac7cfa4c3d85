"""Figures of attention: heatmaps, shaded text, overlays on images, videos and sounds, as PNG, SVG, PDF, HTML and JSON.

The names below are loaded on first use, so that matplotlib is imported only to draw.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2see.seeing.figure import plot, save
    from seq2see.seeing.page import inline
    from seq2see.seeing.plots import Column, Row, interval_plot, learning_curve, line_plot, reconstruction_sheet

__all__ = [
    "Column",
    "Row",
    "inline",
    "interval_plot",
    "learning_curve",
    "line_plot",
    "plot",
    "reconstruction_sheet",
    "save",
]

_HOMES = {
    "Column": "plots",
    "Row": "plots",
    "inline": "page",
    "interval_plot": "plots",
    "learning_curve": "plots",
    "line_plot": "plots",
    "plot": "figure",
    "reconstruction_sheet": "plots",
    "save": "figure",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
