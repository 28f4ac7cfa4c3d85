"""What a saved model says of the inputs kept beside it, by the public interface alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import seq2see


def said(version: Path, name: str, *, inputs: list[Any], output: str) -> dict[str, Any]:
    """Predictions of the inputs, and what the model makes of a given output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = seq2see.load(version / name)
        given = [found(version, one) for one in inputs]
        answers = [_told(model.predict(one, maps=True)) for one in given]
        followed = [_told(model.look(one, target=output)) for one in given] if output else []
        return {"predictions": answers, "followed": followed, "vectors": _rounded(model.encode(given))}


def found(version: Path, given: Any) -> Any:
    """An input, with the path of its file."""
    return str(version / given) if isinstance(given, str) and given.endswith(".png") else given


def _told(prediction: seq2see.Prediction) -> dict[str, Any]:
    told: dict[str, Any] = {
        "answer": prediction.answer if isinstance(prediction.answer, str) else _rounded(prediction.answer),
        "alternatives": [[other.text, _rounded(other.score)] for other in prediction.alternatives],
        "tokens": [[token.text, _rounded(token.probability)] for token in prediction.tokens],
        "looks": {name: _rounded(weights) for name, weights in prediction.looks.maps.items()},
        "inputs": prediction.looks.inputs,
    }
    if not prediction.numeric:
        told |= {"score": _rounded(prediction.score), "log_probability": _rounded(prediction.log_probability)}
    return told


def _rounded(numbers: Any) -> Any:
    return np.round(np.asarray(numbers, dtype=np.float64), 6).tolist()
