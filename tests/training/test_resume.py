"""A run can be stopped, killed and gone on with, and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import seq2see
from seq2see.errors import UserError
from seq2see.training import trainer
from seq2see.training.checkpoints import Checkpoint
from tests.system.small import RecordingListener
from tests.training.tiny import ROWS, TEXT, journal, last_checkpoint, run, same, text, weights, words

INTERVAL, UPDATES, KILLED_AFTER = 60, 75, 70

KILLED = """
import json, os, signal, sys
import torch
import seq2see
torch.set_num_threads(1)

class Killer:
    def on_update(self, status):
        if status.updates >= int(sys.argv[4]):
            os.kill(os.getpid(), int(sys.argv[5]))
    def on_report(self, report, metric): pass
    def on_message(self, message): print(message)
    def close(self): pass

recipe, data, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
seq2see.train(recipe, data=data, out=folder, listeners=[Killer()])
"""


def run_until_signal(
    recipe: dict[str, Any], data: Path, folder: Path, *, after: int, number: int, script: str = KILLED
) -> tuple[int, str]:
    """A run in a process of its own, which gets a signal after so many updates: its exit code, and what it said."""
    given = [json.dumps(recipe), str(data), str(folder), str(after), str(number)]
    done = subprocess.run(
        [sys.executable, "-c", script, *given],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def with_training(recipe: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {**recipe, "training": {**recipe["training"], **settings}}


def untimed(line: dict[str, Any]) -> dict[str, Any]:
    """A line of the journal without what a clock says."""
    return {key: value for key, value in line.items() if key not in ("seconds", "tokens_per_second")}


@pytest.mark.parametrize("kind", ["rows", "stream", "rewards"])
def test_killed_between_two_checkpoints_and_resumed_ends_with_the_same_bits(tmp_path: Path, kind: str) -> None:
    """A run with rewards is killed in the part that has them."""
    if kind == "rows":
        data = words(tmp_path / "words.tsv")
        recipe = with_training(ROWS, average=2, scheduled_sampling=0.5)
    elif kind == "rewards":
        data = words(tmp_path / "words.tsv")
        recipe = {**ROWS, "loss": {"reward": {"metric": "edit", "last": 0.4}}}
    else:
        data = text(tmp_path / "text.txt")
        recipe = TEXT
    dropped = {"recurrent_dropout": 0.1, "weight_drop": 0.1, "variational": True}
    dropped |= {"embedding": {"size": 4, "symbol_dropout": 0.1}}
    recipe = {**recipe, **{part: {**recipe[part], **dropped} for part in ("encoder", "decoder") if part in recipe}}
    recipe = with_training(recipe, updates=UPDATES, report_every=25, checkpoint_every=INTERVAL)
    run(recipe, data, tmp_path / "whole")

    folder = tmp_path / "killed"
    code, _ = run_until_signal(recipe, data, folder, after=KILLED_AFTER, number=signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert last_checkpoint(folder).state.updates == INTERVAL
    run(recipe, None, folder, resume=True)

    assert same(weights(folder), weights(tmp_path / "whole"))
    resumed, whole = last_checkpoint(folder), last_checkpoint(tmp_path / "whole")
    assert resumed.state.updates == whole.state.updates == UPDATES
    assert same(resumed.weights, whole.weights)
    assert same(resumed.optimizer, whole.optimizer)
    assert same(resumed.carried, whole.carried)
    assert bool((resumed.random == whole.random).all())
    assert bool(resumed.carried) == (kind == "stream")
    assert resumed.state.objective == whole.state.objective
    assert resumed.state.rewarding == (kind == "rewards") == ("reward" in resumed.state.objective)
    assert [untimed(line) for line in journal(folder)] == [untimed(line) for line in journal(tmp_path / "whole")]
    reports = [line["update"] for line in journal(folder) if not line["averaged"]]
    assert reports == [25, 50, 75]


@pytest.mark.parametrize("kind", ["rows", "stream"])
def test_killed_before_its_first_report_it_goes_on_from_the_beginning(tmp_path: Path, kind: str) -> None:
    if kind == "rows":
        data, recipe = words(tmp_path / "words.tsv"), with_training(ROWS, updates=25, report_every=20)
    else:
        data, recipe = text(tmp_path / "text.txt"), with_training(TEXT, updates=25, report_every=20)
    code, _ = run_until_signal(recipe, data, tmp_path / "killed", after=10, number=signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert last_checkpoint(tmp_path / "killed").state.updates == 0
    told = RecordingListener()
    run(recipe, None, tmp_path / "killed", resume=True, listeners=[told])
    assert any("starting from the beginning" in note for note in told.notes)
    run(recipe, data, tmp_path / "whole")
    assert same(last_checkpoint(tmp_path / "killed").weights, last_checkpoint(tmp_path / "whole").weights)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
    assert [line["update"] for line in journal(tmp_path / "killed")] == [20, 25]


def test_what_a_transformer_has_in_sight_of_a_stream_survives_a_kill(tmp_path: Path) -> None:
    """Its memory is longer than a piece of the text, so that it is carried over several."""
    data = text(tmp_path / "text.txt")
    decoder = {"kind": "transformer", "size": 8, "heads": 2, "layers": 2, "memory": 12, "embedding": {"size": 4}}
    recipe = with_training({**TEXT, "decoder": decoder}, updates=16, checkpoint_every=6)
    run(recipe, data, tmp_path / "whole")
    code, said = run_until_signal(recipe, data, tmp_path / "killed", after=9, number=signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    state = last_checkpoint(tmp_path / "killed")
    assert state.state.updates == 6
    assert {tuple(part.shape) for part in state.carried.values()} == {(3, 2, 12, 4)}
    run(recipe, None, tmp_path / "killed", resume=True)
    resumed, whole = last_checkpoint(tmp_path / "killed"), last_checkpoint(tmp_path / "whole")
    assert same(resumed.carried, whole.carried)
    assert same(resumed.weights, whole.weights)


def test_what_hard_looks_learned_by_survives_a_kill(tmp_path: Path) -> None:
    """The moving baseline is part of a run: without it the first updates after a resume would be others."""
    data = words(tmp_path / "words.tsv")
    recipe = with_training({**ROWS, "attention": {"choice": "hard", "size": 4}}, updates=30, checkpoint_every=10)
    run(recipe, data, tmp_path / "whole")
    code, said = run_until_signal(recipe, data, tmp_path / "killed", after=15, number=signal.SIGKILL)
    assert code == -signal.SIGKILL, said
    state = last_checkpoint(tmp_path / "killed").state
    assert state.updates == 10
    assert state.objective.keys() == {"baseline", "return_variance", "gradient_variance"}
    run(recipe, None, tmp_path / "killed", resume=True)
    resumed, whole = last_checkpoint(tmp_path / "killed"), last_checkpoint(tmp_path / "whole")
    assert resumed.state.objective == whole.state.objective != state.objective
    assert same(resumed.weights, whole.weights)
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))


def test_where_updates_are_slow_the_clock_asks_for_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each update of the second run takes two minutes of a clock that is moved by hand."""
    data = words(tmp_path / "words.tsv")
    recipe = with_training(ROWS, updates=12, report_every=50, checkpoint_seconds=300)
    run(recipe, data, tmp_path / "plain")
    written: list[int] = []
    late = 0.0
    real, update, save = trainer.time.perf_counter, trainer.Trainer._update, trainer.save_checkpoint

    def slow(self: trainer.Trainer, batches: int) -> None:
        nonlocal late
        update(self, batches)
        late += 120

    def noted(folder: Path, checkpoint: Checkpoint) -> Path:
        written.append(checkpoint.state.updates)
        return save(folder, checkpoint)

    monkeypatch.setattr(trainer.time, "perf_counter", lambda: real() + late)
    monkeypatch.setattr(trainer.Trainer, "_update", slow)
    monkeypatch.setattr(trainer, "save_checkpoint", noted)
    run(recipe, data, tmp_path / "slow")
    assert written == [0, 3, 6, 9, 12, 12]
    assert same(weights(tmp_path / "slow"), weights(tmp_path / "plain"))


