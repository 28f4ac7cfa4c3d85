"""Hostile examples.jsonl and metrics.jsonl: named, or passed over where a model is complete without them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

import seq2see
from seq2see.errors import UserError
from seq2see.export.page import examples_of
from seq2see.hub import _first_example
from seq2see.studio.model_repository import find_examples
from seq2see.training.reports import EXAMPLES, METRICS, best_report, kept_examples

Call = Callable[..., tuple[int, str, str]]
HOSTILE = {
    "nested deeply": b"[" * 100_000,
    "objects in objects": b'{"a":' * 100_000,
    "a list": b"[1]",
    "a number of many digits": b"1" * 100_000,
    "no text": b"\xff\xfe\x00",
    "nothing": b"",
    "samples that are none": b'{"update": 1, "samples": [1]}',
}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, models: dict[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(models["word"], folder)
    for name in (EXAMPLES, METRICS):
        (folder / name).write_bytes(HOSTILE[request.param])
    return folder


def test_a_model_is_complete_without_them(hostile: Path) -> None:
    model = seq2see.load(hostile)
    assert examples_of(model.bundle, hostile) == []
    assert find_examples(model, hostile).rows == []
    assert _first_example(model, hostile) is None


def test_who_needs_them_names_the_file(hostile: Path, call: Call, tmp_path: Path) -> None:
    code, _, told = call("figure", "curve", hostile, "--out", tmp_path / "curve.svg")
    assert (code, METRICS in told, "bug" in told) == (2, True, False), told
    with suppress(UserError):  # an empty file has no reports
        assert best_report(hostile).get("samples") in (None, [1])
    with pytest.raises(UserError, match=EXAMPLES) if (hostile / EXAMPLES).stat().st_size else nullcontext():
        kept_examples(hostile, list(seq2see.load(hostile).recipe.inputs))
