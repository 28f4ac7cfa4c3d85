"""--device of commands that run a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2see import api
from seq2see.studio import model_repository
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from tests.commands import Run

Call = Callable[..., Run]


def test_models_run_on_the_device_that_is_named(
    call: Call, speller: Path, pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    load = api.load

    def watched(folder: Any, *, device: str = "cpu", **options: Any) -> api.Model:
        asked.append(device)
        return load(folder, device="cpu", **options)

    monkeypatch.setattr(api, "load", watched)
    monkeypatch.setattr(model_repository, "load", watched)
    monkeypatch.setattr("seq2see.pipeline.bundle.find_device", lambda name, *, key: torch.device("cpu"))
    assert call("predict", speller, "abcd", "--device", "cuda:3").code == 0
    assert call("predict", speller, "abcd").code == 0
    assert call("evaluate", speller, "--data", pairs, "--device", "mps").code == 0
    model_repository.ModelLoader([str(speller)], Limits(), ServerMetrics(), device="cuda").load_all().close()
    assert asked == ["cuda:3", "cpu", "mps", "cuda"]


@pytest.mark.parametrize("device", ["cuda:99", "gpu", "", "meta", "cpu:x"])
def test_devices_that_are_not_there(call: Call, speller: Path, pairs: Path, device: str) -> None:
    for words in (["predict", speller, "abcd"], ["evaluate", speller, "--data", pairs], ["serve", speller]):
        run = call(*words, "--device", device)
        assert run.code == 2, words
        assert "--device" in run.err
        assert "allowed: cpu" in run.err
