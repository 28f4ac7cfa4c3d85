"""Experiment trackers as listeners of a run: TensorBoard, MLflow, Weights & Biases.

A tracker is given to `train(..., listeners=[...])`, or named by `seq2see train --track`. It begins a run of its own
with the first report, and ends it when the training ends. Addresses, tokens and offline modes are the tracker's own
settings (MLFLOW_TRACKING_URI, WANDB_MODE=offline ...).
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import yaml

from seq2see.errors import UserError, imported, nearest
from seq2see.files import MEBIBYTE, read_text
from seq2see.pipeline.bundle import RECIPE
from seq2see.training.reports import Report, UpdateStatus

PROJECT = "seq2see"
"""The experiment (MLflow) or project (W&B) of runs, unless another one is named."""
LONGEST_VALUE = 250


def scalars_of(report: Report) -> dict[str, float]:
    """The numbers of a report by name, the same for all trackers; those that are not finite are left out."""
    numbers = {
        "train/loss": report.loss,
        "train/learning_rate": report.learning_rate,
        "train/gradient_norm": report.gradient_norm,
        "train/epoch": report.epoch,
        f"train/{report.unit}_per_second": report.tokens_per_second,
        **{f"draws/{name}": value for name, value in report.objective.items()},
        **{f"dev/{name}": value for name, value in report.dev.items()},
        **{f"baseline/{name}": value for name, value in report.baseline.items()},
    }
    return {name: float(value) for name, value in numbers.items() if math.isfinite(value)}


def settings_of(folder: Path | None) -> dict[str, str]:
    """The recipe in a run's folder as {dotted key: value}; empty where there is none."""
    path = None if folder is None else folder / RECIPE
    if path is None or not path.is_file():
        return {}
    raw = yaml.safe_load(read_text(path, most=MEBIBYTE, what="a recipe"))
    return {key: value[:LONGEST_VALUE] for key, value in _flat(raw, "")}


def _flat(value: Any, prefix: str) -> list[tuple[str, str]]:
    if isinstance(value, dict) and value:
        return [pair for key, part in value.items() for pair in _flat(part, f"{prefix}.{key}" if prefix else str(key))]
    return [(prefix, str(value))]


class Tracker(ABC):
    """A listener that passes reports on to a tracker.

    folder: of the run, whose recipe is logged too; name: of the tracker's run (default: the folder's). Used in a `with`
    statement, a run that ends with an error is marked as failed.
    """

    def __init__(self, folder: str | Path | None = None, *, name: str | None = None):
        self.folder = None if folder is None else Path(folder)
        self.name = name or (None if self.folder is None else self.folder.resolve().name)
        self._running = False

    @abstractmethod
    def begin(self, settings: dict[str, str]) -> None:
        """Begin a run with these settings."""

    @abstractmethod
    def log(self, numbers: dict[str, float], update: int) -> None:
        """Log the numbers of a report."""

    @abstractmethod
    def note(self, message: str) -> None:
        """Log a message."""

    @abstractmethod
    def end(self, *, failed: bool) -> None:
        """End the run."""

    def on_update(self, status: UpdateStatus) -> None:  # noqa: B027 - trackers show reports alone
        """Nothing."""

    def on_report(self, report: Report, metric: str) -> None:
        self._begin()
        self.log(scalars_of(report), report.update)

    def on_message(self, message: str) -> None:
        if self._running:  # messages before the run's folder is there are on the terminal
            self.note(message)

    def close(self) -> None:
        self._end(failed=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(failed=kind is not None)

    def _begin(self) -> None:
        if not self._running:
            self.begin(settings_of(self.folder))
            self._running = True

    def _end(self, *, failed: bool) -> None:
        if self._running:
            self._running = False
            self.end(failed=failed)


class TensorBoard(Tracker):
    """Curves for TensorBoard, in the folder `tensorboard` of the run's."""

    def __init__(self, folder: str | Path, *, name: str | None = None):
        super().__init__(folder, name=name)
        imported("tensorboard", extra="tensorboard")
        self._module = imported("torch.utils.tensorboard", extra="tensorboard")

    def begin(self, settings: dict[str, str]) -> None:
        assert self.folder is not None
        self.writer = self._module.SummaryWriter(str(self.folder / "tensorboard"))
        if settings:
            rows = "".join(f"| {key} | {value} |\n" for key, value in settings.items())
            self.writer.add_text("recipe", f"| key | value |\n|---|---|\n{rows}")

    def log(self, numbers: dict[str, float], update: int) -> None:
        for name, value in numbers.items():
            self.writer.add_scalar(name, value, update)
        self.writer.flush()

    def note(self, message: str) -> None:
        self.writer.add_text("notes", message)

    def end(self, *, failed: bool) -> None:
        self.writer.close()


class MLflow(Tracker):
    """A run of MLflow, at the address that MLFLOW_TRACKING_URI names (without it, in the working folder).

    experiment: its name, or MLFLOW_EXPERIMENT_NAME (default: seq2see).
    """

    def __init__(self, folder: str | Path | None = None, *, name: str | None = None, experiment: str | None = None):
        super().__init__(folder, name=name)
        self.experiment = experiment
        self._mlflow = imported("mlflow", extra="mlflow")

    def begin(self, settings: dict[str, str]) -> None:
        self.client = self._mlflow.MlflowClient()
        name = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or PROJECT
        known = self.client.get_experiment_by_name(name)
        number = self.client.create_experiment(name) if known is None else known.experiment_id
        self.run_id = self.client.create_run(number, run_name=self.name).info.run_id
        for key, value in settings.items():
            self.client.log_param(self.run_id, key, value)

    def log(self, numbers: dict[str, float], update: int) -> None:
        for name, value in numbers.items():
            self.client.log_metric(self.run_id, name.replace("@", "_at_"), value, step=update)

    def note(self, message: str) -> None:
        self.client.set_tag(self.run_id, "seq2see.note", message)

    def end(self, *, failed: bool) -> None:
        self.client.set_terminated(self.run_id, status="FAILED" if failed else "FINISHED")


class WandB(Tracker):
    """A run of Weights & Biases; WANDB_MODE=offline keeps it on this machine.

    project: its name, or WANDB_PROJECT (default: seq2see).
    """

    def __init__(self, folder: str | Path | None = None, *, name: str | None = None, project: str | None = None):
        super().__init__(folder, name=name)
        self.project = project
        self._wandb = imported("wandb", extra="wandb")

    def begin(self, settings: dict[str, str]) -> None:
        self.run = self._wandb.init(
            project=self.project or os.environ.get("WANDB_PROJECT") or PROJECT,
            name=self.name,
            config=settings,
            dir=None if self.folder is None else str(self.folder),
            reinit="create_new",
        )

    def log(self, numbers: dict[str, float], update: int) -> None:
        self.run.log(numbers, step=update)

    def note(self, message: str) -> None:
        self.run.summary["note"] = message

    def end(self, *, failed: bool) -> None:
        self.run.finish(exit_code=1 if failed else 0)


TRACKERS: dict[str, Callable[[Path], Tracker]] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WandB}
"""By the name that `seq2see train --track` takes."""


def tracker_named(name: str, folder: Path) -> Tracker:
    """A tracker for the run in a folder."""
    if name not in TRACKERS:
        raise UserError(f"--track: unknown tracker '{name}'{nearest(name, TRACKERS)}; allowed: {', '.join(TRACKERS)}")
    return TRACKERS[name](folder)
