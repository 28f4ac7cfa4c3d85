"""The loop that serves everybody does what is small; what takes long is done beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.studio import request_body
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from seq2see.studio.service import InferenceService

Where = dict[str, set[str]]


def place() -> str:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "thread"
    return "loop"


@pytest.fixture(scope="module")
def server(speller: Path) -> Iterator[TestClient]:
    repository = load_models([str(speller)], Limits(), ServerMetrics())
    yield TestClient(create_app(repository, Limits(), ServerMetrics()), base_url="http://127.0.0.1:8000")
    repository.close()


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch) -> Where:
    """Where each kind of work was done."""
    found: Where = {}

    def watch(owner: Any, name: str) -> None:
        work: Callable[..., Any] = getattr(owner, name)

        def watched(*given: Any, **more: Any) -> Any:
            found.setdefault(name, set()).add(place())
            return work(*given, **more)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in (
        (InferenceService, "_notices"),
        (InferenceService, "_queue_inputs"),
        (request_body, "parse_body"),
    ):
        watch(owner, name)
    return found


def ask(server: TestClient, what: str, **body: Any) -> None:
    answer = server.post(f"/api/{what}", json=body)
    assert answer.status_code == 200, answer.text


LONG = "a" * 3000
PLAIN = {"looks": False, "shown": False, "beam": 1, "max_length": 3}


def test_long_texts_are_read_in_threads(server: TestClient, where: Where) -> None:
    ask(server, "predict", input=LONG, **PLAIN)
    ask(server, "predict", input=LONG, target="A B")
    ask(server, "oracle", input=LONG, oracle={"0": [1] + [0] * 2999}, beam=1, max_length=3)
    ask(server, "explain", input=LONG, beam=1)
    ask(server, "score", input=LONG, output="A")
    assert where == {"_notices": {"thread"}, "_queue_inputs": {"thread"}, "parse_body": {"loop"}}


def test_a_short_text_costs_no_thread_more(server: TestClient, where: Where) -> None:
    ask(server, "predict", input="face", **PLAIN)
    assert (where["_notices"], where["parse_body"]) == ({"loop"}, {"loop"})


def test_large_bodies_are_read_in_threads_and_hold_not_too_many_values(server: TestClient, where: Where) -> None:
    ask(server, "predict", inputs=["ab" * 1000] * 40, **PLAIN)
    assert where["parse_body"] == {"thread"}
    said = {"error": "the body holds too many values (1,000,001 commas); allowed: at most 1,000,000"}
    many = json.dumps({"oracle": {"0": [1] * 1_000_001}, "input": "a"}, separators=(",", ":"))
    answer = server.post("/api/predict", content=many, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (413, said)
    field = json.dumps({"0": [1] * 300_000}, separators=(",", ":"))
    form = {f"key-{number}": field for number in range(4)}
    answer = server.post("/api/predict", data=form, files={"source": b""})
    assert (answer.status_code, "too many values" in answer.text) == (413, True), answer.text
