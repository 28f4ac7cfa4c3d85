"""What the parent of all children imports, so that none of them has to (`children.py`)."""

from __future__ import annotations

from contextlib import suppress

import torch
import torch._dynamo  # imported by the first optimizer

with suppress(ImportError):  # an extra
    import torch.onnx

torch.set_num_threads(1)  # a pool of threads would not survive a fork
