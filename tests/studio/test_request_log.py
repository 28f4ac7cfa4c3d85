"""One line for each request, with nothing that the client sent; ids that can be followed; a log that stops nobody."""

from __future__ import annotations

import json
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.cli.serve import ServeOptions, serve_studio
from seq2see.errors import Notice
from seq2see.studio import server
from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository
from seq2see.studio.request_log import WAITING, RequestLog, RequestRecord
from tests.studio.conftest import LIMITS

KEYS = {"time", "id", "method", "path", "status", "milliseconds", "bytes_in", "bytes_out"}


def lines_of(repository: ModelRepository, ask: Any, format: Any = "json") -> list[str]:
    """What is logged of what `ask` does with a client."""
    written: list[bytes] = []
    log = RequestLog(format, written.append)
    app = create_app(repository, LIMITS, ServerMetrics(), log=log)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    ask(TestClient(endless, base_url="http://127.0.0.1:8000", raise_server_exceptions=False))
    log.close(60)
    return b"".join(written).decode().splitlines()


def test_what_is_no_http_fills_no_log(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    from seq2see.studio.request_log import NOT_HTTP, messages_to_stderr

    with messages_to_stderr("text"):
        logging.getLogger("uvicorn.error").warning(NOT_HTTP)
        logging.getLogger("uvicorn.error").warning("another message")
    assert capsys.readouterr().err.splitlines() == ["another message"]


def test_a_line_has_what_is_known_and_nothing_of_the_contents(repository: ModelRepository) -> None:
    def ask(client: TestClient) -> None:
        body = {"model": "speller", "inputs": ["face", "deaf"], "prefix": "S E C R E T", "avoid_unknown": None}
        client.post("/api/predict?secret=1", json=body, headers={"X-Request-ID": "abc-1"})
        client.post("/api/predict", content=b"secret", headers={"Content-Type": "application/json"})
        client.get("/api/models/secret")
        client.get("/secret")
        client.request("SECRET", "/health")

    lines = lines_of(repository, ask)
    records = [json.loads(line) for line in lines]
    assert "secret" not in "".join(lines).lower()
    first = records[0]
    assert first.keys() - {"model", "rows"} == KEYS
    assert [(one["method"], one["path"], one["status"]) for one in records] == [
        ("POST", "/api/predict", first["status"]),
        ("POST", "/api/predict", 400),
        ("GET", "/api/models/{name}", 404),
        ("GET", "other", 404),
        ("?", "/health", 405),
    ]
    assert (first["id"], first["model"], first["rows"]) == ("abc-1", "speller", 2)
    assert first["bytes_in"] > 40
    assert first["bytes_out"] > 10
    assert "model" not in records[1]


def test_text(repository: ModelRepository) -> None:
    (line,) = lines_of(repository, lambda client: client.get("/api/models"), "text")
    assert " GET /api/models 200 " in line


@pytest.mark.parametrize("given", ["abc", "A.b_c-9", "x" * 64])
def test_an_id_that_is_sane_is_kept(client: TestClient, given: str) -> None:
    assert client.get("/health", headers={"X-Request-ID": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", 'a"b', "a\tb", "\xe9", "<script>", "a,b"])
def test_any_other_id_is_replaced(client: TestClient, given: str) -> None:
    answers = [client.get("/secret", headers={"X-Request-ID": given.encode("latin-1")}) for _ in range(2)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert all(len(one) == 16 and one.isalnum() for one in ids)
    assert ids[0] != ids[1]


RECORD = RequestRecord("now", "id", "GET", "/health", 200, 1.0)


def test_a_reader_that_takes_nothing_stops_nobody() -> None:
    go, written = threading.Event(), list[bytes]()

    def write(line: bytes) -> None:
        assert go.wait(60)
        written.append(line)

    log = RequestLog("json", write)
    for _ in range(WAITING + 500):
        log.add(RECORD)  # does not wait
    log.close(0.01)
    go.set()
    log.close(60)
    records = [json.loads(line) for line in written]
    dropped = sum(record.get("dropped", 0) for record in records)
    assert dropped > 400
    assert dropped + sum("id" in record for record in records) == WAITING + 500


def test_a_reader_that_is_gone_ends_the_log_and_nothing_else(tmp_path: Path) -> None:
    def write(line: bytes) -> None:
        raise BrokenPipeError

    log = RequestLog("text", write)
    for _ in range(3):
        log.add(RECORD)
    log.close(60)
    log.add(RECORD)


@pytest.mark.filterwarnings("always::seq2see.errors.Notice")
def test_messages_of_the_server_are_json_too(
    speller: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_server(*given: Any, started: Any, **options: Any) -> None:
        warnings.warn("a notice", Notice, stacklevel=1)
        started()

    monkeypatch.setattr(server, "run_server", run_server)
    serve_studio([str(speller)], port=0, options=ServeOptions(log="json"))
    messages = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert "a notice" in messages
    assert messages[-1].startswith("speller: http://127.0.0.1:")
