"""Kinds of inputs and outputs: one file for each, with its settings, how it is read, batched, shown and hidden.

Every file of this package registers its kind when it is imported, so a new kind needs its file alone. An input is a
`Modality`, an output an `Output`; both write

- `ids(value)`: a value of the table as it is stored, a row of whole numbers;
- `widths(store)`: how much of a batch each stored row takes;
- `pad(store, rows)` and `batch(values)`: stored rows, or values, as tensors.

Its settings, `Settings`, are an `InputColumn` or `OutputColumn` (settings/columns.py). An input's `content` tells which
encoders read it: `frames` (numbers over time: pyramidal, transformer), `text`, `image`; or an encoder names the kind in
its `reads`. An output's `measured_as` (text, label, numbers) tells which decoders, metrics and baselines fit it.
Kinds that are files are decoded in `data/`, without torch, so that a server's decoder processes stay small.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from seq2see.modalities.base import Field, Modality, Output, field_of, inputs, outputs

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Field", "Modality", "Output", "field_of", "inputs", "outputs"]
