"""Searches for settings: budget, early stops, invalid settings, kills; what is best trains again and predicts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import seq2see
from seq2see.errors import MissingExtra, UserError
from seq2see.evaluation.trials import Tuning
from seq2see.files import write_bytes
from seq2see.recipe import load_recipe
from seq2see.training import tuning
from seq2see.training.reports import METRICS, Report, best_report
from seq2see.training.tuning import BEST, JOURNAL, MODEL, REPORT, _Watch, draw_tuning
from tests.system.small import RecordingListener
from tests.training import tiny

RATE = "training.learning_rate"
SPACE: dict[str, Any] = {RATE: {"low": 0.001, "high": 0.1, "log": True}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.words(tmp_path_factory.mktemp("tune") / "words.csv")


class Runs:
    """In place of training: reports at every tenth of a run, whose cer is nearer 0 the nearer the learning rate is
    to 0.01 and the later it is; a clock that runs as fast as its minutes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.now, self.rates = 100.0, list[float]()
        self.stop_at: Callable[[int, int], BaseException | None] = lambda run, report: None
        monkeypatch.setattr(tuning, "train", self.train)
        monkeypatch.setattr("os.fsync", lambda file: None)  # of each line of the journal
        monkeypatch.setattr(tuning, "time", SimpleNamespace(monotonic=lambda: self.now))

    def train(self, recipe: Any, sources: Any, *, folder: Path, listeners: Any) -> None:
        rate, seconds = recipe.training.learning_rate, 60 * recipe.training.minutes
        self.rates.append(rate)
        folder.mkdir(parents=True)
        off = abs(math.log10(rate) + 2)
        lines = []
        for number in range(1, 11):
            self.now += seconds / 10
            report = Report(
                number, number / 5, number * seconds / 10, 0.0, 0.0, 0.0, 0.0, dev={"cer": off + 1 / number}
            )
            lines.append(report)
            error = self.stop_at(len(self.rates), number)
            if error is not None:
                raise error
            for listener in listeners:
                listener.on_report(report, "cer")
        lines[-1].best = True
        write_bytes(folder / METRICS, "".join(json.dumps(line.to_dict()) + "\n" for line in lines).encode())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(monkeypatch)


def tune(data: Any, out: Path, **given: Any) -> tuple[Tuning, list[str]]:
    told = RecordingListener()
    given = {"minutes": 10, "space": SPACE, **given}
    return seq2see.tune(tiny.ROWS, data, out=out, listeners=[told], **given), told.notes


def test_the_time_is_kept_and_bad_trials_end_early(runs: Runs, data: Path, tmp_path: Path) -> None:
    found, _ = tune(data, tmp_path)
    assert runs.rates[0] == 0.01 == found.trials[0].settings[RATE]  # the recipe as it is comes first
    assert found.best.number == found.own == 0
    assert found.share == 1.0
    assert runs.now - 100 == pytest.approx(60 * found.spent)
    assert 9 < found.spent <= 10
    counts = found.counts
    assert counts["complete"] >= 4
    assert counts["pruned"] >= 1
    assert counts.total() > 10
    for trial in found.trials:
        assert trial.seconds == pytest.approx(60.0) if trial.state == "complete" else 12 <= trial.seconds < 60
    worst = max(found.trials, key=lambda trial: abs(math.log10(trial.settings[RATE]) + 2))
    assert worst.state == "pruned" or worst.number < 5
    assert str(counts["complete"] + counts["pruned"]) in found.warning
    assert found.warning in found.text()
    assert [path.name for path in (tmp_path / "trials").iterdir()] == ["0000"]


def test_trials_share_the_time_and_do_not_outlast_the_recipe(runs: Runs, data: Path, tmp_path: Path) -> None:
    found, _ = tune(data, tmp_path / "few", trials=3)
    assert (len(found.trials), found.share) == (3, pytest.approx(10 / 3))
    found, _ = tune(data, tmp_path / "short", trials=3, overrides=["training.minutes=0.5"])
    assert found.share == 0.5
    again, _ = tune(data, tmp_path / "again", trials=3, overrides=["training.minutes=0.5"])
    assert [trial.settings for trial in again.trials] == [trial.settings for trial in found.trials]
    other, _ = tune(data, tmp_path / "other", trials=3, overrides=["training.minutes=0.5"], seed=2)
    assert [trial.settings for trial in other.trials[1:]] != [trial.settings for trial in found.trials[1:]]


def test_auto_is_fitted_to_the_table_first(runs: Runs, data: Path, tmp_path: Path) -> None:
    auto = ["encoder.size=auto", "training.batch_tokens=auto", "training.epochs=auto", "attention.score=general"]
    tune(data, tmp_path, space={"decoder.dropout": {"choices": [0.1, 0.2]}}, trials=1, overrides=auto)
    alone = tiny.run(tiny.ROWS, data, tmp_path / "alone", [*auto, "training.updates=1"]).recipe
    best = load_recipe(tmp_path / BEST)
    assert (best.encoder.size, best.training.epochs) == (alone.encoder.size, alone.training.epochs)
    assert best.encoder.size != load_recipe(tiny.ROWS, overrides=auto).encoder.size
    recipe = {**tiny.ROWS, "encoder": {**tiny.ROWS["encoder"], "size": "auto"}, "attention": {"score": "general"}}
    told = seq2see.tune(recipe, data, minutes=10, trials=1, out=tmp_path / "sizes", listeners=[])
    assert told.trials[told.own or 0].settings["encoder.size"] == alone.encoder.size


