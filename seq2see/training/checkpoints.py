"""Checkpoints, each written whole or not at all: all that a killed run needs to continue with the same bits; and
resuming: where a run's rows come from, which checkpoint it continues, and which settings may change."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor

from seq2see.data.columns import as_option
from seq2see.data.records import Data
from seq2see.dropout import DROPOUTS
from seq2see.errors import UserError
from seq2see.files import MEBIBYTE, read_json, shortened, unwritable, write_bytes
from seq2see.pipeline.bundle import RECIPE, WEIGHTS, saved_recipe
from seq2see.pipeline.weights import read_tensors, write_tensors
from seq2see.recipe import Recipe, load_recipe
from seq2see.recipe.schema import flatten
from seq2see.training.dataset import lines_of
from seq2see.training.distributed import is_restart, launch_name
from seq2see.training.reports import METRICS

CHECKPOINTS = "checkpoints"
"""The folder of checkpoints in a run's folder."""
NONFINITE = "nonfinite"
"""The folder of updates whose gradient was not finite, each with the weights and random state that it began with."""
KEEP = 2
STATE_KEY = "standing"
"""Of the training state in the metadata of a checkpoint; older versions read it too."""
DAMAGED = ".damaged"
PARTS_OF_TENSORS = ("weights", "optimizer", "carried", "averages")
"""Fields of `Checkpoint`."""
LARGEST_SHARE = 0.02
"""Of the running time, for checkpoints that are due by the clock."""
RENAMED = {"passed_over": "skipped", "on_end": "skipped_in_a_row"}
"""Fields of `TrainingState` by the names they have in checkpoints of seq2see 0.1.0."""


@dataclass
class TrainingState:
    """How far a run is: the numbers of a checkpoint.

    index: the next batch of the epoch; seconds: of training, over all parts of a resumed run;
    update_seconds: of these the updates alone, without reports and checkpoints;
    best: the leading metric of the best report so far, signed so that higher is better; lowest: the lowest perplexity
    on dev; stale: reports since either got better, in this part of the run; rewarding: the last part has begun, in
    which outputs are rewarded;
    seen: targets (symbols, or rows with a label) trained on; rate: the factor that `plateau` has left of the learning
    rate; learning_rate: of the latest update; kept: the best reports whose weights are kept for averaging, as
    [value, update];
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
    learning_rate: float = 0.0
    loss_total: float = 0.0
    loss_count: float = 0.0
    best: float | None = None
    best_update: int = 0
    lowest: float | None = None
    stale: int = 0
    rewarding: bool = False
    reported: int = 0
    reported_seconds: float = 0.0
    kept: list[list[float]] = field(default_factory=list)
    skipped: int = 0
    skipped_in_a_row: int = 0
    finished: bool = False
    fingerprint: str = ""
    objective: dict[str, float] = field(default_factory=dict)


STAGES = "stages.json"
"""In the folder of a run in stages: what they are."""


def resumed_folder(folder: Path) -> Path:
    """The folder that `--resume` takes: of a stage that of the run it belongs to, otherwise the folder itself.

    >>> resumed_folder(Path("runs/g2p"))
    PosixPath('runs/g2p')
    """
    above = [parent for parent in list(folder.parents)[:2] if (parent / STAGES).is_file()]
    return above[0] if above else folder


@dataclass
class Checkpoint:
    """A training state with its tensors: weights, optimiser, the state a stream carries, moving averages of weights,
    random states of torch and of the device."""

    state: TrainingState
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    carried: dict[str, Tensor] = field(default_factory=dict)
    averages: dict[str, Tensor] = field(default_factory=dict)
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

    def due(self, updates: int, *, late: bool) -> bool:
        """late: whether one is due by the clock; of several processes it is the leader's that counts."""
        return late or updates % self.every == 0

    def late(self) -> bool:
        """Whether a checkpoint is due by the clock."""
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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    tensors: dict[str, Tensor] = {"random": checkpoint.random}
    if checkpoint.random_device is not None:
        tensors["random_device"] = checkpoint.random_device
    for part in PARTS_OF_TENSORS:
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
            f"{'; '.join(problems.values())}; there is no other checkpoint to continue from: start again without "
            f"--resume (and with --overwrite), in another folder, or after removing {folder.parent}"
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


