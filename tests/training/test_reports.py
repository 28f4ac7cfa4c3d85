"""Reports of a run: what they write down, when they come and what they measure."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.pipeline import evaluator
from seq2see.pipeline.evaluator import plan_evaluation
from seq2see.recipe import load_recipe
from seq2see.recipe.schema import TrainingSettings
from seq2see.training import trainer
from seq2see.training.reports import (
    FEWEST_REPORTS,
    LARGEST_SHARE,
    METRICS,
    MOST_UPDATES_BETWEEN_REPORTS,
    PASS_COST,
    Journal,
    Report,
    best_report,
    epochs_between_reports,
)
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, journal, run, words

STRANGE = "/data/\udcff\u2028.png"
"""A path with a byte that is no UTF-8, and a sign that ends lines for some."""


def test_a_path_that_is_no_utf8_ends_no_run(tmp_path: Path) -> None:
    journal = Journal(tmp_path, up_to=None)
    samples = [{"input": STRANGE, "output": "ein Käse", "reference": ""}]
    numbers = {"epoch": 1.0, "seconds": 1.0, "loss": 1.0, "learning_rate": 1.0, "tokens_per_second": 1.0}
    for update in (1, 2):
        journal.write(Report(update=update, gradient_norm=1.0, samples=samples, **numbers))
    lines = (tmp_path / METRICS).read_bytes().decode("utf-8").split("\n")
    assert [json.loads(line)["samples"] for line in lines if line] == [samples, samples]
    assert "Käse" in lines[0], "text stays readable"
    assert best_report(tmp_path)["update"] == 2


# ---------------------------------------------------------------- when reports come


@pytest.mark.parametrize("trained", [100, 3000, 40_000])
@pytest.mark.parametrize("evaluated", [5, 150, 2000])
def test_reports_take_a_twentieth_at_most(trained: int, evaluated: int) -> None:
    """By the work of a report beside that of the epochs before it, and not more seldom than that needs."""
    endless = TrainingSettings(epochs=0, minutes=5)
    epochs = epochs_between_reports(endless, trained=trained, evaluated=evaluated, batches=7)

    def share(epochs: int) -> float:
        return PASS_COST * evaluated / (epochs * trained)

    assert share(epochs) <= LARGEST_SHARE * (1 + 1e-9)
    assert epochs == 1 or share(epochs - 1) > LARGEST_SHARE


def test_a_run_has_some_reports_whatever_they_cost() -> None:
    many = {"trained": 100, "evaluated": 10_000, "batches": 10}
    assert epochs_between_reports(TrainingSettings(epochs=80), **many) == 80 // FEWEST_REPORTS
    assert epochs_between_reports(TrainingSettings(epochs=0, updates=400), **many) == 40 // FEWEST_REPORTS
    assert epochs_between_reports(TrainingSettings(epochs=3), **many) == 1
    assert epochs_between_reports(TrainingSettings(epochs=80, schedule="plateau"), **many) == 1
    seldom = epochs_between_reports(TrainingSettings(epochs=0, minutes=5), trained=100, evaluated=10_000, batches=300)
    assert seldom * 300 <= MOST_UPDATES_BETWEEN_REPORTS


def test_a_run_that_ends_by_the_clock_has_reports_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many are wanted that one is late after every epoch, on any machine."""
    monkeypatch.setattr(trainer, "FEWEST_REPORTS", 1 << 40)
    lines = small_run(tmp_path, epochs=17, minutes=60)
    assert [line["epoch"] for line in lines] == list(range(1, 18))


def small_run(folder: Path, *overrides: str, name: str = "model", **given: Any) -> list[dict[str, Any]]:
    """60 words to train on and 40 to measure: the reports of a run."""
    data, dev = words(folder / "words.tsv"), words(folder / "dev.tsv", count=40, seed=5)
    how = ["training.dev_rows=0", *overrides]
    run(ROWS, data, folder / name, how, **{"dev": dev, "epochs": 16} | given)
    return journal(folder / name)


def test_reports_come_after_whole_epochs_and_at_the_end(tmp_path: Path) -> None:
    told = RecordingListener()
    lines = small_run(tmp_path, epochs=17, listeners=[told])
    assert [line["epoch"] for line in lines] == [2, 4, 6, 8, 10, 12, 14, 16, 17]
    assert any("a report every 2 epochs" in note for note in told.notes)


def test_the_recipe_may_ask_for_more_reports(tmp_path: Path) -> None:
    told = RecordingListener()
    lines = small_run(tmp_path, "training.report_every=5", epochs=0, updates=20, listeners=[told])
    assert [line["update"] for line in lines] == [5, 10, 15, 20]
    assert not any("a report every" in note for note in told.notes)


