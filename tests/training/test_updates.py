"""One update: how far the weights go, and by which rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from seq2see.recipe.schema import TrainingSettings
from seq2see.training import trainer
from seq2see.training.checkpoints import _read
from seq2see.training.optimizer import build_optimizer
from tests.training.tiny import ROWS, journal, run, words

PLAIN = ["training.optimizer=sgd", "training.schedule=constant", "training.warmup=0", "training.learning_rate=0.5"]


def moved(folder: Path) -> float:
    """The norm of what one update has changed."""
    before, after = (_read(folder / "checkpoints" / f"update-{n:09d}.safetensors").weights for n in (0, 1))
    return float(torch.cat([(after[name] - before[name]).flatten() for name in before]).norm())


@pytest.mark.parametrize(("clip", "norm"), [(0.01, 0.01), (0, None), (100, None)])
def test_the_gradient_is_cut_to_the_norm_that_is_allowed(tmp_path: Path, clip: float, norm: float | None) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "model", [*PLAIN, f"training.clip={clip}"], updates=1)
    told = journal(tmp_path / "model")[0]["gradient_norm"]
    assert told > 0.02  # as it was before the cut
    assert moved(tmp_path / "model") == pytest.approx(0.5 * (norm if norm is not None else told), rel=1e-3)


class Slope(nn.Module):
    """A loss whose gradient is known: weights . slope."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)


def after(optimizer: torch.optim.Optimizer, model: Slope, steps: int = 3) -> Tensor:
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        (model.weights * torch.tensor([0.3, -0.1, 0.2]) * step).sum().backward()
        optimizer.step()
    return model.weights.detach()


@pytest.mark.parametrize(
    ("settings", "torchs"),
    [
        ({"optimizer": "adamw", "weight_decay": 0.1, "betas": (0.8, 0.95)}, torch.optim.AdamW),
        ({"optimizer": "adam", "weight_decay": 0.1}, torch.optim.Adam),
        ({"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1}, torch.optim.SGD),
    ],
)
def test_rules_are_torchs(settings: dict[str, Any], torchs: Any) -> None:
    one, other = Slope(), Slope()
    mine = build_optimizer(TrainingSettings(learning_rate=0.05, **settings), one)
    given = {key: value for key, value in settings.items() if key != "optimizer"}
    plain = torchs([other.weights], lr=0.05, foreach=False, fused=False, **given)
    torch.testing.assert_close(after(mine, one), after(plain, other))
    assert sum(len(group["params"]) for group in mine.param_groups) == 1  # what is frozen is left alone


def test_adamw_takes_decay_from_the_weights_and_adam_from_the_gradient() -> None:
    """With no slope at all Adam turns decay into steps of one size, AdamW into a share of each weight."""
    for name, wanted in (("adamw", [0.9, -1.8, 2.7]), ("adam", [0.0, -1.0, 2.0])):
        model = Slope()
        optimizer = build_optimizer(
            TrainingSettings.model_validate({"optimizer": name, "learning_rate": 1.0, "weight_decay": 0.1}), model
        )
        model.weights.grad = torch.zeros(3)
        optimizer.step()
        torch.testing.assert_close(model.weights.detach(), torch.tensor(wanted), atol=1e-4, rtol=0)


def test_free_memory_is_given_back_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    trim = trainer.trim_memory
    monkeypatch.setattr(trainer, "TRIM_EVERY", 2)
    monkeypatch.setattr(trainer, "trim_memory", lambda: calls.append(trim()))
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", PLAIN, updates=5)
    assert len(calls) == 2
