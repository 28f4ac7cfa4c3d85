"""Kinds of inputs and outputs: one file for each, with its settings, how it is read, batched, shown and hidden.

Every file of this package registers its kind when it is imported, so a new kind needs its file alone.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from seq2see.modalities.base import Field, Modality, Output, field_of, inputs, outputs

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Field", "Modality", "Output", "field_of", "inputs", "outputs"]
