"""Two processes that share every batch learn what one learns, write what one writes, and stop, fail and go on
together."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from seq2see.errors import UserError
from seq2see.training.distributed import Processes, check_command
from tests.system.small import write_table
from tests.training.tiny import ROWS, TEXT, journal, last_checkpoint, run, same, text, words
from tests.training.together import drawn_by_row

ROOT = Path(__file__).resolve().parents[2]
CLOSE = 1e-5
UPDATES = 8


def changed(recipe: dict[str, Any], **parts: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe without dropout, and with other settings of some parts."""
    plain = {part: {**recipe[part], "dropout": 0.0} for part in ("encoder", "decoder") if part in recipe}
    whole = {**recipe, **plain}
    for part, settings in parts.items():
        whole[part] = {**whole.get(part, {}), **settings}
    whole["training"] = {"updates": UPDATES, "report_every": 4, "wait_minutes": 2, **whole["training"]}
    return whole


def transformer(size: int = 8) -> dict[str, Any]:
    return {"kind": "transformer", "size": size, "heads": 2, "layers": 1, "embedding": {"size": size}, "dropout": 0.0}


PLAIN_STEPS = {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.1}
"""Adam divides a gradient by its size: where it is 0 but for rounding (the bias of keys), steps are rounding too."""

LABEL: dict[str, Any] = {
    "task": "first-letter",
    "inputs": {"source": {"tokens": "character"}},
    "output": {"kind": "label"},
    "encoder": {"size": 6, "dropout": 0.0, "embedding": {"size": 4}},
    "attention": {"score": "additive"},
    "decoder": {"kind": "label", "dropout": 0.0},
    "loss": {"class_weights": {"a": 3.0, "b": 0.25}},
    "training": {"threads": 1, "epochs": 0, **PLAIN_STEPS, "batch_rows": 5, "updates": UPDATES},
}

RECIPES = {
    # batches of one to four rows: of some, a process has none
    "recurrent": changed(ROWS, training={**ROWS["training"], "batch_tokens": 24}),
    "transformer": changed(
        {**ROWS, "encoder": transformer(), "decoder": transformer()},
        attention={"score": "scaled-dot"},
        training={**ROWS["training"], **PLAIN_STEPS},
    ),
    "label": LABEL,
    "terms": changed(
        ROWS,
        attention={"score": "additive"},
        loss={
            "label_smoothing": 0.1,
            "doubly_stochastic": 0.5,
            "coverage": 0.3,
            "entropy": 0.1,
            "ctc": 0.3,
        },
        training={**ROWS["training"], "batch_tokens": 30, "ema": 0.9},
    ),
    "stream": changed(TEXT),
    "windows": changed(ROWS, data={"shuffle_rows": 20}, training={**ROWS["training"], "batch_tokens": 24}),
    # outputs are rewarded in the last four updates, of two, one, one and two rows: of two batches a process has none
    "rewards": changed(
        ROWS,
        loss={"reward": {"metric": "edit", "samples": 3, "last": 0.5}},
        training={**ROWS["training"], **PLAIN_STEPS, "batch_tokens": 12},
    ),
    # a word of one letter has one place to look at: nothing is left to chance
    "hard": changed(ROWS, attention={"score": "additive", "choice": "hard"}, loss={"baseline_decay": 0.5}),
}
DRAWING = changed(ROWS, training={**ROWS["training"], "scheduled_sampling": 0.5})
DRAWING["encoder"] = {**DRAWING["encoder"], "dropout": 0.3}
STILL = changed(ROWS, training={**ROWS["training"], "learning_rate": 1e-30, "updates": 2, "dev_rows": 0})
"""A recipe that learns nothing, so that reports are of the same weights whoever trains it."""


def table_of(name: str, folder: Path) -> Path:
    draw = random.Random(3)
    made = ["".join(draw.choices("abcd", k=draw.randint(2, 4))) for _ in range(61)]
    path = folder / f"{name}.tsv"
    if name == "stream":
        return text(folder / "stream.txt")
    if name == "label":
        return write_table(path, [{"source": word, "output": word[0]} for word in made])
    if name == "hard":
        return write_table(path, [{"source": word[0], "output": word} for word in made])
    return words(path, count=61)