def test_invalid_settings_are_counted_by_their_rules(runs: Runs, data: Path, tmp_path: Path) -> None:
    space = {"attention.score": {"choices": ["dot", "general"]}, "decoder.size": {"choices": [6, 9]}}
    found, notes = tune(data, tmp_path, space=space)
    assert found.invalid == {"attention-sizes": 1}
    assert (found.counts["complete"], found.counts["invalid"]) == (3, 1)
    assert any("all 4 combinations were tried" in note for note in notes)
    assert found.to_dict()["invalid"] == {"attention-sizes": 1}
    assert "attention-sizes 1" in found.text()


def test_trials_that_fail_are_left_and_too_many_end_the_search(runs: Runs, data: Path, tmp_path: Path) -> None:
    runs.stop_at = lambda run, report: UserError("the run diverges") if run == 2 and report == 5 else None
    found, _ = tune(data, tmp_path / "one", trials=3)
    assert [trial.state for trial in found.trials] == ["complete", "failed", "complete"]
    assert found.trials[1].reasons == ("the run diverges",)
    runs.stop_at = lambda run, report: UserError("the rows are bad")
    runs.rates.clear()
    with pytest.raises(UserError, match="the rows are bad"):
        tune(data, tmp_path / "all")
    assert len(runs.rates) == 5


def test_a_killed_search_goes_on(runs: Runs, data: Path, tmp_path: Path) -> None:
    runs.stop_at = lambda run, report: KeyboardInterrupt() if run == 3 and report == 5 else None
    with pytest.raises(KeyboardInterrupt):
        tune(data, tmp_path)
    with (tmp_path / JOURNAL).open("a") as file:
        file.write('{"op_code": 4, "cut sho')
    runs.stop_at = lambda run, report: None
    with pytest.raises(UserError, match="nothing was changed"):
        tune(data, tmp_path)
    for given, what in (
        ({"seed": 2}, "the seed changed"),
        ({"space": {RATE: {"low": 0.001, "high": 0.2}}}, "the space changed"),
        ({"overrides": ["loss.label_smoothing=0.1"]}, "the recipe or the rows changed"),
    ):
        with pytest.raises(UserError, match=what):
            tune(data, tmp_path, resume=True, **given)
    found, notes = tune(data, tmp_path, resume=True)
    assert any("trial 2 was stopped before its end, and is repeated" in note for note in notes)
    assert runs.rates[3] == runs.rates[2]
    assert [trial.number for trial in found.trials][:3] == [0, 1, 3]
    assert len({trial.settings[RATE] for trial in found.trials}) == len(found.trials)
    assert runs.now - 100 <= 600 + 60 / 10  # what the killed trial took counts, up to its last report
    before = len(runs.rates)
    more, _ = tune(data, tmp_path, resume=True, minutes=12)
    assert more.trials[: len(found.trials)] == found.trials
    assert len(runs.rates) > before
    with pytest.raises(UserError, match="nothing to resume"):
        tune(data, tmp_path / "nowhere", resume=True)


def test_a_trial_that_crashes_twice_has_failed(runs: Runs, data: Path, tmp_path: Path) -> None:
    """One that its user stops, however often, has not."""
    given: dict[str, Any] = {"space": {RATE: {"choices": [0.01, 0.02]}}, "resume": True}
    runs.stop_at = lambda run, report: RuntimeError("out of memory") if runs.rates[-1] == 0.01 else None
    with pytest.raises(RuntimeError):
        tune(data, tmp_path, **{**given, "resume": False})
    crash, runs.stop_at = runs.stop_at, lambda run, report: KeyboardInterrupt()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            tune(data, tmp_path, **given)
    runs.stop_at = crash
    with pytest.raises(RuntimeError):
        tune(data, tmp_path, **given)
    assert runs.rates == [0.01] * 4
    found, _ = tune(data, tmp_path, **given)
    assert {trial.settings[RATE]: trial.state for trial in found.trials if trial.state != "repeated"} == {
        0.01: "failed",
        0.02: "complete",
    }
    failed = next(trial for trial in found.trials if trial.state == "failed")
    assert "out of memory" in failed.reasons[0]


def test_a_damaged_journal_is_named(runs: Runs, data: Path, tmp_path: Path) -> None:
    tune(data, tmp_path, trials=1)
    (tmp_path / JOURNAL).write_text('{"op_code": 0}\n', "utf-8")
    with pytest.raises(UserError, match=rf"{JOURNAL}: damaged"):
        tune(data, tmp_path, trials=1, resume=True)


