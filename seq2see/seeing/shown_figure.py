"""A matplotlib figure that a notebook shows as it is, without `%matplotlib` and without pyplot."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from matplotlib.figure import Figure

from seq2see.seeing.labels import drawing, set_fonts

DPI = 110
"""Of a figure in a notebook: its labels have the size of the text around it."""


class ShownFigure(Figure):
    """A figure that displays itself. Once pyplot is imported, IPython draws all figures, this one too, only once."""

    def _repr_png_(self) -> bytes:
        """In a notebook: the figure."""
        file = BytesIO()
        set_fonts(self, report=False)
        with drawing():
            self.savefig(file, dpi=DPI, format="png", facecolor=self.get_facecolor(), metadata=_METADATA)
        return file.getvalue()


_METADATA: dict[str, Any] = {"Software": "seq2see"}
