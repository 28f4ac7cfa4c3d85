"""The learning rate against its formulas, and runs that end early or slow down."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from seq2see.errors import UserError
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.weights import read_tensors
from seq2see.recipe.schema import TrainingSettings
from seq2see.training import trainer
from seq2see.training.optimizer import (
    average_weights,
    check_schedule,
    existing_weights,
    keep_best,
    rate_factor,
    remove_weights,
    share_done,
)
from seq2see.training.reports import Report
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, run, weights, words

SHARES = [0.1, 0.3, 0.55, 0.9, 1.0]


def settings(**given: object) -> TrainingSettings:
    return TrainingSettings.model_validate({"warmup": 0.1, "floor": 0.05, **given})


@pytest.mark.parametrize("schedule", ["linear", "cosine", "inverse-sqrt", "constant", "plateau"])
def test_the_rate_rises_from_nothing(schedule: str) -> None:
    assert rate_factor(settings(schedule=schedule), 0.05) == pytest.approx(0.5)
    assert 0 < rate_factor(settings(schedule=schedule), 0.0) <= 0.001


def test_linear() -> None:
    for share in SHARES:
        left = (share - 0.1) / 0.9
        assert rate_factor(settings(schedule="linear"), share) == pytest.approx(1 - 0.95 * left)


def test_cosine() -> None:
    for share in SHARES:
        left = (share - 0.1) / 0.9
        expected = 0.05 + 0.95 * math.cos(math.pi * left / 2) ** 2
        assert rate_factor(settings(schedule="cosine"), share) == pytest.approx(expected)


def test_inverse_square_root() -> None:
    for share in SHARES:
        assert rate_factor(settings(schedule="inverse-sqrt"), share) == pytest.approx(math.sqrt(0.1 / share))


def test_beyond_the_end_the_rate_stays_at_the_floor() -> None:
    assert rate_factor(settings(schedule="linear"), 1.7) == pytest.approx(0.05)


def test_the_nearest_limit_rules() -> None:
    limits = settings(epochs=10, updates=100, minutes=2)
    assert share_done(limits, epochs=1, updates=30, seconds=12) == pytest.approx(0.3)
    assert share_done(limits, epochs=5, updates=30, seconds=12) == pytest.approx(0.5)
    assert share_done(limits, epochs=1, updates=30, seconds=90) == pytest.approx(0.75)


def test_a_schedule_without_an_end_is_refused() -> None:
    with pytest.raises(UserError, match=r"training\.schedule: cosine needs an end of the run"):
        check_schedule(settings(epochs=0))
    with pytest.raises(UserError, match="epochs, updates, minutes or patience"):
        check_schedule(settings(epochs=0, schedule="constant"))
    check_schedule(settings(epochs=0, schedule="constant", patience=3))


def judged(values: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Dev reports that say what the test wants them to say, in turn."""
    left = iter(values)

    def judge(bundle: Bundle, rows: object, names: object, **_: object) -> Report:
        return Report(0, 0, 0, 0, 0, 0, 0, dev={"cer": next(left)})

    monkeypatch.setattr("seq2see.training.run.dev_report", judge)


def test_patience_ends_a_run_and_the_best_weights_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged([0.9, 0.5, 0.7, 0.6, 0.1], monkeypatch)
    told, seen = RecordingListener(), {}
    write = trainer.write_tensors

    def spy(path: Path, tensors: dict[str, torch.Tensor]) -> None:
        seen["best"] = {name: tensor.clone() for name, tensor in tensors.items()}
        write(path, tensors)

    monkeypatch.setattr(trainer, "write_tensors", spy)
    data, how = words(tmp_path / "words.tsv"), ["training.report_every=5", "training.patience=2"]
    run(ROWS, data, tmp_path / "model", how, updates=100, listeners=[told])
    lines = journal(tmp_path / "model")
    assert [line["update"] for line in lines] == [5, 10, 15, 20]
    assert [line["best"] for line in lines] == [True, True, False, False]
    assert any("no better cer in 2 reports: stopped early" in note for note in told.notes)
    stored = weights(tmp_path / "model")
    assert all(torch.equal(stored[name], seen["best"][name]) for name in stored)


def test_plateau_halves_the_rate_when_nothing_gets_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged([0.5, 0.6, 0.4, 0.4, 0.4], monkeypatch)
    how = ["training.report_every=4", "training.schedule=plateau", "training.warmup=0", "training.learning_rate=0.01"]
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", how, updates=20)
    rates = [line["learning_rate"] for line in journal(tmp_path / "model")]
    assert rates == pytest.approx([0.01, 0.01, 0.005, 0.005, 0.0025])


def test_the_mean_is_that_of_the_best(tmp_path: Path) -> None:
    kept: list[list[float]] = []
    for update, value in enumerate([0.3, 0.9, 0.1, 0.7], start=1):
        kept = keep_best(tmp_path, {"w": torch.full((2,), update * 1.0)}, kept, value=value, update=update, most=2)
    assert kept == [[0.9, 2], [0.7, 4]]
    assert average_weights(tmp_path, kept)["w"].tolist() == [3.0, 3.0]
    existing, problems = existing_weights(tmp_path, [*kept, [0.5, 99]])
    assert existing == kept
    assert [Path(problem.partition(":")[0]).name for problem in problems] == ["best-000000099.safetensors"]
    remove_weights(tmp_path, but=kept)
    assert {path.name for path in tmp_path.iterdir()} == {"best-000000002.safetensors", "best-000000004.safetensors"}


@pytest.mark.parametrize("mean_is_better", [True, False])
def test_the_mean_becomes_the_model_where_it_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mean_is_better: bool
) -> None:
    judged([0.5, 0.4, 0.9, 0.3 if mean_is_better else 0.45], monkeypatch)
    files: dict[str, list[dict[str, torch.Tensor]]] = {}

    def spy(folder: Path, kept: list[list[float]]) -> dict[str, torch.Tensor]:
        files["kept"] = [read_tensors(folder / f"best-{int(update):09d}.safetensors") for _, update in kept]
        return average_weights(folder, kept)

    monkeypatch.setattr(trainer, "average_weights", spy)
    how = ["training.report_every=5", "training.average=2"]
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", how, updates=15)
    best, second = files["kept"]
    stored = weights(tmp_path / "model")
    for name in stored:
        expected = (best[name] + second[name]) / 2 if mean_is_better else best[name]
        assert torch.allclose(stored[name], expected, atol=1e-7)