def test_a_trial_is_compared_at_equal_shares_of_its_time() -> None:
    """What Optuna is told: by each tenth the best score so far, whenever reports come; and its median decides."""
    import optuna

    def study() -> Any:
        made = optuna.create_study(direction="maximize", pruner=tuning._pruner(optuna))
        for height in (0.2, 0.4, 0.6, 0.8):
            values = {step: height * step / 10 for step in range(1, 10)}
            made.add_trial(optuna.trial.create_trial(value=height, intermediate_values=values))
        return made

    settings = load_recipe(tiny.ROWS, overrides=["training.minutes=1"]).training

    def follow(scores: dict[float, float]) -> dict[int, float]:
        trial = study().ask()
        watch = _Watch(trial, settings)
        for seconds, score in scores.items():
            watch.on_report(Report(1, 0.0, seconds, 0.0, 0.0, 0.0, 0.0, dev={"exact": score}), "exact")
        values: dict[int, float] = trial.study.trials[-1].intermediate_values
        return values

    told = {**dict.fromkeys(range(1, 6), 0.35), **dict.fromkeys(range(6, 10), 0.5), 10: 0.9}
    assert follow({5: 0.35, 21: 0.1, 39: 0.5, 40: 0.6, 60: 0.9}) == {**told, 7: 0.6, 8: 0.6, 9: 0.6}
    with pytest.raises(tuning._Pruned):  # the median by 4 tenths is 0.2
        follow({5: 0.19, 25: 0.19})
    assert follow({5: 0.21, 25: 0.21, 45: 0.5}) == {**dict.fromkeys(range(1, 7), 0.21), 7: 0.5}
    follow({5: 0.01, 7: 0.01, 11: 0.01})  # not before two tenths
    with pytest.raises(tuning._Pruned):
        follow({5: 0.01, 7: 0.01, 13: 0.01})


def test_the_best_recipe_trains_and_the_best_model_predicts(data: Path, tmp_path: Path) -> None:
    space = {RATE: {"choices": [0.01, 0.02]}, "encoder.size": {"choices": [6, 8]}}
    schedule = ["training.schedule=constant", "training.warmup=0"]  # others follow the clock
    common = ["training.updates=2", "attention.score=general", *schedule]
    found, _ = tune(data, tmp_path, minutes=30, space=space, trials=2, overrides=common)
    assert [trial.state for trial in found.trials if trial.state != "repeated"] == ["complete", "complete"]
    folder, best = Path(found.folder), found.best
    assert best_report(folder / MODEL)["dev"] == best.dev
    assert seq2see.load(folder / MODEL).predict("ab").text is not None
    assert not (folder / MODEL / "checkpoints").exists()
    recipe = load_recipe(folder / BEST)
    assert best.settings == {RATE: recipe.training.learning_rate, "encoder.size": recipe.encoder.size}
    tiny.run(folder / BEST, data, tmp_path / "again")
    assert best_report(tmp_path / "again")["dev"] == best.dev
    assert tiny.same(tiny.weights(tmp_path / "again"), tiny.weights(folder / MODEL))
    record = json.loads((folder / f"{REPORT}.json").read_text("utf-8"))
    assert record["best"]["settings"] == best.settings
    assert record["warning"] == found.warning
    assert (folder / f"{REPORT}.txt").read_text("utf-8") == found.text() == str(found)
    assert all(path.stat().st_size > 3000 for path in draw_tuning(found, title="words"))


def test_values_of_a_column_are_held_out_as_dev(runs: Runs, tmp_path: Path) -> None:
    rows = [{"source": "ab" * (number % 4 + 1), "output": "a", "who": "xyz"[number % 3]} for number in range(30)]
    _, notes = tune(rows, tmp_path, by="who", trials=1)
    tables = [
        [json.loads(line)["who"] for line in path.read_text("utf-8").splitlines()]
        for path in sorted((tmp_path / "folds").rglob("*.jsonl"))
    ]
    assert [set(table) for table in tables] in ([{"x"}, {"y", "z"}], [{"y", "z"}, {"x"}])
    assert sum(map(len, tables)) == 30
    assert any("which are not trained on" in note for note in notes)
    with pytest.raises(UserError, match="give one"):
        tune(rows, tmp_path / "other", by="who", dev=rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"minutes": 0}, "minutes: 0 given"),
        ({"trials": 0}, "trials: 0 given"),
        ({"overrides": ["training.deterministic=true", "training.epochs=1"]}, r"deterministic: .*training\.minutes"),
        ({"space": {"encoder.sise": {"choices": [1, 2]}}}, r"space: encoder\.sise: unknown key"),
        ({"overrides": [f"{RATE}=0.1"]}, r"training\.learning_rate: is given with --set"),
    ],
)
def test_what_makes_no_sense_is_refused(data: Path, tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        tune(data, tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_the_extra_is_named_where_it_is_missing(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(MissingExtra, match=r"seq2see\[tune\]"):
        tune(data, tmp_path)
