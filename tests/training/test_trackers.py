"""Trackers: TensorBoard, MLflow and W&B, with stand-ins, and with the packages where they are installed."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from seq2see.errors import MissingExtra, UserError
from seq2see.training.reports import Report, UpdateStatus
from seq2see.training.trackers import TRACKERS, MLflow, Tracker, WandB, scalars_of, tracker_named
from tests.commands import Run

Call = Callable[..., Run]
PROJECT = Path(__file__).resolve().parents[2]


def report(update: int = 10, **more: Any) -> Report:
    numbers = {"epoch": 1.0, "seconds": 2.0, "loss": 0.5, "learning_rate": 0.1, "tokens_per_second": 99.0}
    return Report(update, **numbers, gradient_norm=3.0, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("decoder: {size: 8}\ntask: names\n", encoding="utf-8")
    return tmp_path / "run"


def test_the_numbers_of_a_report() -> None:
    numbers = scalars_of(report(dev={"exact": 0.25, "perplexity": float("inf")}, baseline={"exact": 0.0}, unit="rows"))
    assert numbers["train/loss"] == 0.5
    assert numbers["train/rows_per_second"] == 99.0
    assert numbers["dev/exact"] == 0.25
    assert numbers["baseline/exact"] == 0.0
    assert "dev/perplexity" not in numbers


class FakeClient:
    """What `MLflow` uses of `mlflow.MlflowClient`."""

    calls: list[tuple[Any, ...]] = []

    def get_experiment_by_name(self, name: str) -> None:
        self.calls.append(("experiment", name))

    def create_experiment(self, name: str) -> str:
        return "7"

    def create_run(self, experiment_id: str, *, run_name: str | None) -> Any:
        self.calls.append(("run", experiment_id, run_name))
        return SimpleNamespace(info=SimpleNamespace(run_id="r"))

    def log_param(self, run_id: str, key: str, value: str) -> None:
        self.calls.append(("param", run_id, key, value))

    def log_metric(self, run_id: str, key: str, value: float, *, step: int) -> None:
        self.calls.append(("metric", run_id, key, value, step))

    def set_tag(self, run_id: str, key: str, value: str) -> None:
        self.calls.append(("tag", run_id, key, value))

    def set_terminated(self, run_id: str, *, status: str) -> None:
        self.calls.append(("end", run_id, status))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[FakeClient]:
    monkeypatch.setattr(FakeClient, "calls", [])
    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(MlflowClient=FakeClient))
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    return FakeClient


def follow(tracker: Tracker) -> None:
    tracker.on_message("before the run")
    tracker.on_update(UpdateStatus(1, 0.1, 0.0, 1.0, 0.5, 9.0, "tokens"))
    tracker.on_report(report(10, dev={"exact@5": 0.25}), "exact@5")
    tracker.on_message("a note")
    tracker.on_report(report(20, dev={"exact@5": 0.5}), "exact@5")


def test_mlflow(client: type[FakeClient], folder: Path) -> None:
    tracker = MLflow(folder)
    follow(tracker)
    tracker.close()
    tracker.close()
    calls = client.calls
    assert calls[:2] == [("experiment", "seq2see"), ("run", "7", "run")]
    assert ("param", "r", "decoder.size", "8") in calls
    assert ("metric", "r", "dev/exact_at_5", 0.25, 10) in calls
    assert ("metric", "r", "dev/exact_at_5", 0.5, 20) in calls
    assert [call for call in calls if call[0] in ("tag", "end")] == [
        ("tag", "r", "seq2see.note", "a note"),
        ("end", "r", "FINISHED"),
    ]


def test_a_run_that_fails_is_marked(client: type[FakeClient], folder: Path) -> None:
    def train() -> None:
        with MLflow(folder, name="mine", experiment="own") as tracker:
            follow(tracker)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        train()
    assert ("experiment", "own") in client.calls
    assert ("run", "7", "mine") in client.calls
    assert client.calls[-1] == ("end", "r", "FAILED")


def test_wandb(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    begun: list[dict[str, Any]] = []
    logged: list[tuple[dict[str, float], int]] = []
    ended: list[int] = []
    run = SimpleNamespace(
        log=lambda numbers, step: logged.append((numbers, step)),
        finish=lambda exit_code: ended.append(exit_code),
        summary={},
    )

    def init(**options: Any) -> Any:
        begun.append(options)
        return run

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    tracker = WandB(folder)
    follow(tracker)
    tracker.close()
    (options,) = begun
    assert options["project"] == "seq2see"
    assert options["name"] == "run"
    assert options["config"]["decoder.size"] == "8"
    assert options["dir"] == str(folder)
    assert [(numbers["dev/exact@5"], step) for numbers, step in logged] == [(0.25, 10), (0.5, 20)]
    assert run.summary == {"note": "a note"}
    assert ended == [0]


@pytest.fixture
def without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses of other machines cannot be reached."""
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"no network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)


@pytest.mark.usefixtures("without_a_network")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow's use of SQLAlchemy
def test_mlflow_itself(monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra `mlflow` is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    with MLflow(folder) as tracker:
        follow(tracker)
    assert (tmp_path / "mlflow.db").is_file()
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("seq2see").experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.metrics["dev/exact_at_5"] == 0.5
    assert run.data.params["decoder.size"] == "8"


@pytest.mark.usefixtures("without_a_network")
def test_wandb_itself(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    pytest.importorskip("wandb", reason="the extra `wandb` is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with WandB(folder) as tracker:
        follow(tracker)
    assert list((folder / "wandb").glob("offline-run-*/*.wandb"))


def test_make_install_brings_all_trackers() -> None:
    """Otherwise the two tests above are skipped everywhere."""
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    extras = re.search(r"^EXTRAS +\?= (.+)$", makefile, flags=re.MULTILINE)
    assert extras
    assert TRACKERS.keys() <= set(extras[1].split(","))


@pytest.mark.parametrize("name", ["mlflow", "wandb", "tensorboard"])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"seq2see\[{name}\]"):
        tracker_named(name, folder)


def test_names(call: Call, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=", ".join(TRACKERS)):
        tracker_named("mlfow", folder)
    (tmp_path / "t.tsv").write_text("source\toutput\n" + "a\tb\n" * 9, encoding="utf-8")
    words = ["transliteration", "--data", tmp_path / "t.tsv", "--out", tmp_path / "out", "--track", "mlfow"]
    run = call("train", *words)
    assert run.code == 2
    assert "mlfow" in run.err
    assert not (tmp_path / "out").exists()


def test_a_training_is_tracked(call: Call, client: type[FakeClient], tmp_path: Path) -> None:
    rows = "".join(f"{a}{b}\t{b}{a}\n" for a in "abcd" for b in "abcd")
    (tmp_path / "t.tsv").write_text(f"latin\tnative\n{rows}", encoding="utf-8")
    small = ["--set", "encoder.size=8", "--set", "decoder.size=8", "--updates", 2, "--track", "mlflow"]
    run = call("train", "transliteration", "--data", tmp_path / "t.tsv", "--out", tmp_path / "out", *small)
    assert run.code == 0, run.err
    kinds = {call[0] for call in client.calls}
    assert {"run", "param", "metric", "end"} <= kinds
    assert ("param", "r", "decoder.size", "8") in client.calls
    assert client.calls[-1] == ("end", "r", "FINISHED")