def test_a_checkpoint_that_takes_long_is_written_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 30 s, an update 130 s; the first and the next take 60 s, which is 2 % of 23 updates."""
    data, late = words(tmp_path / "words.tsv"), 0.0
    real, update, save = trainer.time.perf_counter, trainer.Trainer._update, trainer.save_checkpoint
    written: list[int] = []

    def slow(self: trainer.Trainer, batches: int) -> None:
        nonlocal late
        update(self, batches)
        late += 130

    def noted(folder: Path, checkpoint: Checkpoint) -> Path:
        nonlocal late
        late += 30
        written.append(checkpoint.state.updates)
        return save(folder, checkpoint)

    monkeypatch.setattr(trainer.time, "perf_counter", lambda: real() + late)
    monkeypatch.setattr(trainer.Trainer, "_update", slow)
    monkeypatch.setattr(trainer, "save_checkpoint", noted)
    run(ROWS, data, tmp_path / "default", updates=40)
    assert written == [0, 23, 35, 40]
    written.clear()
    run(ROWS, data, tmp_path / "off", ["training.checkpoint_seconds=0"], updates=40)
    assert written == [0, 40]


@pytest.mark.parametrize("kind", ["rows", "stream"])
def test_killed_after_a_checkpoint_by_the_clock_it_resumes_there_with_the_same_bits(tmp_path: Path, kind: str) -> None:
    recipe, data = (ROWS, words(tmp_path / "words.tsv")) if kind == "rows" else (TEXT, text(tmp_path / "text.txt"))
    recipe = with_training(recipe, updates=45, report_every=20, average=2, checkpoint_seconds=1e-9)
    run(with_training(recipe, checkpoint_seconds=0), data, tmp_path / "whole")
    always = "import seq2see.training.checkpoints; seq2see.training.checkpoints.LARGEST_SHARE = 1e9\n"
    code, said = run_until_signal(
        recipe, data, tmp_path / "killed", after=30, number=signal.SIGKILL, script=always + KILLED
    )
    assert code == -signal.SIGKILL, said
    state, told = last_checkpoint(tmp_path / "killed").state, RecordingListener()
    assert state.updates == 29
    run(recipe, None, tmp_path / "killed", resume=True, listeners=[told])
    assert any(note.startswith("resuming from update 29 (epoch ") for note in told.notes)
    resumed, whole = last_checkpoint(tmp_path / "killed"), last_checkpoint(tmp_path / "whole")
    assert same(resumed.weights, whole.weights)
    assert same(resumed.optimizer, whole.optimizer)
    assert same(resumed.carried, whole.carried)
    assert bool((resumed.random == whole.random).all())
    assert same(weights(tmp_path / "killed"), weights(tmp_path / "whole"))
    assert [untimed(line) for line in journal(tmp_path / "killed")] == [
        untimed(line) for line in journal(tmp_path / "whole")
    ]


def test_a_folder_where_a_run_had_not_begun_is_free(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    run(ROWS, data, folder, updates=1)
    with pytest.raises(UserError, match=r"nothing was changed; .*--overwrite"):
        run(ROWS, data, folder, updates=1)
    for path in [folder / "model.safetensors", folder / "metrics.jsonl", *(folder / "checkpoints").iterdir()]:
        path.unlink()
    run(ROWS, data, folder, updates=1)
    run(ROWS, data, folder, updates=1, overwrite=True)


def test_without_any_checkpoint_resuming_starts_from_the_beginning_and_says_so(tmp_path: Path) -> None:
    data, folder, told = words(tmp_path / "words.tsv"), tmp_path / "model", RecordingListener()
    run(ROWS, data, folder, updates=3)
    whole = weights(folder)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(UserError, match="nothing to resume, there is no checkpoint in checkpoints/, but a model"):
        run(ROWS, None, folder, resume=True)
    assert same(weights(folder), whole)
    (folder / "model.safetensors").unlink()
    run(ROWS, None, folder, resume=True, listeners=[told])
    assert "no checkpoint yet: starting from the beginning" in told.notes
    assert same(weights(folder), whole)


def test_a_fine_tuned_run_without_any_checkpoint_is_not_started_from_random_weights(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "tuned"
    begun = run(ROWS, data, tmp_path / "model", updates=1)
    run(ROWS, data, folder, updates=1, start=begun)
    shutil.rmtree(folder / "checkpoints")
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"nothing to resume.*--from"):
        run(ROWS, None, folder, resume=True)


@pytest.mark.parametrize(("number", "codes"), [(signal.SIGINT, {1, 130, -signal.SIGINT}), (signal.SIGTERM, {143})])
def test_a_script_that_is_interrupted_stops_with_a_checkpoint(tmp_path: Path, number: int, codes: set[int]) -> None:
    """Whatever Python makes of a KeyboardInterrupt in a script, and the code of shells."""
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    recipe = with_training(ROWS, updates=100_000, schedule="constant")
    code, said = run_until_signal(recipe, data, folder, after=30, number=number)
    assert code in codes, said
    assert f"stopped after 30 updates; to continue: seq2see train {folder} --resume" in said
    assert last_checkpoint(folder).state.updates == 30
    assert seq2see.load(folder).predict("ab").text is not None
    assert not (folder / ".lock").exists()


def test_a_finished_run_that_goes_on_is_the_longer_run(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    recipe = with_training(ROWS, schedule="constant", warmup=0, report_every=10, average=2)
    run(recipe, data, tmp_path / "long", updates=60)
    run(recipe, data, tmp_path / "short", updates=30)
    run(recipe, None, tmp_path / "short", resume=True, updates=60)
    long, short = last_checkpoint(tmp_path / "long"), last_checkpoint(tmp_path / "short")
    assert same(short.weights, long.weights)
    assert same(short.optimizer, long.optimizer)


def test_weights_kept_for_the_mean_outlive_a_kill(tmp_path: Path) -> None:
    """A report after the last checkpoint may drop weights that the checkpoint still counts among the best."""
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    recipe = with_training(ROWS, updates=60, report_every=10, average=2, checkpoint_every=25)
    code, _ = run_until_signal(recipe, data, folder, after=40, number=signal.SIGKILL)
    assert code == -signal.SIGKILL
    kept = [int(update) for _, update in last_checkpoint(folder).state.kept]
    assert len(kept) == 2
    assert all((folder / "checkpoints" / f"best-{update:09d}.safetensors").is_file() for update in kept)
    run(recipe, None, folder, resume=True)
    assert not list((folder / "checkpoints").glob("best-*"))


def test_resuming_with_other_data_is_refused(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    run(ROWS, data, folder, updates=5)
    words(data, count=70)
    with pytest.raises(UserError, match=r"cannot resume, the data has changed: it was \d+ rows.*, now it is \d+ rows"):
        run(ROWS, None, folder, resume=True, updates=10)


def test_rows_of_the_same_number_and_lengths_are_still_other_rows(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    run(ROWS, data, folder, updates=5)
    header, *lines = data.read_text("utf-8").splitlines()
    data.write_text("\n".join([header, *reversed(lines)]) + "\n", encoding="utf-8")
    with pytest.raises(
        UserError, match=r"cannot resume, the data has changed: it was (.*), hash \w+, now it is \1, hash"
    ):
        run(ROWS, None, folder, resume=True, updates=10)


@pytest.mark.parametrize("content", ['{"data": "wor', "[1, 2]", '{"data": 3}', '{"table": "words.tsv"}'])
def test_a_damaged_note_of_where_the_rows_are_is_named(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "model"
    run(ROWS, words(tmp_path / "words.tsv"), folder, updates=1)
    (folder / "data.json").write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"data\.json: damaged"):
        run(ROWS, None, folder, resume=True, updates=2)


def test_the_random_numbers_of_a_device_go_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a graphics card, which has a state of its own beside torch's."""
    state = torch.arange(16, dtype=torch.uint8)
    restored: list[torch.Tensor | None] = []
    monkeypatch.setattr(trainer, "random_state", lambda device: state)
    monkeypatch.setattr(trainer, "restore_random_state", lambda device, found: restored.append(found))
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=1)
    run(ROWS, None, tmp_path / "model", resume=True, updates=2)
    [found] = restored
    assert found is not None
    assert torch.equal(found, state)


