"""The optimiser and its state, the learning-rate schedule, averaging of weights, and mixed precision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.files import shortened
from seq2see.pipeline.weights import check_checksum, read_tensors, write_tensors
from seq2see.recipe.schema import TrainingSettings


def build_optimizer(settings: TrainingSettings, network: nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimiser, fused, over the parameters that are trained."""
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimizer == "sgd":
        return torch.optim.SGD(learned, lr=rate, momentum=settings.momentum, weight_decay=decay, fused=True)
    kind = torch.optim.AdamW if settings.optimizer == "adamw" else torch.optim.Adam
    return kind(learned, lr=rate, betas=settings.betas, weight_decay=decay, fused=True)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """{'3.exp_avg': ...}: the state of each parameter by its number, as plain tensors (a checkpoint has no pickle)."""
    numbered = optimizer.state_dict()["state"]
    return {
        f"{number}.{name}": value
        for number, state in numbered.items()
        for name, value in state.items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], *, path: Path) -> None:
    """Load the tensors of `optimizer_tensors`; a UserError if they belong to other parameters. path: for the message.

    A parameter that never had a gradient has no tensors.
    """
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected = {"momentum_buffer"} if isinstance(optimizer, torch.optim.SGD) else {"step", "exp_avg", "exp_avg_sq"}
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        number, _, name = key.partition(".")
        if not (number.isascii() and number.isdigit()) or int(number[:9]) >= len(parameters) or name not in expected:
            raise UserError(
                f"{path}: damaged: '{shortened(key, quotes=False)}' is not a tensor of this run's optimiser"
            )
        shape = torch.Size() if name == "step" else parameters[int(number)].shape
        if value.shape != shape or not value.is_floating_point():
            found, wanted = f"{value.dtype} {list(value.shape)}", f"floating point {list(shape)}"
            raise UserError(f"{path}: damaged: '{key}' of the optimiser is {found}, expected {wanted}")
        state.setdefault(int(number), {})[name] = value
    partial = [number for number, found in state.items() if found.keys() != expected]
    if partial:
        missing = ", ".join(sorted(expected - state[partial[0]].keys()))
        raise UserError(f"{path}: damaged: the optimiser's tensors of parameter {partial[0]} lack {missing}")
    whole = optimizer.state_dict()
    whole["state"] = state
    optimizer.load_state_dict(whole)


# ---------------------------------------------------------------- learning-rate schedule


def has_end(settings: TrainingSettings) -> bool:
    """Whether the run has a limit of epochs, updates or minutes."""
    return bool(settings.epochs or settings.updates or settings.minutes)


def check_schedule(settings: TrainingSettings) -> None:
    """Refuse a run without an end, and a schedule that needs one."""
    if not has_end(settings) and settings.schedule not in ("constant", "plateau"):
        raise UserError(
            f"training.schedule: {settings.schedule} needs an end of the run: set training.epochs, updates or minutes, "
            "or use constant or plateau"
        )
    if not has_end(settings) and not settings.patience:
        raise UserError("training: without epochs, updates, minutes or patience a run never ends; set one of them")


def share_done(settings: TrainingSettings, *, epochs: float, updates: int, seconds: float) -> float:
    """The share of the run that is done, by the limit that is nearest."""
    shares = [0.0]
    if settings.epochs:
        shares.append(epochs / settings.epochs)
    if settings.updates:
        shares.append(updates / settings.updates)
    if settings.minutes:
        shares.append(seconds / (60 * settings.minutes))
    return max(shares)


def rate_factor(settings: TrainingSettings, share: float) -> float:
    """The factor of the learning rate when `share` of the run is done.

    >>> rate_factor(TrainingSettings(schedule="linear", warmup=0.1, floor=0.0), 0.55)
    0.5
    """
    if settings.warmup and share < settings.warmup:
        # never quite zero, so that the first update has an effect
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


# ---------------------------------------------------------------- moving average of the weights


