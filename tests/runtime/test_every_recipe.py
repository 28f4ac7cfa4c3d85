"""Every shipped recipe and every mechanism, exported: the runtime says what the model says. Long: `make slow`."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.errors import UserError
from tests.record.cases import Case, cases
from tests.record.record import train
from tests.record.tables import make
from tests.runtime.test_runtime import check_same, loaded

CASES = {name: case for name, case in cases().items() if case.way == "whole"}
REFUSED = {"self-attentive": "encoder.self_attention"}
"""What no graph can hold, and the key that says so."""
UNREAD = {
    "autoencoder": "vector",
    "forecasting": "series",
    "image-autoencoder": "image",
    "noise-gaussian": "vector",
    "noise-masking": "vector",
    "pictures-dense": "image",
    "series-classification": "series",
    "series-text": "series",
    "series-transformer": "series",
}
"""What is exported and proved equal, and not read by the runtime yet: the kind of the column."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_runtime_says_the_same(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    case = CASES[name]
    if case.extra:
        pytest.importorskip(case.extra, reason="the extra of this kind of input is not installed")
    from seq2see.export.onnx import export

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, inputs = trained(case, tmp_path)
        if name in REFUSED:
            with pytest.raises(UserError, match=REFUSED[name]):
                export(model.bundle, tmp_path / "exported")
            return
        export(model.bundle, tmp_path / "exported")
        if name in UNREAD:
            with pytest.raises(UserError, match=UNREAD[name]):
                loaded(tmp_path / "exported")
            return
        runtime = loaded(tmp_path / "exported")
        options = {} if model.recipe.inputs else {"seed": 3}
        for value in inputs:
            check_same(model.predict(value, **options), runtime.predict(value, **options))


def trained(case: Case, folder: Path) -> tuple[seq2see.Model, list[Any]]:
    """A model of that case, and inputs that it was not trained on; a language model has none."""
    table = make(case.table or case.recipe, folder / "table")
    (name,) = train(case, table, folder)
    model = seq2see.load(folder / name)
    return model, list(table.inputs) if model.recipe.inputs else [None]
