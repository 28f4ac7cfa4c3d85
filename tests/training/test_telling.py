"""What a run tells a person: lines, a bar, samples and curves."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from seq2see.data.columns import Question
from seq2see.looks import Prediction
from seq2see.recipe import Recipe
from seq2see.training import reports, trainer
from seq2see.training.reports import Progress, Report, UpdateStatus, samples_of
from seq2see.training.trackers import TensorBoard
from tests.system.small import RecordingListener, write_table
from tests.training.tiny import ROWS, journal, last_checkpoint, run, words


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


NUMBERS: dict[str, Any] = {"epoch": 0.5, "share": 0.25, "seconds": 120.0, "loss": 1.25, "speed": 9840.4}


def report(**given: Any) -> Report:
    settled: dict[str, Any] = {
        "update": 1200,
        "epoch": 1.0,
        "seconds": 60.0,
        "loss": 0.4119,
        "learning_rate": 0.001,
        "tokens_per_second": 9840.0,
        "gradient_norm": 0.7,
        "dev": {"exact": 0.61, "perplexity": 1.5},
        "baseline": {"exact": 0.0},
        "baseline_says": {"exact": "copying the input"},
    }
    return Report(**{**settled, **given})


def test_without_a_terminal_there_are_lines_and_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(reports.time, "monotonic", lambda: clock)
    out = io.StringIO()
    shown = Progress(out)
    for update in range(10, 130, 10):
        shown.on_update(UpdateStatus(updates=update, unit="tokens", **NUMBERS))
        clock += 10
    shown.close()
    line = "... {} updates  epoch 0.50  loss 1.250  9,840 tokens/s  about 6 min left"
    assert out.getvalue().splitlines() == [line.format(update) for update in (10, 40, 70, 100)]


def test_one_update_is_told_of_as_one() -> None:
    out = io.StringIO()
    Progress(out).on_report(report(update=1), "exact")
    assert out.getvalue().startswith("1 update  loss 0.412")


def test_in_a_terminal_one_line_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(reports.time, "monotonic", lambda: clock)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    shown = Progress(out)
    for update in (10, 20):
        shown.on_update(UpdateStatus(updates=update, unit="rows", **NUMBERS))
        clock += 0.5
    shown.on_message("a word")
    shown.close()
    written = out.getvalue()
    states = [part for part in written.replace("\r", "\x1b[2K").split("\x1b[2K") if "updates" in part]
    assert [re.search(r"(\d+)%\W+(\d+) updates", part).groups() for part in states[:2]] == [("25", "10"), ("25", "20")]
    assert "9,840 rows/s  about 6 min left" in states[1]
    assert not any("\n" in part for part in states[:2])
    assert "a word\n" in written, "a line of its own"
    assert "\x1b[?25l" not in written.rpartition("\x1b[?25h")[2], "the cursor is there at the end"


def test_a_report_is_a_line_with_its_samples_below() -> None:
    out = io.StringIO()
    samples = [
        {"input": "ab", "output": "A B", "reference": "A B", "right": True},
        {"input": "cd", "output": "C", "reference": "C D", "right": False},
        {"input": "", "output": "x" * 200, "reference": ""},
    ]
    Progress(out).on_report(report(best=True, samples=samples), "exact")
    first, right, wrong, long = out.getvalue().splitlines()
    assert first == (
        "1,200 updates  loss 0.412  dev exact 0.6100 (copying the input: 0.0000)  perplexity 1.50  best so far  "
        "9,840 tokens/s"
    )
    assert right.strip() == "ab -> A B  (right)"
    assert wrong.strip() == "cd -> C  (should be C D)"
    assert "…" in long
    assert len(long) < 130


def test_a_long_input_of_a_sample_is_cut_and_its_output_is_not() -> None:
    out = io.StringIO()
    samples = [
        {"input": "0.15 -0.14 " * 50, "output": "tap", "reference": "shake", "right": False},
        {"input": "x" * 200, "output": "y" * 90, "reference": ""},
    ]
    Progress(out).on_report(report(samples=samples), "accuracy")
    short, long = out.getvalue().splitlines()[1:]
    assert short.endswith("… -> tap  (should be shake)")
    assert long.endswith("x… -> " + "y" * 90)
    assert max(map(len, (short, long))) < 160


def test_samples_stand_in_the_journal(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    run(ROWS, data, tmp_path / "model", ["training.samples=2"], updates=3, dev=data)
    samples = journal(tmp_path / "model")[-1]["samples"]
    assert len(samples) == 2
    assert all(set(sample) == {"input", "output", "reference", "right"} for sample in samples)
    assert all(sample["reference"] == sample["input"] for sample in samples)  # the task is to copy
    assert all(sample["right"] == (sample["output"] == sample["input"]) for sample in samples)


def sample_of(said: str, references: list[str], *, metrics: tuple[str, ...] = (), **output: Any) -> dict[str, Any]:
    recipe = Recipe.model_validate({"inputs": {"source": {}}, "output": {"kind": "text", **output}})
    answer = {"label": said} if output.get("kind") == "label" else {"text": said}
    made = Prediction(input={"source": "x"}, log_probability=0.0, score=0.0, **answer)
    [found] = samples_of(recipe, [Question({"source": "x"}, references)], [made], metrics=list(metrics))
    return found


def test_a_sample_is_right_where_the_metric_says_so_and_shows_the_closest_reference() -> None:
    spelled = {"tokens": "symbol"}
    assert sample_of("R EH D", ["R IY D", "R EH D"], **spelled) == {
        "input": "x",
        "output": "R EH D",
        "reference": "R EH D",
        "right": True,
    }
    wrong = sample_of("R EH D Z", ["R IY D", "R EH D"], **spelled)
    assert (wrong["reference"], wrong["right"]) == ("R EH D", False)
    assert sample_of("a b", ["c", "a  b"])["right"]
    assert not sample_of("a b", ["A b"], metrics=("exact",))["right"]
    assert sample_of("a b", ["A b"], metrics=("bleu", "exact_lc"))["right"]
    assert sample_of("yes", ["no", "yes"], kind="label")["right"]


class Speeds(RecordingListener):
    """Remembers in what the speed of a run is told."""

    def __init__(self) -> None:
        super().__init__()
        self.units: set[object] = set()

    def on_update(self, status: UpdateStatus) -> None:  # type: ignore[override]
        self.units.add(status.unit)


def test_labels_are_counted_in_rows_whatever_their_classes_weigh(tmp_path: Path) -> None:
    rows = [{"source": f"{a}{b}", "output": "yes" if a == "a" else "no"} for a in "abc" for b in "abcdefgh"]
    table = write_table(tmp_path / "labels.tsv", rows)
    recipe = {
        "inputs": {"source": {"tokens": "character"}},
        "output": {"kind": "label"},
        "encoder": {"size": 4, "embedding": {"size": 4}},
        "decoder": {"size": 4},
        "loss": {"class_weights": {"yes": 7.0}},
        "training": {"epochs": 10, "threads": 1},
    }
    told = Speeds()
    run(recipe, table, tmp_path / "model", listeners=[told], dev=table)
    assert told.units == {"rows"}
    assert journal(tmp_path / "model")[-1]["unit"] == "rows"
    assert last_checkpoint(tmp_path / "model").state.seen == 10 * len(rows)


def test_curves_for_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
    board = TensorBoard(tmp_path)
    board.on_update(UpdateStatus(updates=10, unit="tokens", **NUMBERS))
    board.on_report(report(objective={"return_variance": 2.0}), "exact")
    board.on_message("a word")
    board.close()
    [written] = (tmp_path / "tensorboard").iterdir()
    content = written.read_bytes()
    assert all(name in content for name in (b"train/loss", b"train/gradient_norm", b"dev/exact", b"notes"))
    assert b"draws/return_variance" in content


def test_a_run_ends_when_its_minutes_are_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which every update takes ten seconds."""
    late = 0.0
    real, update = trainer.time.perf_counter, trainer.Trainer._update

    def slow(self: trainer.Trainer, batches: int) -> None:
        nonlocal late
        update(self, batches)
        late += 10

    monkeypatch.setattr(trainer.time, "perf_counter", lambda: real() + late)
    monkeypatch.setattr(trainer.Trainer, "_update", slow)
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", ["training.report_every=100"], minutes=1.5)
    ended = last_checkpoint(tmp_path / "model").state
    assert ended.finished
    assert 7 <= ended.updates <= 9  # 90 s, less what this machine took for the rest
    assert [line["update"] for line in journal(tmp_path / "model")] == [ended.updates]