@pytest.mark.parametrize(("patience", "ends_at"), [(15, 25), (10, 20), (2, 20)])
def test_patience_is_of_epochs_where_reports_are_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: int, ends_at: int
) -> None:
    """Of reports after 5, 10, 15 ... epochs the second one is the best. A single worse one ends no run."""
    values = iter([0.9, 0.5, 0.7, 0.6, 0.7, 0.1])
    monkeypatch.setattr(
        "seq2see.training.run.dev_report",
        lambda bundle, rows, names, **_: Report(0, 0, 0, 0, 0, 0, 0, dev={"cer": next(values)}),
    )
    told = RecordingListener()
    lines = small_run(tmp_path, f"training.patience={patience}", epochs=40, listeners=[told])
    assert [line["epoch"] for line in lines] == list(range(5, ends_at + 1, 5))
    assert [line["best"] for line in lines[:3]] == [True, True, False]
    assert any("no better cer" in note and "stopped early" in note for note in told.notes)


def test_a_resumed_run_reports_at_the_same_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is stopped three updates after its second report, between two that are planned."""
    whole = small_run(tmp_path, name="whole")
    stop, last = trainer.stop_on_signals, whole[1]["update"] + 3

    class Later(trainer.StopRequest):
        asked = 0

        def __bool__(self) -> bool:  # asked before every update
            Later.asked += 1
            self.number = signal.SIGTERM if Later.asked > last else None
            return self.number is not None

    @contextmanager
    def stopped(**_: object) -> Iterator[trainer.StopRequest]:
        yield Later()

    monkeypatch.setattr(trainer, "stop_on_signals", stopped)
    with pytest.raises(SystemExit):
        small_run(tmp_path, name="parts")
    assert [line["update"] for line in journal(tmp_path / "parts")] == [line["update"] for line in whole[:2]]
    monkeypatch.setattr(trainer, "stop_on_signals", stop)
    run(None, None, tmp_path / "parts", resume=True)
    parts = journal(tmp_path / "parts")
    assert [line["update"] for line in parts] == [line["update"] for line in whole]
    assert [line["dev"] for line in parts] == [line["dev"] for line in whole]


# ---------------------------------------------------------------- what they measure


def test_work_counts_rows_as_often_as_they_are_read() -> None:
    """Six rows of four inputs: all outputs are scored, and each input is answered once."""
    rows = [{"source": word, "output": f"{number}"} for number, word in enumerate(["a", "a", "a", "b", "c", "d"])]
    text, label = load_recipe("transliteration"), load_recipe("entailment")
    assert plan_evaluation(text, rows, ["exact", "perplexity"], most=0).work == 4 + 6
    assert plan_evaluation(text, rows, ["perplexity"], most=0).work == 6
    assert plan_evaluation(text, rows, ["exact"], most=1).work in (1 + 1, 1 + 3)
    pairs = [{"premise": row["source"], "hypothesis": "x", "output": "yes"} for row in rows]
    assert plan_evaluation(label, pairs, ["accuracy"], most=0).work == 4


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_outputs_are_scored_as_training_computes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    """The perplexity of a report is computed in the precision of training, its outputs are searched for in full."""
    reduced: dict[str, set[bool]] = {"score_rows": set(), "predict": set()}
    for name, seen in reduced.items():
        plain = getattr(evaluator, name)

        def spy(*given: Any, plain: Any = plain, seen: set[bool] = seen, **options: Any) -> Any:
            seen.add(torch.is_autocast_enabled("cpu"))
            return plain(*given, **options)

        monkeypatch.setattr(evaluator, name, spy)
    lines = small_run(tmp_path, f"training.precision={precision}", epochs=2)
    assert reduced == {"score_rows": {precision == "bfloat16"}, "predict": {False}}
    dev = seq2see.load(tmp_path / "model").evaluate(tmp_path / "dev.tsv").metrics
    best = max(lines, key=lambda line: (line["best"], line["update"]))
    assert best["dev"]["perplexity"] == pytest.approx(dev["perplexity"], rel=0.02 if precision == "bfloat16" else 1e-5)


def test_perplexity_may_be_the_only_metric(tmp_path: Path) -> None:
    lines = small_run(tmp_path, "evaluation.metrics=[perplexity]", epochs=1)
    assert list(lines[-1]["dev"]) == ["perplexity"]
    assert "samples" not in lines[-1]
