"""Training runs over HTTP; the lines of files that grow, are cut short, and are written anew."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from starlette.testclient import TestClient

from seq2see import api
from seq2see.cli import main
from seq2see.errors import UserError
from seq2see.files import write_bytes
from seq2see.studio import training_runs
from seq2see.studio import training_runs as limits
from seq2see.studio.app import create_run_app, serve_training_run
from seq2see.studio.training_runs import FileTail, RunProgress, TrainingRun
from seq2see.training.film import FILM
from seq2see.training.reports import METRICS
from tests.studio.conftest import SMALL, SPELLING


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_model_that_is_served_has_the_run_it_was_made_by(client: TestClient, speller: Path) -> None:
    about = client.get("/api/run", params={"model": "speller"}).json()
    assert (about["task"], about["state"], about["ready"]) == ("spelling", "recorded", True)
    assert about["recipe"]["decoder"]["size"] == 16
    assert about["answers"] == client.get("/api/models/speller").json()["answers"][0]
    metrics = client.get("/api/run/metrics", params={"model": "speller"}).json()
    assert metrics["reports"] == lines(speller / METRICS)
    assert about["metric"] in metrics["reports"][-1]["dev"]


def test_a_film_is_told_in_parts_and_each_frame_once(client: TestClient, speller: Path) -> None:
    head, *frames = lines(speller / FILM)
    found: list[dict[str, Any]] = []
    part: dict[str, Any] = {"next": 0, "whole": False, "file": None}
    rounds = 0
    while not part["whole"]:
        asked = {"model": "speller", "after": part["next"]} | ({"file": part["file"]} if part["file"] else {})
        part = client.get("/api/run/film", params=asked).json()
        assert part["film"] == (head if part["first"] == 0 else None)
        assert part["first"] == len(found)
        found += part["frames"]
        rounds += 1
    assert found == frames
    assert rounds == -(-(len(frames) + 1) // 24)


def test_which_models_have_a_run_is_told(client: TestClient) -> None:
    assert client.get("/api/run").json()["name"] == "speller"
    told = {one["name"]: one["run"] for one in client.get("/api/models").json()["models"]}
    assert told == {"speller": True, "captions": True, "judge": True, "babbler": True}
    assert client.get("/api/run/film", params={"model": "babbler"}).json()["frames"] == []


def test_files_are_told_by_name_alone(client: TestClient, home: Path) -> None:
    for route in ("/api/run/metrics", "/api/run/film"):
        assert str(home) not in client.get(route, params={"model": "captions"}).text


def test_a_text_that_looks_like_a_path_is_told_whole(speller: Path, captions: Path, tmp_path: Path) -> None:
    def told(model: Path, given: str) -> str:
        shutil.copytree(model, tmp_path / model.name, dirs_exist_ok=True)
        report = {**lines(model / METRICS)[-1], "samples": [{"input": given, "output": "", "reference": ""}]}
        (tmp_path / model.name / METRICS).write_text(json.dumps(report) + "\n", "utf-8")
        return str(TrainingRun("run", tmp_path / model.name).metrics(0)["reports"][0]["samples"][0]["input"])

    assert told(speller, "/he/she and | /they/") == "/he/she and | /they/"
    assert told(captions, "/home/a/0.png") == "0.png"
    assert told(captions, "/home/a/0 | 1.png") == "0 | 1.png"


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"model": "spellar"}, 404, "'spellar' is not served (did you mean 'speller'?)"),
        ({"model": "speller", "after": "-1"}, 422, "after: '-1' is not a number"),
        ({"model": "speller", "after": "9" * 5000}, 422, "is not a number"),
    ],
)
def test_what_is_refused(client: TestClient, asked: dict[str, str], status: int, said: str) -> None:
    answer = client.get("/api/run/film", params=asked)
    assert answer.status_code == status
    assert said in answer.json()["error"]


def test_a_run_that_has_not_begun_is_no_failure(tmp_path: Path) -> None:
    run = TrainingRun("new", tmp_path / "new", progress=RunProgress())
    client = TestClient(create_run_app(run), base_url="http://127.0.0.1:8000")
    assert client.get("/api/run").json() == {"name": "new", "state": "learning", "ready": False}
    assert client.get("/api/run/metrics").json()["reports"] == []
    assert client.get("/api/run/film").json()["frames"] == []
    assert client.get("/api/run", params={"model": "old"}).status_code == 404
    assert client.get("/").headers["content-type"].startswith("text/html")
    assert client.get("/api/predict").status_code == 404


class Onlooker:
    """A listener that asks what a page asks, in the middle of the run."""

    def __init__(self, address: str) -> None:
        self.client = httpx.Client(base_url=address, trust_env=False, timeout=60)
        self.seen: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []

    def on_update(self, status: object) -> None:
        answers = [self.client.get(f"/api/run{route}").json() for route in ("", "/metrics", "/film")]
        self.seen.append((answers[0], answers[1], answers[2]))

    def on_report(self, report: object, metric: str) -> None: ...
    def on_message(self, message: str) -> None: ...
    def close(self) -> None: ...


def test_a_run_is_watched_while_it_goes_and_does_not_notice(
    home: Path, speller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_runs, "LAST_REQUEST", 0.0)  # nobody asks for the end
    recipe = {"task": "spelling", **SMALL, **SPELLING}
    given: dict[str, Any] = {"updates": 30, "overrides": ["training.report_every=15", "training.threads=1"]}
    with serve_training_run(tmp_path / "seen", 0) as (address, live):
        onlooker = Onlooker(address)
        listeners = [live, onlooker]
        seen = api.train(recipe, home / "pairs.tsv", out=tmp_path / "seen", listeners=listeners, **given)
    onlooker.client.close()
    unseen = api.train(recipe, home / "pairs.tsv", out=tmp_path / "unseen", listeners=[], **given)
    ours, theirs = seen.bundle.network.state_dict(), unseen.bundle.network.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)

    assert [metrics["status"]["update"] for _, metrics, _ in onlooker.seen] == [10, 20, 30]
    assert [len(metrics["reports"]) for _, metrics, _ in onlooker.seen] == [0, 1, 1]
    assert all(about["ready"] and about["state"] == "learning" for about, _, _ in onlooker.seen)
    counts = [len(film["frames"]) for _, _, film in onlooker.seen]
    assert 0 < counts[0] < counts[1] < counts[2]
    assert live.state == "ended"
    with pytest.raises(httpx.HTTPError):
        httpx.get(address, trust_env=False, timeout=5)


@pytest.mark.parametrize("first", ["film", "metrics"])
def test_whoever_looks_on_is_told_of_a_failure(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_runs, "WATCHED", 60.0)
    monkeypatch.setattr(training_runs, "LAST_REQUEST", 60.0)
    told: list[dict[str, Any]] = []
    asked = threading.Event()

    def look(address: str) -> None:
        with httpx.Client(base_url=address, trust_env=False, timeout=120) as client:
            if first == "film":
                client.get("/api/run/film")
            while not told or told[-1]["state"] == "learning":
                told.append(client.get("/api/run/metrics").json())
                asked.set()
                with suppress(httpx.HTTPError):  # once the end is told, all that is left to miss is a film told before
                    client.get("/api/run/film")

    def fail() -> None:
        with serve_training_run(tmp_path / "run", 0) as (address, _):
            page.append(threading.Thread(target=look, args=(address,)))
            page[0].start()
            assert asked.wait(120)
            raise UserError("the run diverges")

    page: list[threading.Thread] = []
    with pytest.raises(UserError, match="diverges"):
        fail()
    page[0].join(120)
    assert (told[-1]["state"], told[-1]["failure"]) == ("failed", "the run diverges")


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        yield one.getsockname()[1]


def test_mistakes_on_the_command_line(
    home: Path, speller: Path, taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["train", str(speller / "recipe.yaml"), "--data", str(home / "pairs.tsv"), "--out", str(tmp_path / "run")]
    for more, said in (
        (["--studio-port", "0"], "--studio-port 0"),
        (["--studio", "--studio-port", "70000"], "--studio-port must be from 0 to 65535, got 70000"),
        (["--studio", "--studio-port", str(taken)], "--studio-port 0 finds a free one"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main([*command, *more])
        assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_train_says_where_it_can_be_watched(
    home: Path, speller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    data = ["--data", str(home / "pairs.tsv"), "--out", str(folder), "--updates", "2"]
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(speller / "recipe.yaml"), *data, "--studio", "--studio-port", "0"])
    said = capsys.readouterr().err
    assert "http://127.0.0.1:" in said
    assert f"serve {folder} " in said
    assert (folder / FILM).is_file()


def test_each_line_is_told_once_and_only_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    tail = FileTail(path)
    assert tail.since(0).lines == []
    path.write_bytes(b"a\nb\nc")
    first = tail.since(0)
    assert (first.lines, first.following, first.complete) == ([b"a", b"b"], 2, True)
    with path.open("ab") as file:
        file.write("\u2028d\ne\n".encode())
    second = tail.since(first.following, first.file, most=1)
    assert (second.first, second.lines, second.following, second.complete) == (2, ["c\u2028d".encode()], 3, False)
    assert tail.since(99, first.file).lines == []


def test_a_file_that_is_written_anew_is_told_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\n")
    tail = FileTail(path)
    old = tail.since(0)
    write_bytes(path, b"a\nb\n")
    new = tail.since(old.following, old.file)
    assert new.file != old.file
    assert (new.first, new.lines) == (0, [b"a", b"b"])
    path.write_bytes(b"another\nb\nc\nd\n")
    assert tail.since(new.following, new.file).lines == [b"another", b"b", b"c", b"d"]
    path.unlink()
    gone = tail.since(4, new.file)
    assert (gone.first, gone.lines) == (0, [])


def test_a_large_file_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that are too long are left out, wherever they end; all others come, each once."""
    monkeypatch.setattr(limits, "READ_BYTES", 10)
    monkeypatch.setattr(limits, "LINE_BYTES", 6)
    path = tmp_path / "lines"
    path.write_bytes(b"first\n" + b"x" * 45 + b"\nb\n1234567\nc\n" + b"y" * 33)
    tail = FileTail(path)
    parts = [tail.since(0)]
    while not parts[-1].complete:
        assert len(parts) < 20
        parts.append(tail.since(parts[-1].following, parts[-1].file))
    assert len(parts) > 3
    assert [line for part in parts for line in part.lines] == [b"first", b"b", b"c"]
    with path.open("ab") as file:
        file.write(b"y\nd\nunfin")
    assert [tail.since(3, parts[0].file).lines for _ in range(3)][-1] == [b"d"]
    with path.open("ab") as file:
        file.write(b"ished\ne\n")
    assert [tail.since(4, parts[0].file).lines for _ in range(2)][-1] == [b"e"]


