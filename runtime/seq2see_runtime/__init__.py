"""seq2see-runtime: models exported by seq2see, with numpy and onnxruntime alone.

>>> import seq2see_runtime
>>> model = seq2see_runtime.load("exported")  # doctest: +SKIP
>>> model.predict("india", beam=5).text  # doctest: +SKIP
'इंडिया'
"""

from __future__ import annotations

import os

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # before onnxruntime is imported: nothing is sent or kept of users

from seq2see_runtime.model import Model, Scored, load

__all__ = ["Model", "Scored", "load"]
