"""Fused optimisers, and their state as plain tensors (a checkpoint holds no pickle)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from seq2see.recipe.schema import TrainingSettings


def build_optimizer(settings: TrainingSettings, network: nn.Module) -> torch.optim.Optimizer:
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(learned, lr=rate, momentum=settings.momentum, weight_decay=decay, fused=True)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(learned, lr=rate, betas=settings.betas, weight_decay=decay, fused=True)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """{'3.exp_avg': ...}: the state of each parameter by its number."""
    numbered = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": value
        for number, state in numbered.items()
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        state.setdefault(int(number), {})[name] = value
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)