def test_a_file_that_begins_with_a_long_line_is_known_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_BYTES", 10)
    monkeypatch.setattr(limits, "LINE_BYTES", 6)
    path = tmp_path / "lines"
    path.write_bytes(b"x" * 25 + b"\na\n")
    tail = FileTail(path)
    names = {tail.since(0).file for _ in range(4)}
    assert len(names) == 1
    assert tail.since(0).lines == [b"a"]
    path.write_bytes(b"z" * 25 + b"\nb\n")
    assert [tail.since(1, *names).lines for _ in range(4)][-1] == [b"b"]


def test_no_more_lines_are_kept_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "KEPT_BYTES", 3 * (limits.OVERHEAD + 1))
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\nd\n")
    part = FileTail(path).since(0)
    assert (part.lines, part.complete) == ([b"a", b"b", b"c"], True)


def test_a_file_without_lines_takes_little_memory_and_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.touch()
    os.truncate(path, 100 << 20)  # a hole: it takes no room on the disk
    tail = FileTail(path)
    tracemalloc.start()
    parts = [tail.since(0) for _ in range(8)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * limits.READ_BYTES
    assert [part.complete for part in parts[-2:]] == [True, True]
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert tail.since(0).lines == [b"last"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines")
    assert FileTail(tmp_path / "lines").since(0).lines == []
