"""A kind of input of your own: points of the plane in a cell, `0.5,1 2,-3 ...`; --plugin points_input, kind: points"""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.utils.rnn import pad_sequence

from seq2see.data.batches import Frames
from seq2see.errors import UserError
from seq2see.modalities import Modality, inputs
from seq2see.settings.columns import InputColumn


class PointsInput(InputColumn):
    """One input that holds points of the plane, one after the other."""

    usual_encoder = "pyramidal"  # which reads whatever a batch holds as frames, and looks at them over time
    content = "frames"
    kind: Literal["points"] = "points"
    channels: Literal[2] = 2
    scale: float = 1.0


@inputs.register("points")
class Points(Modality):
    """Points as frames of two numbers. A row is stored as whole thousandths."""

    Settings = PointsInput
    unusable = "numbers"

    def problem(self, value):
        try:
            self.ids(value)
        except UserError as error:
            return str(error)

    def ids(self, value):
        try:
            points = [(float(x), float(y)) for x, y in (point.split(",") for point in value.split())]
        except ValueError:
            raise UserError(f"'{value}' is not made of points like 0.5,-2") from None
        return [round(1000 * number) for point in points for number in point]

    def widths(self, store):  # how much of a batch each row takes
        return store.lengths // 2

    def pad(self, store, rows):
        return self._frames([list(store[int(row)]) for row in rows])

    def batch(self, values):
        return self._frames([self.ids(value) for value in values])

    def _frames(self, rows):
        points = [torch.tensor(row).view(-1, 2) / 1000 * self.settings.scale for row in rows]
        mask = pad_sequence([torch.ones(len(row), dtype=torch.bool) for row in points], batch_first=True)
        names = [list(map(str, range(len(row)))) for row in points]
        return Frames(pad_sequence(points, batch_first=True), mask, names)
