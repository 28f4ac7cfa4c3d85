"""Training: data, losses, optimiser, checkpoints, reports, fine-tuning, comparison of variants."""

from __future__ import annotations
