"""Updates without a finite gradient: one is passed over, a run of nothing else ends."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.errors import UserError
from seq2see.training import trainer
from seq2see.training.checkpoints import resumable
from seq2see.training.losses import Objective
from seq2see.training.run import replay
from seq2see.training.trainer import MOST_IN_A_ROW
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, TEXT, journal, last_checkpoint, run, same, text, weights, words


def spoil(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the gradients of these updates (from 1) be no numbers."""
    real = trainer.nn.utils.clip_grad_norm_
    calls = 0

    def spoiled(parameters: Any, limit: float) -> torch.Tensor:
        nonlocal calls
        calls += 1
        given = list(parameters)
        if calls in numbers:
            for parameter in given:
                if parameter.grad is not None:
                    parameter.grad.fill_(math.nan)
        return real(given, limit)

    monkeypatch.setattr(trainer.nn.utils, "clip_grad_norm_", spoiled)


@pytest.mark.parametrize("kind", ["rows", "stream"])
def test_an_update_without_a_finite_gradient_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    recipe, data = (ROWS, words(tmp_path / "words.tsv")) if kind == "rows" else (TEXT, text(tmp_path / "text.txt"))
    spoil(monkeypatch, 3, 4, 7)
    told = RecordingListener()
    run(recipe, data, tmp_path / "model", updates=10, listeners=[told])
    state = last_checkpoint(tmp_path / "model").state
    assert (state.updates, state.skipped, state.skipped_in_a_row) == (10, 3, 0)
    assert [note.partition(";")[0] for note in told.notes if "finite" in note] == [
        "update 3: the loss or its gradient is not finite, no step was taken",
        "update 7: the loss or its gradient is not finite, no step was taken (3 so far)",
        "3 of 10 updates took no step: the loss or its gradient was not finite",
    ]
    assert all(bool(tensor.isfinite().all()) for tensor in weights(tmp_path / "model").values())
    assert math.isfinite(journal(tmp_path / "model")[-1]["loss"])


def test_too_many_of_them_on_end_end_the_run_and_the_best_model_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch, *range(13, 100))
    how = ["training.report_every=5", "training.checkpoint_every=4", "training.learning_rate=0.5", "training.clip=5"]
    with pytest.raises(UserError) as caught:
        run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", how, updates=200)
    message = str(caught.value)
    assert f"not finite in {MOST_IN_A_ROW} updates in a row, the last of them update {12 + MOST_IN_A_ROW}" in message
    assert (
        "training.learning_rate 0.5 and training.clip 5; try training.learning_rate=0.05 or training.clip=1" in message
    )
    best = next(line for line in reversed(journal(tmp_path / "model")) if line["best"])
    assert f"the best model so far, of update {best['update']}, is kept in {tmp_path / 'model'}" in message
    assert seq2see.load(tmp_path / "model").predict("ab").text is not None
    assert last_checkpoint(tmp_path / "model").state.updates == 12  # none of weights that may be lost


def test_an_absurd_learning_rate_ends_in_a_message(tmp_path: Path) -> None:
    how = ["training.optimizer=sgd", "training.learning_rate=1e38", "training.clip=0", "training.warmup=0"]
    said = r"the run diverges: .* no clipping .*learning_rate=1e\+37 or training.clip=1; there was no report before"
    for number, (every, happened) in enumerate([(1, "weights that are not finite"), (100, "updates in a row")]):
        more = [*how, f"training.report_every={every}"]
        with pytest.raises(UserError, match=said) as caught:
            run(ROWS, words(tmp_path / "words.tsv"), tmp_path / f"model{number}", more, updates=200)
        assert happened in str(caught.value)


def test_a_report_that_is_no_number_is_never_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, reports = trainer.Trainer._evaluated, 0

    def lost(self: trainer.Trainer) -> Any:
        nonlocal reports
        reports += 1
        report = real(self)
        if reports == 1:
            report.dev = dict.fromkeys(report.dev, math.nan)
        return report

    monkeypatch.setattr(trainer.Trainer, "_evaluated", lost)
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", ["training.report_every=5"], updates=10)
    assert [line["best"] for line in journal(tmp_path / "model")] == [True, True]  # a first one, then a better one


def test_a_run_passed_over_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = words(tmp_path / "words.tsv")
    plain = ["training.schedule=constant", "training.warmup=0"]
    spoil(monkeypatch, 3)
    run(ROWS, data, tmp_path / "whole", plain, updates=8)
    monkeypatch.undo()
    spoil(monkeypatch, 3)
    run(ROWS, data, tmp_path / "parts", plain, updates=5)
    run(ROWS, None, tmp_path / "parts", plain, updates=8, resume=True)
    assert same(last_checkpoint(tmp_path / "parts").weights, last_checkpoint(tmp_path / "whole").weights)
    assert last_checkpoint(tmp_path / "parts").state.skipped == 1


@pytest.mark.parametrize(("weight", "what"), [("1e38", r"loss.coverage \(weight 1e\+38\)"), ("", "the gradient")])
def test_a_run_in_which_no_update_took_a_step_leaves_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weight: str, what: str
) -> None:
    if not weight:
        spoil(monkeypatch, 1, 2, 3)
    how = [f"loss.coverage={weight}"] if weight else []
    with pytest.raises(UserError, match=rf"nothing was learned: in all 3 updates .*{what},? was not finite"):
        run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", how, updates=3)
    assert not (tmp_path / "model" / "model.safetensors").exists()


def test_an_update_that_was_not_finite_can_be_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of one row is no number. Its update is saved with weights and random state: dropout repeats itself."""
    totals: list[float] = []
    usual = Objective.loss

    def spoiled(self: Objective, model: Any, step: Any, ready: Any, batch: Any, **named: Any) -> Any:
        loss = usual(self, model, step, ready, batch, **named)
        if 7 in batch.rows:
            totals.append(float(loss.total.detach()))
            loss.total = loss.total * math.nan
        return loss

    monkeypatch.setattr(Objective, "loss", spoiled)
    told = RecordingListener()
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=30, listeners=[told])
    skipped = last_checkpoint(tmp_path / "model").state.skipped
    assert skipped == len(totals) > 1
    assert any("--replay" in note for note in told.notes)
    kept = {path: path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file()}

    found = replay(*resumable(tmp_path / "model"), folder=tmp_path / "model")
    assert 7 in found.rows
    assert found.parameters
    assert totals[-1] == totals[skipped - 1]
    assert {path: path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file()} == kept


def test_there_is_nothing_to_compute_again_where_all_was_finite(tmp_path: Path) -> None:
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=2)
    with pytest.raises(UserError, match="nothing to replay"):
        replay(*resumable(tmp_path / "model"), folder=tmp_path / "model")
