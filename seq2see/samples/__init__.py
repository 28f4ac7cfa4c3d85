"""Small data to try recipes on, without a download: tables, and the files they speak of, written into a folder."""

from __future__ import annotations

from seq2see.samples.base import SAMPLES, Sample, Written

__all__ = ["SAMPLES", "Sample", "Written"]
