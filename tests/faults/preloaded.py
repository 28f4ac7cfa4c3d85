"""What the parent of all children imports, so that none of them has to (`children.py`)."""

from __future__ import annotations

from contextlib import suppress

import torch
import torch._dynamo  # imported by the first optimizer

import seq2see.api
import seq2see.cli.app
import seq2see.cli.export
import seq2see.cli.predict
import seq2see.cli.train
import seq2see.search
import seq2see.training.run  # noqa: F401 - imported for the children

with suppress(ImportError):  # an extra
    import seq2see.export.onnx
    import torch.onnx  # noqa: F401

torch.set_num_threads(1)  # a pool of threads would not survive a fork