def check_same_data(folder: Path, state: TrainingState, fingerprint: str) -> None:
    """Refuse to go on with other rows. Called before anything is written: a run that is refused stays as it is."""
    if not fingerprint.startswith(state.fingerprint):  # older ones have no hash at their end
        raise UserError(
            f"{folder}: cannot resume, the data has changed: it was {state.fingerprint}, now it is {fingerprint}"
        )


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it does not count as one that is kept."""
    path.replace(path.with_name(f"{path.name}{DAMAGED}"))


def _read(path: Path) -> Checkpoint:
    from safetensors import safe_open

    tensors = read_tensors(path)
    try:
        with safe_open(path, framework="pt") as file:
            stored: dict[str, Any] = json.loads((file.metadata() or {})[STATE_KEY])
        state = _parse_state({RENAMED.get(name, name): value for name, value in stored.items()})
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS_OF_TENSORS}
        random, random_device = tensors.pop("random"), tensors.pop("random_device", None)
        for key, tensor in tensors.items():
            part, name = key.split("/", 1)
            parts[part][name] = tensor
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = shortened(str(error), 200, quotes=False)
        raise UserError(f"{path}: not a checkpoint of this version of seq2see ({reason})") from None
    return Checkpoint(state, **parts, random=random, random_device=random_device)


def _parse_state(stored: dict[str, Any]) -> TrainingState:
    """The numbers of a checkpoint; a TypeError or ValueError if they are not of their types, or counts below 0."""
    unchecked = TrainingState(**stored)  # refuses unknown names, which pydantic would drop
    state: TrainingState = TypeAdapter(TrainingState).validate_python(asdict(unchecked))
    counts = {name: value for name, value in asdict(state).items() if type(value) is int}
    for name, value in counts.items():
        if not 0 <= value < 1 << 62:
            raise ValueError(f"{name} is {shortened(value)}")
    if not all(len(entry) == 2 for entry in state.kept):
        raise ValueError("kept should be a list of [value, update]")
    return state


# ---------------------------------------------------------------- resuming: where the rows of a run come from

SOURCES, TABLES = "data.json", "data"
"""The file that names the tables of a run, and the folder of the tables that were given in memory."""


@dataclass
class Sources:
    """The tables of a run, written into its folder so that --resume needs no further option.

    fine_tuned: the run started from another model's weights, which only its checkpoints still have; launch: the call of
    torchrun that began it (`launch_name` in training/distributed.py); teachers: the checksum of each model that
    teaches, by its folder.
    """

    data: str
    dev: str | None = None
    columns: list[str] | None = None
    fine_tuned: bool = False
    launch: str | None = None
    teachers: dict[str, str] = field(default_factory=dict)


def sources_of(
    recipe: Recipe, data: Data, dev: Data | None, columns: Sequence[str] | None, *, folder: Path
) -> tuple[Sources, dict[Path, bytes]]:
    """(the tables of a run, {path: content} of tables to write into its folder first: rows that were given in
    memory)."""
    if isinstance(columns, str):
        raise UserError(f"columns: expected a list of names, got the text '{columns}'")
    tables: dict[Path, bytes] = {}

    def path_of(rows: Data, what: str, name: str) -> str:
        if isinstance(rows, str | Path):
            return str(Path(rows).resolve())
        path = folder.resolve() / TABLES / name
        tables[path] = lines_of(recipe, rows, columns, what=what)
        return str(path)

    train_path = path_of(data, "data", "train.jsonl")
    dev_path = None if dev is None else path_of(dev, "dev", "dev.jsonl")
    return Sources(train_path, dev_path, list(columns) if columns else None), tables


def write_tables(tables: Mapping[Path, bytes]) -> None:
    """Write the tables of rows that were given in memory."""
    for path, content in tables.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from None
        write_bytes(path, content)


def check_free(folder: Path) -> None:
    """Refuse a folder that holds a run; one that was killed before its first checkpoint has nothing to lose."""
    kept = [folder / WEIGHTS, *(folder / CHECKPOINTS).glob("*.safetensors")]
    if not (folder / SOURCES).exists():
        kept += [folder / RECIPE, folder / METRICS]
    if any(path.exists() for path in kept):
        raise UserError(
            f"{folder} already holds a run, and nothing was changed; --resume continues it, --out names another "
            "folder, --overwrite replaces it"
        )


def resumable(folder: Path) -> tuple[Recipe, Sources]:
    """The recipe and the tables of the run in this folder."""
    if not (folder / SOURCES).is_file() or not (folder / RECIPE).is_file():
        raise UserError(f"{folder}: nothing to resume; a run's folder holds {RECIPE}, {SOURCES} and {CHECKPOINTS}/")
    return saved_recipe(folder), read_sources(folder / SOURCES)


def has_checkpoint(folder: Path, sources: Sources) -> bool:
    """Whether there is a checkpoint to resume from; a UserError where starting anew would lose something."""
    if checkpoint_paths(folder / CHECKPOINTS):
        return True
    missing = f"{folder}: nothing to resume, there is no checkpoint in {CHECKPOINTS}/"
    if (folder / WEIGHTS).exists():
        raise UserError(f"{missing}, but a model, which a new start would replace; start without --resume")
    if sources.fine_tuned:
        raise UserError(f"{missing}, and the run started from another model; start without --resume and with --from")
    return False


def was_restarted(folder: Path) -> bool:
    """Whether torchrun has started this process again, and has a checkpoint of the run that it began in this folder."""
    begun = is_restart() and checkpoint_paths(folder / CHECKPOINTS) and (folder / SOURCES).is_file()
    return bool(begun) and read_sources(folder / SOURCES).launch == launch_name()


def read_sources(path: Path) -> Sources:
    """The tables of a run, as its folder names them."""
    stored = read_json(path, most=MEBIBYTE, what="where a run's rows come from")
    try:
        return TypeAdapter(Sources).validate_python(stored, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where, got = ".".join(map(str, first["loc"])), shortened(first["input"])
        raise UserError(
            f"{path}: damaged, it does not say where the rows come from: '{where}': {first['msg']}, got {got}"
        ) from None


# ---------------------------------------------------------------- settings of a resumed run

PARTS = ("inputs", "output", "data", "encoder", "attention", "decoder", "evaluation")
"""Parts that determine the weights, the rows and which model is the best ..."""
FREE = DROPOUTS
"""... except these keys, at any depth."""
TRAINING = ("optimizer", "ema", "batch_tokens", "batch_rows", "bptt", "lanes", "seed", "metric")
"""The keys of `training` that determine the batches, their order, or the content of a checkpoint."""


def check_sources(
    before: Sources, *, data: str | Path | None, dev: str | Path | None, columns: Sequence[str] | None
) -> None:
    """Refuse other tables or columns than those of the run; None stands for an option that was not given."""
    options = {
        "--data": (None if data is None else str(Path(data).resolve()), before.data),
        "--dev": (None if dev is None else str(Path(dev).resolve()), before.dev),
        "--columns": (as_option(columns) if columns else None, as_option(before.columns) if before.columns else None),
    }
    for option, (now, then) in options.items():
        if now is not None and now != then:
            raise UserError(_changed(option, then if then is not None else "none", now))


def check_rows(before: Sources, tables: Mapping[Path, bytes]) -> None:
    """Refuse rows given in memory that are not those that the run has written into its folder."""
    for path, content in tables.items():
        stored = path.read_bytes() if str(path) in (before.data, before.dev) and path.is_file() else None
        if content != stored:
            raise UserError(_changed(path.stem, "other rows", "these"))


def resumed_recipe(before: Recipe, overrides: Sequence[str]) -> Recipe:
    """The recipe of a run with overrides, which may change limits and learning rate but not make it another run."""
    if not overrides:
        return before
    recipe = load_recipe(before, overrides=overrides)
    then, now = dict(_fixed(before.to_dict())), dict(_fixed(recipe.to_dict()))
    for key in dict.fromkeys([*then, *now]):
        if then.get(key) != now.get(key):
            raise UserError(_changed(key, then.get(key), now.get(key)))
    return recipe


def _changed(what: str, then: object, now: object) -> str:
    return (
        f"{what}: the run was started with {then}, got {now}; --resume continues a run as it was started; "
        "give another --out to start a new one"
    )


def _fixed(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path, value) of the settings that may not change."""
    for part in PARTS:
        yield from flatten(settings[part], part, free=FREE)
    for key in TRAINING:
        yield f"training.{key}", settings["training"][key]