class MovingAverage:
    """An exponential moving average of the learned weights: after update n, a <- d a + (1 - d) w.

    d = min(decay, (1 + n) / (10 + n)): the first weights, which are random, are forgotten soon. Buffers, such as the
    statistics of a normalisation, stay the network's own.
    """

    def __init__(self, network: nn.Module, decay: float):
        self.decay = decay
        self._weights = {name: each.detach() for name, each in network.named_parameters() if each.requires_grad}
        self.tensors = {name: weight.clone() for name, weight in self._weights.items()}

    def update(self, updates: int) -> None:
        """Take in the weights after so many updates."""
        decay = min(self.decay, (1 + updates) / (10 + updates))
        torch._foreach_lerp_(list(self.tensors.values()), list(self._weights.values()), 1 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """The network has the averages as its weights; afterwards its own again."""
        own = {name: weight.clone() for name, weight in self._weights.items()}
        self._fill(self.tensors)
        try:
            yield
        finally:
            self._fill(own)

    def restore(self, tensors: Mapping[str, Tensor], *, path: Path) -> None:
        """Go on from the averages of a checkpoint; a UserError if they belong to other weights. path: of them."""
        for name, tensor in self.tensors.items():
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise UserError(f"{path}: damaged: there is no moving average of {name}, or one of another shape")
            tensor.copy_(tensors[name])

    def _fill(self, tensors: Mapping[str, Tensor]) -> None:
        for name, weight in self._weights.items():
            weight.copy_(tensors[name])


# ---------------------------------------------------------------- averaging of the best weights


def _path(folder: Path, update: float) -> Path:
    return folder / f"best-{int(update):09d}.safetensors"


def keep_best(
    folder: Path,
    weights: dict[str, Tensor],
    kept: list[list[float]],
    *,
    value: float,
    update: int,
    most: int,
    write: bool = True,
) -> list[list[float]]:
    """Save these weights if they are among the `most` best; returns [value, update] of all that are kept, best first.
    write: whether this process writes files.

    Weights that are no longer kept stay on disk until the next checkpoint (`remove_weights`): a run that is killed
    before it still needs them.
    """
    ranked = sorted([*kept, [value, update]], key=lambda entry: (-entry[0], -entry[1]))
    if write and [value, update] in ranked[:most]:
        folder.mkdir(parents=True, exist_ok=True)
        write_tensors(_path(folder, update), weights)
    return ranked[:most]


def average_weights(folder: Path, kept: list[list[float]]) -> dict[str, Tensor]:
    """The mean of the kept weights."""
    every = [read_tensors(_path(folder, update)) for _, update in kept]
    return {name: _mean([weights[name] for weights in every]) for name in every[0]}


def _mean(tensors: list[Tensor]) -> Tensor:
    """The mean of floating-point tensors; of counters (batches seen by a normalisation) the first."""
    return torch.stack(tensors).mean(0) if tensors[0].is_floating_point() else tensors[0]


def existing_weights(folder: Path, kept: list[list[float]]) -> tuple[list[list[float]], list[str]]:
    """(those of the kept weights that are on disk, the problem of each file that is damaged or missing)."""
    existing, problems = [], []
    for entry in kept:
        path = _path(folder, entry[1])
        try:
            if not path.is_file():
                raise UserError(f"{path}: missing")
            check_checksum(path)
            existing.append(entry)
        except UserError as error:
            problems.append(str(error))
    return existing, problems


def remove_weights(folder: Path, *, but: list[list[float]]) -> None:
    """Remove all saved weights but these."""
    needed = {_path(folder, update) for _, update in but}
    for path in folder.glob("best-*.safetensors"):
        if path not in needed:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------- mixed precision


def autocast(setting: str, device: torch.device) -> torch.autocast:
    """The autocast context of the forward pass: bfloat16 where it is set, or where it is fast (`auto`)."""
    enabled = setting == "bfloat16" or (setting == "auto" and bfloat16_is_fast(device))
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=enabled)


def bfloat16_is_fast(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    if device.type != "cpu":
        return False
    features = torch.backends.cpu.get_cpu_capability()
    return features.startswith("AVX512") and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported()) and _has_bf16_units()


def _has_bf16_units() -> bool:
    """Whether the processor has avx512_bf16 or amx_bf16; mkldnn also says yes to processors that only emulate it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123 - a device file, read to the first match
            return any("_bf16" in line for line in file if line.startswith("flags"))
    except OSError:
        return False
