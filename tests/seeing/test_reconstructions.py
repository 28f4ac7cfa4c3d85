"""Pictures beside what was made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.seeing import reconstruction_sheet


def test_a_sheet_has_a_cell_for_each_picture(tmp_path: Path) -> None:
    given = [np.full((4, 4), share) for share in (0.0, 0.5, 1.5)]
    made = [np.zeros((4, 4, 3), dtype=np.uint8)] * 3
    figure = reconstruction_sheet({"given": given, "made": made}, title="t", path=tmp_path / "sheet.png")
    assert len(figure.axes) == 6
    assert (tmp_path / "sheet.png").stat().st_size > 500
    drawn = [axes.images[0].get_array().max() for axes in figure.axes]
    assert drawn == [0.0, 0.5, 1.0, 0.0, 0.0, 0.0]


def test_rows_of_different_lengths_and_strange_shapes_are_refused() -> None:
    with pytest.raises(UserError, match="given: a 1, b 2"):
        reconstruction_sheet({"a": [np.zeros((2, 2))], "b": [np.zeros((2, 2))] * 2})
    with pytest.raises(UserError, match=r"got \(4,\)"):
        reconstruction_sheet({"a": [np.zeros(4)]})
