"""Variants under the same updates and seeds: refused up front, resumed, never trained twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.errors import UserError
from seq2see.evaluation.ranking import Ranking
from seq2see.locking import lock_folder
from seq2see.training import comparing
from seq2see.training.comparing import RESULTS, Results
from seq2see.training.reports import best_report
from seq2see.training.run import train
from tests.system.small import RecordingListener
from tests.training import tiny

VARY = ["attention.score=dot,none"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.words(tmp_path_factory.mktemp("compare") / "words.csv")


def compare(data: Path, out: Path, **given: Any) -> tuple[Ranking, list[str]]:
    """The ranking, and what was said."""
    told = RecordingListener()
    given = {"vary": VARY, "updates": 3, **given}
    return seq2see.compare(tiny.ROWS, data, out=out, listeners=[told], **given), told.notes


@pytest.fixture(scope="module")
def held(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ranking, list[str]]:
    return compare(data, tmp_path_factory.mktemp("held"), seeds=2)


def test_every_variant_is_trained_from_every_seed(held: tuple[Ranking, list[str]]) -> None:
    ranking, notes = held
    assert [one.name for one in ranking.contenders] == ["dot", "none"]
    for one in ranking.contenders:
        assert [outcome.seed for outcome in one.outcomes] == [1, 2]
        assert {outcome.updates for outcome in one.outcomes} == {3}
        assert all(0 < outcome.seconds_per_update <= outcome.seconds / 3 for outcome in one.outcomes)
    runs = [note for note in notes if ", seed " in note]
    assert [note.split(":")[0] for note in runs] == ["dot, seed 1", "none, seed 1", "dot, seed 2", "none, seed 2"]
    assert "4 of 4 runs" in runs[-1]
    assert len(set(notes)) == len(notes)


def test_each_outcome_is_that_of_training_alone(held: tuple[Ranking, list[str]], data: Path, tmp_path: Path) -> None:
    ranking, _ = held
    outcome = ranking.contenders[0].outcomes[1]
    alone = tiny.run(tiny.ROWS, data, tmp_path, ["training.patience=0"], updates=3, seed=2)
    assert outcome.metrics == best_report(tmp_path)["dev"]
    assert tiny.same(tiny.weights(tmp_path), tiny.weights(Path(outcome.model)))
    assert outcome.parameters == sum(part.numel() for part in alone.bundle.network.parameters())


def test_what_is_finished_is_not_trained_again(
    held: tuple[Ranking, list[str]], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranking, _ = held
    folder = Path(ranking.folder)
    with (folder / RESULTS).open("a") as file:
        file.write('{"run": "cut sho')
    monkeypatch.setattr(comparing, "train", None)
    again, notes = compare(data, folder, seeds=2)
    assert again == ranking
    assert all(note.endswith("(trained before)") for note in notes)
    monkeypatch.undo()
    more, _ = compare(data, folder, vary=["attention.score=general"])
    assert len(Results(folder)._outcomes) == 5
    assert more.best.name == "general"
    assert (folder / RESULTS).read_text().count("\n") == 5


def test_other_rows_are_another_comparison(held: tuple[Ranking, list[str]], data: Path, tmp_path: Path) -> None:
    other = tiny.words(tmp_path / data.name, seed=5)
    _, notes = compare(other, Path(held[0].folder), updates=1, vary=["attention.score=dot"])
    assert not any(note.endswith("(trained before)") for note in notes)


def test_a_run_that_is_stopped_is_gone_on_with(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _ = compare(data, tmp_path / "whole", updates=25, vary=["attention.score=dot"])

    class Stopping(RecordingListener):
        def on_update(self, status: object) -> None:
            signal.raise_signal(signal.SIGINT)

    given: dict[str, Any] = {"vary": ["attention.score=dot"], "updates": 25, "out": tmp_path / "cut"}
    stopping = Stopping()
    with pytest.raises(KeyboardInterrupt):
        seq2see.compare(tiny.ROWS, data, listeners=[stopping], **given)
    assert "the comparison was stopped" in stopping.notes[-1]
    resumed = []
    monkeypatch.setattr(
        comparing, "train", lambda *a, resume, **k: resumed.append(resume) or train(*a, resume=resume, **k)
    )
    cut = seq2see.compare(tiny.ROWS, data, listeners=[], **given)
    assert resumed == [True]
    first, second = whole.best.outcomes[0], cut.best.outcomes[0]
    assert first.metrics == second.metrics
    assert tiny.same(tiny.weights(Path(first.model)), tiny.weights(Path(second.model)))
    assert not (Path(second.model) / "checkpoints").exists()


def test_what_cannot_be_is_refused_before_anything_is_trained(data: Path, tmp_path: Path) -> None:
    vary = ["attention.score=dot,general,none", "decoder.size=6,9", "attention.query=previous,current"]
    with pytest.raises(UserError) as refused:
        compare(data, tmp_path / "out", vary=vary)
    lines = str(refused.value).splitlines()
    assert lines[0] == "4 variants of 12 cannot be trained; --skip leaves them out:"
    assert len([line for line in lines if "score dot, size 9" in line and "decoder.size equal" in line]) == 2
    assert len([line for line in lines if "score none" in line and "attention.query: has no effect" in line]) == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"updates": None}, True),
        ({"updates": None, "minutes": 0.001}, False),
        ({"updates": None, "overrides": ["training.minutes=0.001"]}, False),
        ({"updates": 1}, False),
    ],
)
def test_the_clock_of_the_recipe_is_told(data: Path, tmp_path: Path, given: dict[str, Any], told: bool) -> None:
    heard = RecordingListener()
    recipe = {**tiny.ROWS, "training": {**tiny.ROWS["training"], "minutes": 0.001}}
    seq2see.compare(recipe, data, vary=["attention.score=dot"], out=tmp_path, listeners=[heard], **given)
    clock = [note for note in heard.notes if "slower variants may get fewer updates; --updates N" in note]
    assert bool(clock) == told


def test_what_cannot_be_may_be_left_out(data: Path, tmp_path: Path) -> None:
    ranking, notes = compare(
        data, tmp_path, vary=["attention.score=dot,general", "decoder.size=9"], updates=1, skip=True
    )
    assert [one.name for one in ranking.contenders] == ["score general, size 9"]
    assert len(ranking.left_out) == 1
    assert notes[0].startswith("left out: score dot, size 9: ")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"overrides": ["attention.score=dot"]}, "--set attention.score=dot: attention.score varies"),
        ({"vary": ["training.seed=1,2"]}, "--seeds 3 trains every variant from three seeds"),
        ({"vary": ["training.updates=1,2"]}, "training.updates: given twice"),
        ({"seeds": 0}, "seeds: 0 given"),
        ({"vary": ["attention.score=nod,dto"], "skip": True}, "2 variants of 2 cannot be trained:"),
        ({"vary": ["encoder.size=1,2"], "overrides": ["decoder.sise=1"]}, "^recipe: decoder.sise: unknown key"),
        ({"vary": ["training.metric=cer,perplexity"]}, r"different metrics \(cer, perplexity\)"),
        ({"columns": ["x", "y"]}, "x"),
        ({"vary": ["data.dev_share=0.1,0.2"]}, "--vary data.dev_share: variants would be measured on other rows"),
        ({"vary": ["data={dev_share: 0.1},{dev_share: 0.2}"]}, "give data.dev_share one value, with --set"),
        ({"vary": ["evaluation.metrics=[cer],[cer, exact]"]}, "--vary evaluation.metrics: variants would be measured"),
        ({"vary": ["inputs.source.column=source,output"]}, "--vary inputs.source.column: variants would be measured"),
        ({"vary": ["output.case=keep,lower"]}, "--vary output.case: variants would be measured"),
        ({"vary": ["task=a,b"]}, "--vary task: has no effect on what is learned"),
        ({"vary": ["attention.temperature=0.5,1,1.0"]}, "'1' and '1.0' are the same recipe"),
    ],
)
def test_what_makes_no_sense_is_refused(data: Path, tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compare(data, tmp_path / "out", **given)


def test_its_files_are_not_strewn_over_others(data: Path, tmp_path: Path) -> None:
    tiny.run(tiny.ROWS, data, tmp_path / "model", updates=1)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=r"model .*nothing was changed"):
        compare(data, tmp_path / "model")
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(UserError, match=r"--out .*words.csv: a file; a comparison needs a folder"):
        compare(data, data)


def test_a_variant_that_diverges_leaves_the_others(data: Path, tmp_path: Path) -> None:
    given = {"vary": ["training.learning_rate=0.01,1e30"], "overrides": ["training.clip=0", "training.warmup=0"]}
    ranking, notes = compare(data, tmp_path, updates=30, seeds=2, **given)
    assert [one.name for one in ranking.contenders] == ["0.01"]
    assert "diverges" in ranking.left_out[0]
    assert len([note for note in notes if note.startswith("1e30, seed")]) == 1


def test_two_processes_do_not_meet_in_one_folder(data: Path, tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(UserError, match=rf"in use by process {os.getpid()} on "):
        compare(data, tmp_path)
    compare(data, tmp_path, updates=1, vary=["attention.score=dot"])


def test_another_comparison_does_not_replace_the_rows_of_this_one(tmp_path: Path) -> None:
    """Rows in memory are written into the folder by whoever holds it, and stay there until the comparison ends."""
    own, others = ([{"source": text, "output": text} for text in texts] for texts in (["ab", "ba"] * 8, ["b", "a"] * 8))
    recipe = {**tiny.ROWS, "training": {**tiny.ROWS["training"], "minutes": 0.001}}

    class Meddler(RecordingListener):
        """Runs another comparison in the same folder as soon as it is told something."""

        def on_message(self, message: str) -> None:
            if not self.notes:
                seq2see.compare(tiny.ROWS, others, vary=["attention.score=dot"], updates=1, out=tmp_path, listeners=[])
            super().on_message(message)

    seq2see.compare(recipe, own, vary=["attention.score=dot"], out=tmp_path, listeners=[meddler := Meddler()])
    assert meddler.notes
    written = (tmp_path / "data" / "train.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in written] == own


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text(json.dumps({"run": "a"}) + "\n" + json.dumps({"run": "b"}) + "\n")
    with pytest.raises(UserError, match=r"results.jsonl: damaged"):
        Results(tmp_path)
