"""A metric of your own: --plugin near_numbers --set evaluation.metrics=[near,mse]"""

from __future__ import annotations

import numpy as np

from seq2see.evaluation import METRICS
from seq2see.evaluation.metrics import Ratio


@METRICS.register("near")
class Near(Ratio):
    """The share of numbers that are at most 0.25 from the right ones."""

    applies_to = "numbers"
    outputs_only = False
    cased = False

    def counts(self, rows):  # (count, total) of each row
        pairs = zip(rows.need("numbers", self.name), rows.need("true_numbers", self.name), strict=True)
        for predicted, references in pairs:
            yield max(float((np.abs(predicted - one) <= 0.25).sum()) for one in references), float(len(predicted))
