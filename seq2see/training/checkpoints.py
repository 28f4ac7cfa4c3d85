"""Checkpoints: everything a killed run needs to continue with the same bits, each written whole or not at all."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2see.errors import UserError
from seq2see.pipeline.weights import read_tensors, write_tensors

CHECKPOINTS = "checkpoints"
"""The folder of checkpoints in a run's folder."""
KEEP = 2
STATE_KEY = "standing"
"""Of the training state in the metadata of a checkpoint; older versions read it too."""
DAMAGED = ".damaged"
LARGEST_SHARE = 0.02
"""Of the running time, for checkpoints that are due by the clock."""
RENAMED = {"passed_over": "skipped", "on_end": "skipped_in_a_row"}
"""Fields of `TrainingState` by the names they have in checkpoints of seq2see 0.1.0."""


@dataclass
class TrainingState:
    """How far a run is: the numbers of a checkpoint.

    index: the next batch of the epoch; seconds: of training, over all parts of a resumed run;
    update_seconds: of these the updates alone, without reports and checkpoints;
    best: the leading metric of the best report so far, signed so that higher is better; stale: reports since then;
    seen: targets (symbols, or rows with a label) trained on; rate: the factor that `plateau` has left of the learning
    rate; kept: the best reports whose weights are kept for averaging, as [value, update];
    skipped: updates without a step, as the gradient was not finite; skipped_in_a_row: the latest of them;
    objective: what the loss carries from update to update.
    """

    epoch: int = 0
    index: int = 0
    updates: int = 0
    seconds: float = 0.0
    update_seconds: float = 0.0
    seen: int = 0
    rate: float = 1.0
    loss_total: float = 0.0
    loss_count: float = 0.0
    best: float | None = None
    best_update: int = 0
    stale: int = 0
    reported: int = 0
    kept: list[list[float]] = field(default_factory=list)
    skipped: int = 0
    skipped_in_a_row: int = 0
    finished: bool = False
    fingerprint: str = ""
    objective: dict[str, float] = field(default_factory=dict)


@dataclass
class Checkpoint:
    """A training state with its tensors: weights, optimiser, the state a stream carries, random states of torch and of
    the device."""

    state: TrainingState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    carried: dict[str, Tensor] = field(default_factory=dict)
    random: Tensor = field(default_factory=torch.get_rng_state)
    random_device: Tensor | None = None


class CheckpointSchedule:
    """Decides when checkpoints are due: by updates, and by the clock. Writing one does not change the run itself.

    seconds: the longest time between two, 0: no limit. While checkpoints take more than the largest share of the
    running time, none is due by the clock.
    """

    def __init__(self, every: int, seconds: float):
        self.every, self.seconds = every, seconds
        self._started = self._ended = self._began = time.perf_counter()
        self._spent = self._last = 0.0

    def due(self, updates: int) -> bool:
        if updates % self.every == 0:
            return True
        now = time.perf_counter()
        late = self.seconds > 0 and now - self._ended >= self.seconds
        return late and self._spent + self._last <= LARGEST_SHARE * (now - self._started)

    def begin(self) -> None:
        """Called before a checkpoint is written."""
        self._began = time.perf_counter()

    def end(self) -> None:
        """Called after it was written."""
        self._ended = time.perf_counter()
        self._last = self._ended - self._began
        self._spent += self._last


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `update-N.safetensors`, then remove the oldest beyond the last two."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, Tensor] = {"random": checkpoint.random}
    if checkpoint.random_device is not None:
        tensors["random_device"] = checkpoint.random_device
    for part in ("weights", "optimizer", "carried"):
        tensors |= {f"{part}/{name}": tensor for name, tensor in getattr(checkpoint, part).items()}
    path = folder / f"update-{checkpoint.state.updates:09d}.safetensors"
    write_tensors(path, tensors, metadata={STATE_KEY: json.dumps(asdict(checkpoint.state))})
    for old in checkpoint_paths(folder)[KEEP:]:
        old.unlink(missing_ok=True)
    return path


def checkpoint_paths(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    return sorted(folder.glob("update-*.safetensors"), reverse=True)


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The newest checkpoint that is not damaged; None where there is none."""
    return recover_checkpoint(folder)[0]


def recover_checkpoint(folder: Path) -> tuple[Checkpoint | None, dict[Path, str]]:
    """(the newest checkpoint that is not damaged, the problem of each newer one); a UserError where all are damaged."""
    problems: dict[Path, str] = {}
    for path in checkpoint_paths(folder):
        try:
            return _read(path), problems
        except UserError as error:
            problems[path] = str(error)
    if problems:
        raise UserError(
            f"{'; '.join(problems.values())}; there is no other checkpoint to go on from: start again without --resume "
            f"(and with --overwrite), in another folder, or after removing {folder.parent}"
        )
    return None, {}


def random_state(device: torch.device) -> Tensor | None:
    """The random state of a device; None for the CPU, whose state torch has in `get_rng_state`."""
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.mps.get_rng_state() if device.type == "mps" else None


def restore_random_state(device: torch.device, state: Tensor | None) -> None:
    """Set the random state that `random_state` returned, on a device of the same kind."""
    if state is None:
        return
    if device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state)


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it does not count as one that is kept."""
    path.replace(path.with_name(f"{path.name}{DAMAGED}"))


def _read(path: Path) -> Checkpoint:
    from safetensors import safe_open

    tensors = read_tensors(path)
    try:
        with safe_open(path, framework="pt") as file:
            stored: dict[str, Any] = json.loads((file.metadata() or {})[STATE_KEY])
        state = TrainingState(**{RENAMED.get(name, name): value for name, value in stored.items()})
        parts: dict[str, dict[str, Tensor]] = {"weights": {}, "optimizer": {}, "carried": {}}
        random, random_device = tensors.pop("random"), tensors.pop("random_device", None)
        for key, tensor in tensors.items():
            part, name = key.split("/", 1)
            parts[part][name] = tensor
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not a checkpoint of this version of seq2see ({error})") from None
    return Checkpoint(state, parts["weights"], parts["optimizer"], parts["carried"], random, random_device)