class Group:
    """The results of the jobs of two processes, and the folder that they worked in."""

    def __init__(self, folder: Path, jobs: dict[str, dict[str, Any]]):
        file = folder / "jobs.json"
        file.write_text(json.dumps(list(jobs.values())), "utf-8")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
        common = {**os.environ, **address, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.training.together", str(file)],
                cwd=ROOT,
                env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        self.said = ["".join(process.communicate()) for process in started]
        assert [process.returncode for process in started] == [0, 0], self.said
        results = [json.loads(Path(f"{file}.{rank}").read_text("utf-8")) for rank in range(2)]
        self.folder = folder
        self.results = {name: (results[0][place], results[1][place]) for place, name in enumerate(jobs)}

    def checkpoint(self, name: str) -> Any:
        return last_checkpoint(self.folder / "two" / name)

    def alone(self, name: str) -> Any:
        """The checkpoint of a single process, which is run once."""
        folder = self.folder / "one" / name
        if not folder.exists():
            with drawn_by_row():
                run(RECIPES[name], table_of(name, self.folder), folder)
        return last_checkpoint(folder)


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Group:
    folder = tmp_path_factory.mktemp("together")

    def job(recipe: Any, name: str, *, data: Path | None = None, **more: Any) -> dict[str, Any]:
        # a process that does not lead is given a folder of its own, in which it must write nothing
        out = [str(folder / "two" / name), str(folder / "other" / name)]
        return {"recipe": recipe, "given": {"data": str(data or folder / "recurrent.tsv"), "out": out}, **more}

    jobs = {name: job(recipe, name, data=table_of(name, folder)) for name, recipe in RECIPES.items()}
    jobs["drawing"] = job(DRAWING, "drawing")
    jobs["stopped"] = job(DRAWING, "stopped", signal_rank=1, signal_update=5)
    jobs["stopped-at-the-end"] = job(STILL, "end", signal_rank=1, signal_update=2, signal_in="report")
    shared = str(folder / "two" / "stopped")
    jobs["resumed"] = {"recipe": None, "given": {"out": shared, "resume": True}}
    jobs["half"] = job(RECIPES["recurrent"], "half", signal_rank=0, signal_update=5)
    jobs["half-stream"] = job(
        RECIPES["stream"], "half-stream", data=folder / "stream.txt", signal_rank=1, signal_update=5
    )
    jobs["spoiled"] = job(RECIPES["recurrent"], "spoiled", spoil_rank=1, spoil_update=3)
    words(folder / "many.tsv", count=400, seed=5)
    jobs["still"] = job(STILL, "still", data=folder / "recurrent.tsv")
    jobs["still"]["given"]["dev"] = str(folder / "many.tsv")
    jobs["missing"] = job(RECIPES["recurrent"], "missing", data=folder / "nowhere.tsv")
    return Group(folder, jobs)


def farthest(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name].double() - other[name].double()).abs().max()) for name in one)


@pytest.mark.parametrize("name", list(RECIPES))
def test_two_processes_learn_what_one_learns(group: Group, name: str) -> None:
    alone, shared = group.alone(name), group.checkpoint(name)
    assert shared.state.updates == UPDATES
    assert farthest(shared.weights, alone.weights) < CLOSE
    for part in ("carried", "averages"):
        one, two = getattr(alone, part), getattr(shared, part)
        assert farthest(one, two) < CLOSE if one else not two
    assert (shared.state.seen, shared.state.epoch, shared.state.index) == (
        alone.state.seen,
        alone.state.epoch,
        alone.state.index,
    )
    assert shared.state.objective == pytest.approx(alone.state.objective, rel=1e-4)
    for one, two in zip(journal(group.folder / "one" / name), journal(group.folder / "two" / name), strict=True):
        assert two["update"] == one["update"]
        assert two["loss"] == pytest.approx(one["loss"], rel=1e-5)
        assert two["gradient_norm"] == pytest.approx(one["gradient_norm"], rel=1e-4)
        assert two["dev"] == pytest.approx(one["dev"], rel=1e-4)


def test_every_process_ends_with_the_same_model(group: Group) -> None:
    for name in RECIPES:
        first, second = group.results[name]
        assert first["ended"] == second["ended"] == "done"
        assert first["weights"] == second["weights"]


def test_the_leader_alone_writes_and_speaks(group: Group) -> None:
    assert not (group.folder / "other").exists()
    assert all(second["notes"] == [] for _, second in group.results.values())
    assert group.said == ["", ""]


def test_dev_rows_that_are_shared_out_give_the_same_figures(group: Group) -> None:
    """400 rows are several batches, of which each process reads some."""
    run(STILL, group.folder / "recurrent.tsv", group.folder / "one" / "still", dev=group.folder / "many.tsv")
    (alone,), (shared,) = journal(group.folder / "one" / "still"), journal(group.folder / "two" / "still")
    assert shared["dev"] == alone["dev"]
    assert shared["samples"] == alone["samples"]


def test_a_signal_to_one_stops_both_and_they_resume_with_the_same_bits(group: Group) -> None:
    first, second = group.results["stopped"]
    assert first["ended"] == second["ended"] == 128 + signal.SIGTERM
    assert any("stopped after 5 updates" in note for note in first["notes"])
    assert group.results["resumed"][0]["weights"] == group.results["drawing"][0]["weights"]
    whole, resumed = group.checkpoint("drawing"), group.checkpoint("stopped")
    assert same(resumed.weights, whole.weights)
    assert same(resumed.optimizer, whole.optimizer)


