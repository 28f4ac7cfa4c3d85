"""Lines of text made of texts and fonts, for those who have no pictures of lines, or too few."""

from __future__ import annotations

from seq2see.rendering.distortions import Distortions
from seq2see.rendering.lines import Rendered, Rendering, render

__all__ = ["Distortions", "Rendered", "Rendering", "render"]
