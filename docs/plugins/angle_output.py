"""A kind of output of your own: an angle in degrees, learned as its sine and cosine; --plugin angle_output"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch

from seq2see.data.batches import Numbers
from seq2see.modalities import outputs
from seq2see.modalities.base import NumericOutput
from seq2see.settings.columns import OutputColumn


class AngleOutput(OutputColumn):
    """An output that is an angle: 359 is near to 1."""

    noun = "an angle"
    numeric = True
    measured_as = "numbers"  # its metrics, its baselines and the decoders that write it
    kind: Literal["angle"] = "angle"


@outputs.register("angle")
class Angle(NumericOutput):
    """Angles as points of the circle."""

    Settings, size = AngleOutput, 2

    def problem(self, value):  # why a cell of the table cannot be used
        try:
            self.numbers(value)
        except ValueError:
            return f"'{value}' is not an angle in degrees"

    def numbers(self, value):  # what is learned and measured: (size,)
        return np.array([np.sin(np.deg2rad(float(value))), np.cos(np.deg2rad(float(value)))])

    def restored(self, values):  # what the network gives, as such numbers
        return np.asarray(values, dtype=np.float64)

    def answer(self, numbers):
        return {"vector": [float(np.rad2deg(np.arctan2(*numbers)) % 360)]}

    def answered(self, prediction):
        return self.numbers(prediction.vector[0])

    def ids(self, value):  # as it is stored
        return [round(1000 * float(value))]

    def widths(self, store):
        return np.ones(len(store), dtype=np.int64)

    def pad(self, store, rows):
        return self.batch([store[int(row)][0] / 1000 for row in rows])

    def batch(self, values):
        return Numbers(torch.tensor(np.stack([self.numbers(value) for value in values]), dtype=torch.float32))
