"""The optimiser: fused updates, learning-rate schedule, averaged weights, precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.pipeline.weights import check_signed, read_tensors, write_tensors
from seq2see.recipe.schema import TrainingSettings

# ---------------- Fused optimisers, and their state as plain tensors (a checkpoint holds no pickle)


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


# ---------------- The learning rate over a run


def has_end(settings: TrainingSettings) -> bool:
    return bool(settings.epochs or settings.updates or settings.minutes)


def check_schedule(settings: TrainingSettings) -> None:
    if not has_end(settings) and settings.schedule not in ("constant", "plateau"):
        raise UserError(
            f"training.schedule: {settings.schedule} needs an end of the run: set training.epochs, updates or minutes, "
            "or use constant or plateau"
        )
    if not has_end(settings) and not settings.patience:
        raise UserError("training: without epochs, updates, minutes or patience a run has no end; set one of them")


def done(settings: TrainingSettings, *, epochs: float, updates: int, seconds: float) -> float:
    """Share of the run that is done, by whichever limit is nearest."""
    shares = [0.0]
    if settings.epochs:
        shares.append(epochs / settings.epochs)
    if settings.updates:
        shares.append(updates / settings.updates)
    if settings.minutes:
        shares.append(seconds / (60 * settings.minutes))
    return max(shares)


def factor(settings: TrainingSettings, share: float) -> float:
    """What the learning rate is multiplied with when `share` of the run is done.

    >>> factor(TrainingSettings(schedule="linear", warmup=0.1, floor=0.0), 0.55)
    0.5
    """
    if settings.warmup and share < settings.warmup:
        # never quite zero: the first update should not be in vain
        return max(share / settings.warmup, 1e-3)
    left = min(max((share - settings.warmup) / (1 - settings.warmup), 0.0), 1.0)
    low = settings.floor
    if settings.schedule == "linear":
        return low + (1 - low) * (1 - left)
    if settings.schedule == "cosine":
        return low + (1 - low) * (1 + math.cos(math.pi * left)) / 2
    if settings.schedule == "inverse-sqrt":
        start = settings.warmup or 0.01
        return max(math.sqrt(start / max(share, start)), low)
    return 1.0


# ---------------- The mean of the best weights of a run


def _path(folder: Path, update: float) -> Path:
    return folder / f"best-{int(update):09d}.safetensors"


def keep_best(
    folder: Path, weights: dict[str, Tensor], kept: list[list[float]], *, value: float, update: int, most: int
) -> list[list[float]]:
    """Keep these weights if they are among the `most` best; [value, update] of all that are kept, best first.

    Files that are kept no more stay until the next checkpoint (`forget`): a run killed before it still needs them.
    """
    ranked = sorted([*kept, [value, update]], key=lambda entry: (-entry[0], -entry[1]))
    if [value, update] in ranked[:most]:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(_path(folder, update), weights)
    return ranked[:most]


def averaged(folder: Path, kept: list[list[float]]) -> dict[str, Tensor]:
    """The mean of the kept weights."""
    every = [read_tensors(_path(folder, update)) for _, update in kept]
    return {name: _mean([one[name] for one in every]) for name in every[0]}


def _mean(tensors: list[Tensor]) -> Tensor:
    """Of numbers their mean; what only counts (batches seen by a normalisation) is that of the first."""
    return torch.stack(tensors).mean(0) if tensors[0].is_floating_point() else tensors[0]


def still_there(folder: Path, kept: list[list[float]]) -> tuple[list[list[float]], list[str]]:
    """Those whose weights are on disk (a finished run, when it is gone on with, has none), and what is wrong with each
    that is damaged."""
    found, problems = [], []
    for entry in kept:
        path = _path(folder, entry[1])
        if path.is_file():
            try:
                check_signed(path)
                found.append(entry)
            except UserError as error:
                problems.append(str(error))
    return found, problems


def forget(folder: Path, *, but: list[list[float]]) -> None:
    """Remove the weights that are kept no more."""
    needed = {_path(folder, update) for _, update in but}
    for path in folder.glob("best-*.safetensors"):
        if path not in needed:
            path.unlink(missing_ok=True)


# ---------------- Half the bits for the large products, where the processor is faster with them; states ...


def working_precision(setting: str, device: torch.device) -> torch.autocast:
    """The context a loss is computed in."""
    wanted = setting == "bfloat16" or (setting == "auto" and bfloat16_is_fast(device))
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted)


def bfloat16_is_fast(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu":
        return False
    features = torch.backends.cpu.get_cpu_capability()
    return features.startswith("AVX512") and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and _has_bf16_units()


def _has_bf16_units() -> bool:
    """avx512_bf16 or amx_bf16 among the processor's flags; mkldnn also says yes to processors that only emulate it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a device file, read to the first match
            return any("_bf16" in line for line in file if line.startswith("flags"))
    except OSError:
        return False