def test_nothing_to_resume_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing to resume"):
        run(ROWS, None, tmp_path / "empty", resume=True)


def test_same_seed_same_weights(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    for name, seed in (("one", 7), ("two", 7), ("three", 8)):
        run(ROWS, data, tmp_path / name, updates=20, seed=seed)
    assert same(weights(tmp_path / "one"), weights(tmp_path / "two"))
    assert not same(weights(tmp_path / "one"), weights(tmp_path / "three"))


def test_notes_name_the_rows_set_aside(tmp_path: Path) -> None:
    told = RecordingListener()
    run(ROWS, words(tmp_path / "words.tsv"), tmp_path / "model", updates=1, listeners=[told])
    assert any("of 60 rows set aside for dev" in note for note in told.notes)


def test_what_a_run_was_begun_with_may_be_said_again_but_not_otherwise(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    given: dict[str, Any] = {"dev": data, "columns": ["source", "output"], "seed": 3}
    run(ROWS, data, folder, ["decoder.size=6", "attention.score=dot"], updates=2, **given)
    again = ["decoder.size=6", "attention.score=dot", "training.learning_rate=0.001", "encoder.dropout=0"]
    run(ROWS, data, folder, again, updates=4, resume=True, **given)
    assert last_checkpoint(folder).state.updates == 4
    other = words(tmp_path / "other.tsv")
    for changed, said in (
        ({"data": other}, rf"--data: the run was started with {data}, got {other}; --resume"),
        ({"dev": other}, rf"--dev: the run was started with {data}, got {other}"),
        ({"columns": ["output", "source"]}, "--columns: the run was started with source,output, got output,source"),
        ({"seed": 4}, r"training\.seed: the run was started with 3, got 4"),
        ({"overrides": ["decoder.embedding.size=5"]}, r"decoder\.embedding\.size: the run was started with 4, got 5"),
        ({"overrides": ["attention.score=general"]}, r"attention\.score: the run was started with dot, got general"),
        (
            {"overrides": ["inputs.source.max_length=2"]},
            r"inputs\.source\.max_length: the run was started with 0, got 2",
        ),
    ):
        asked: dict[str, Any] = {"data": None, "folder": folder, "resume": True, "updates": 6, **changed}
        with pytest.raises(UserError, match=said):
            run(ROWS, **asked)
    assert last_checkpoint(folder).state.updates == 4


def test_a_dev_table_that_a_run_was_begun_without_is_refused(tmp_path: Path) -> None:
    data, folder = words(tmp_path / "words.tsv"), tmp_path / "model"
    run(ROWS, data, folder, updates=1)
    with pytest.raises(UserError, match="--dev: the run was started with none, got"):
        run(ROWS, data, folder, dev=data, updates=2, resume=True)
