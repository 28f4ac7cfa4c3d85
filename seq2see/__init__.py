"""seq2see: encoder-decoder models with attention that show where they look."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seq2see import attention, decoders, encoders, search
    from seq2see.api import Model, compare, crossval, distill, load, pack, train, tune
    from seq2see.batch_prediction import BatchPredictor
    from seq2see.errors import UserError
    from seq2see.hub import pull, push
    from seq2see.looks import Looks, Prediction
    from seq2see.recipe import Recipe
    from seq2see.studio.background import serve

__version__ = "0.1.0"

_MODULES = {
    "BatchPredictor": "seq2see.batch_prediction",
    "Looks": "seq2see.looks",
    "Model": "seq2see.api",
    "Prediction": "seq2see.looks",
    "Recipe": "seq2see.recipe",
    "UserError": "seq2see.errors",
    "compare": "seq2see.api",
    "crossval": "seq2see.api",
    "distill": "seq2see.api",
    "load": "seq2see.api",
    "pack": "seq2see.api",
    "pull": "seq2see.hub",
    "push": "seq2see.hub",
    "serve": "seq2see.studio.background",
    "train": "seq2see.api",
    "tune": "seq2see.api",
}
_PACKAGES = ("attention", "decoders", "encoders", "search")

__all__ = [
    "BatchPredictor",
    "Looks",
    "Model",
    "Prediction",
    "Recipe",
    "UserError",
    "attention",
    "compare",
    "crossval",
    "decoders",
    "distill",
    "encoders",
    "load",
    "pack",
    "pull",
    "push",
    "search",
    "serve",
    "train",
    "tune",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is used: `import seq2see` alone does not import torch."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    if name in _PACKAGES:
        return import_module(f"seq2see.{name}")
    raise AttributeError(f"module 'seq2see' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted([*__all__, "__version__"])