def test_a_signal_to_one_in_the_last_report_stops_both(group: Group) -> None:
    first, second = group.results["stopped-at-the-end"]
    assert first["ended"] == second["ended"] == 128 + signal.SIGTERM
    assert group.checkpoint("end").state.finished


@pytest.mark.parametrize("name", ["recurrent", "stream"])
def test_another_number_of_processes_goes_on_where_they_stopped(group: Group, name: str) -> None:
    half = {"recurrent": "half", "stream": "half-stream"}[name]
    stopped = group.checkpoint(half).state
    assert (stopped.finished, stopped.updates) == (False, 5)
    run(None, None, group.folder / "two" / half, resume=True)
    whole = group.alone(name)
    assert farthest(group.checkpoint(half).weights, whole.weights) < CLOSE
    assert group.checkpoint(half).state.seen == whole.state.seen


def test_a_gradient_of_one_that_is_not_finite_is_a_step_of_none(group: Group) -> None:
    state = group.checkpoint("spoiled").state
    assert (state.updates, state.skipped) == (UPDATES, 1)
    first, second = group.results["spoiled"]
    assert first["weights"] == second["weights"]
    assert all(bool(tensor.isfinite().all()) for tensor in group.checkpoint("spoiled").weights.values())


def test_an_error_of_all_is_told_once(group: Group) -> None:
    first, second = group.results["missing"]
    assert first["ended"] == second["ended"] == "SharedError"
    assert "nowhere.tsv" in first["says"]


# ---------------------------------------------------------------- rules, without processes


def member(rank: int, size: int) -> Processes:
    """A process of a group that nobody has started."""
    one = Processes.__new__(Processes)
    one.rank, one.size = rank, size
    return one


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_every_row_of_a_batch_belongs_to_one_process(rows: int) -> None:
    batch = np.arange(rows) * 10
    parts = [member(rank, 3).part(batch) for rank in range(3)]
    assert sorted(row for part, idle in parts if not idle for row in part) == list(batch)
    assert all(len(part) for part, _ in parts)


def test_no_two_processes_and_updates_draw_the_same() -> None:
    drawn = set()
    with torch.random.fork_rng():
        for rank in range(3):
            for update in range(3):
                member(rank, 3).seed(1, update)
                drawn.add(float(torch.rand(())))
    assert len(drawn) == 9


def test_statistics_of_a_batch_are_refused() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    with pytest.raises(UserError, match="1: batch normalisation"):
        member(0, 2).check(network)
    member(0, 2).check(network[:1])


def test_commands_that_would_be_repeated_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_command("compare")
    monkeypatch.setenv("WORLD_SIZE", "2")
    check_command("train")
    for command in ("compare", "evaluate"):
        with pytest.raises(UserError, match=f"{command}: not with 2 processes"):
            check_command(command)


# ---------------------------------------------------------------- torchrun itself

KILLED = """
import json, os, signal, sys
import seq2see
from seq2see.training.trainer import Trainer

usual = Trainer._update

def update(self, batches):
    usual(self, batches)
    if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and self.state.updates == 12:
        os.kill(os.getpid(), signal.SIGKILL)

Trainer._update = update
recipe, data, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
seq2see.train(recipe, data=data, out=folder)
"""


@pytest.mark.slow
def test_a_killed_process_is_started_again_and_goes_on_from_the_last_checkpoint(tmp_path: Path) -> None:
    recipe = changed(ROWS, training={**ROWS["training"], "checkpoint_every": 10, "updates": 20})
    data = words(tmp_path / "words.tsv")
    run(recipe, data, tmp_path / "one")
    (tmp_path / "killed.py").write_text(KILLED, "utf-8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--max-restarts=1"]
    done = subprocess.run(
        [*launch, str(tmp_path / "killed.py"), json.dumps(recipe), str(data), str(tmp_path / "two")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "resuming from update 10" in done.stderr
    assert farthest(last_checkpoint(tmp_path / "two").weights, last_checkpoint(tmp_path / "one").weights) < CLOSE
    assert [line["update"] for line in journal(tmp_path / "two")] == [4, 8, 12, 16, 20]


@pytest.mark.slow
def test_what_the_command_line_refuses_is_said_once(tmp_path: Path) -> None:
    data = words(tmp_path / "words.tsv")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "seq2see"]
    done = subprocess.run(
        [*launch, "compare", "transliteration", "--data", str(data), "--vary", "attention.score=dot,none"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert done.stderr.count("compare: not with 2 processes") == 1
    assert "exitcode  : 2" in done.stderr
