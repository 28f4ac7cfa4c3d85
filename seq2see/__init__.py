"""seq2see: encoder-decoder models with attention that show where they look."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2see.api import Model, compare, load, train
    from seq2see.errors import UserError
    from seq2see.looks import Looks, Prediction
    from seq2see.recipe import Recipe

__version__ = "0.1.0"

_HOMES = {
    "Looks": "seq2see.looks",
    "Model": "seq2see.api",
    "Prediction": "seq2see.looks",
    "Recipe": "seq2see.recipe",
    "UserError": "seq2see.errors",
    "compare": "seq2see.api",
    "load": "seq2see.api",
    "train": "seq2see.api",
}
_ROOMS = ("attention", "decoders", "encoders", "search")

__all__ = ["Looks", "Model", "Prediction", "Recipe", "UserError", "compare", "load", "train"]


def __getattr__(name: str) -> Any:
    """Names are imported when asked for: `import seq2see` alone brings no torch."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return import_module(f"seq2see.{name}")
    raise AttributeError(f"module 'seq2see' has no attribute '{name}'")
