"""Saved models, exported once for all tests of the runtime."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seq2see

SAVED = Path(__file__).parents[1] / "models" / "0.1.0"
NAMES = ("transliteration", "translation-transformer", "entailment", "image-captioning")


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a saved model's export."""
    for module in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")
    from seq2see.export.onnx import export
    from seq2see.pipeline.bundle import Bundle

    folder, made = tmp_path_factory.mktemp("exported"), dict[str, Path]()

    def export_once(name: str) -> Path:
        if name not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks of the exporter about torch
                export(Bundle.load(SAVED / name), folder / name)
            made[name] = folder / name
        return made[name]

    return export_once


def inputs_of(name: str) -> list[Any]:
    """The inputs that are kept beside a saved model."""
    kept = json.loads((SAVED / "expected.json").read_text(encoding="utf-8"))[name]["inputs"]
    return [str(SAVED / one) if isinstance(one, str) and one.endswith(".png") else one for one in kept]


def original(name: str) -> seq2see.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seq2see.load(SAVED / name)
