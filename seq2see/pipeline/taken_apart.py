"""Every kind of input that can be taken apart into its places: `apart` knows those whose files are read here."""

from __future__ import annotations

from seq2see.pipeline.hidden_cells import Cells
from seq2see.pipeline.hidden_frames import Regions
from seq2see.pipeline.hidden_stretches import Stretches
from seq2see.pipeline.occlusion import Apart, apart

__all__ = ["Apart", "Cells", "Regions", "Stretches", "apart"]
