"""One training at a time in a folder: whatever starts the second is refused, and what lies there is left as it was."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import seq2see
from seq2see import api
from seq2see.errors import UserError
from seq2see.locking import FolderInUse, lock_folder
from seq2see.samples import packaged
from tests.commands import Run
from tests.system.small import RecordingListener
from tests.training import tiny

Call = Callable[..., Run]

HOLDER = """
import os, sys
from pathlib import Path
from seq2see.locking import lock_folder
with lock_folder(Path(sys.argv[1])):
    child = os.fork() if sys.argv[2:] == ["fork"] else None
    if not child:  # of the two the child, which has left the lock to its parent by then
        print(os.getpid(), flush=True)
    sys.stdin.read()
    if child == 0:
        os._exit(0)
"""


@contextmanager
def held_elsewhere(folder: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(another process that holds the folder, the line it wrote when it did)."""
    command = [sys.executable, "-c", HOLDER, str(folder), *more]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the folder is held"
        yield process, line.strip()
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.close()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the lock."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("locked")
    tiny.run(tiny.ROWS, tiny.words(made / "words.tsv"), made / "model", updates=2)
    (made / "recipe.yaml").write_text(yaml.safe_dump(tiny.ROWS), encoding="utf-8")
    return made


def test_the_api_is_refused_and_nothing_is_changed(trained: Path, tmp_path: Path) -> None:
    data, folder = trained / "words.tsv", trained / "model"
    model, before = seq2see.load(folder), contents(folder)
    ways: list[Callable[[], Any]] = [
        lambda: tiny.run(tiny.ROWS, data, folder, updates=3),
        lambda: tiny.run(tiny.ROWS, data, folder, updates=3, overwrite=True),
        lambda: tiny.run(tiny.ROWS, None, folder, updates=3, resume=True),
        lambda: tiny.run(tiny.ROWS, data, folder, updates=3, start=model, overwrite=True),
        lambda: model.save(folder),
    ]
    with held_elsewhere(folder) as (process, _):
        for way in ways:
            with pytest.raises(FolderInUse) as refused:
                way()
            assert str(folder) in str(refused.value)
            assert f"process {process.pid} on {socket.gethostname()}, since 20" in str(refused.value)
        assert contents(folder) == before
        assert seq2see.load(folder).predict("ab").text is not None, "reading goes on"
    model.save(folder)


@pytest.mark.parametrize("way", ["train", "overwrite", "resume"])
def test_the_command_line_is_refused(call: Call, trained: Path, way: str) -> None:
    folder, more = trained / "model", {"train": [], "overwrite": ["--overwrite"], "resume": ["--resume"]}[way]
    before = contents(folder)
    with held_elsewhere(folder) as (process, _):
        run = call("train", trained / "recipe.yaml", "--data", trained / "words.tsv", "--out", folder, *more)
        assert (run.code, run.out) == (2, "")
        assert f"{folder}: in use by process {process.pid} on " in run.err
        assert contents(folder) == before


def test_comparisons_and_figures_are_refused(call: Call, trained: Path, tmp_path: Path) -> None:
    table = tmp_path / "numbers.tsv"
    rows = [" ".join(str((i * j) % 7) for j in range(1, 4)) for i in range(30)]
    table.write_text("x\n" + "\n".join(rows) + "\n", encoding="utf-8")
    given = ["--data", trained / "words.tsv", "--vary", "attention.score=dot,none", "--updates", "1"]
    with held_elsewhere(tmp_path / "runs"):
        compared = call("compare", trained / "recipe.yaml", *given, "--out", tmp_path / "runs")
        how = ["--sizes", "1", "--updates", "1", "--runs", tmp_path / "runs", "--out", tmp_path / "sizes.png"]
        drawn = call("figure", "code-size", "autoencoder", "--data", table, "--columns", "x,x", *how)
        for run in (compared, drawn):
            assert run.code == 2, run.err
            assert "in use by process" in run.err
        assert contents(tmp_path / "runs") == {}
    assert not (tmp_path / "sizes.png").exists()


def test_a_run_of_a_comparison_that_another_process_trains_ends_the_comparison(trained: Path, tmp_path: Path) -> None:
    """It is not left out of the table as if it could not be trained."""

    def compare() -> Path:
        given: dict[str, Any] = {"vary": ["attention.score=dot"], "updates": 1, "out": tmp_path, "listeners": []}
        return Path(api.compare(tiny.ROWS, trained / "words.tsv", **given).best.outcomes[0].model)

    model = compare()
    (tmp_path / "results.jsonl").unlink()
    before = contents(model)
    with held_elsewhere(model), pytest.raises(FolderInUse):
        compare()
    assert contents(model) == before


def test_the_demo_is_refused_before_it_writes_its_table(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "pronunciations", lambda: [("bat", "B A T")])
    with held_elsewhere(tmp_path / "demo"):
        run = call("demo", "--no-serve", "--out", tmp_path / "demo")
        assert run.code == 2
        assert "in use by process" in run.err
        assert contents(tmp_path / "demo") == {}


def test_a_lock_whose_owner_was_killed_is_taken_over(trained: Path) -> None:
    folder = trained / "model"
    with held_elsewhere(folder) as (process, _):
        process.kill()
        process.wait()
        assert (folder / ".lock").is_file()
        seq2see.load(folder).save(folder)
    assert not (folder / ".lock").exists()


def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path, "fork") as (process, child):
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        os.kill(int(child), 0)  # it is there still
        with lock_folder(tmp_path):
            pass


def test_two_threads_do_not_meet_in_one_folder(trained: Path, tmp_path: Path) -> None:
    """Nor does a model that is saved into its folder while it is trained; training in a thread sets no handlers."""
    refused: list[UserError] = []
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    class Saving(RecordingListener):
        def on_report(self, report: object, metric: str) -> None:
            assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
            try:
                seq2see.load(trained / "model").save(tmp_path / "model", overwrite=True)
            except FolderInUse as error:
                refused.append(error)

    def train() -> None:
        tiny.run(tiny.ROWS, trained / "words.tsv", tmp_path / "model", updates=1, listeners=[Saving()])

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert len(refused) == 1
    assert seq2see.load(tmp_path / "model").predict("ab").text is not None


@pytest.mark.parametrize("written", ["", "{", "[1]", '{"pid": 1}', '{"pid": "\\u001b[2J", "host": "", "since": ""}'])
def test_whatever_a_lock_says_is_no_trouble(tmp_path: Path, written: str) -> None:
    with lock_folder(tmp_path):
        (tmp_path / ".lock").write_text(written)
        with pytest.raises(FolderInUse, match="in use by another process"), lock_folder(tmp_path):
            pass


def test_a_folder_made_for_a_run_that_never_began_is_gone(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        tiny.run(tiny.ROWS, tmp_path / "nowhere.tsv", tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
