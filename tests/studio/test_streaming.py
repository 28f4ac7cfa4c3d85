"""Tokens as they are written (server-sent events), and lists that are answered page by page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import seq2see
from seq2see.studio.service import FIRST_PIECE
from tests.studio.conftest import LIMITS

STREAM = {"model": "speller", "input": "face"}


def events(client: TestClient, **body: Any) -> list[tuple[str, Any]]:
    response = client.post("/api/stream", json=body)
    assert (response.status_code, response.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    parts = [part.split("\n") for part in response.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in parts]


def tokens(found: list[tuple[str, Any]]) -> list[Any]:
    assert [name for name, _ in found] == ["token"] * (len(found) - 1) + ["done"]
    steps = [record for _, record in found[:-1]]
    assert [record["step"] for record in steps] == list(range(len(steps)))
    return [record["text"] for record in steps]


def test_a_stream_writes_what_greedy_search_finds(client: TestClient, speller: Path) -> None:
    expected = seq2see.load(speller).predict("facedeaf", beam=1)
    found = events(client, model="speller", input="facedeaf")
    assert len(expected.tokens) > FIRST_PIECE, "there is more than one piece"
    assert tokens(found) == [token.text for token in expected.tokens]
    probabilities = [record["probability"] for _, record in found[:-1]]
    assert probabilities == pytest.approx([token.probability for token in expected.tokens], abs=1e-5)
    (whole,) = found[-1][1]["predictions"]
    assert (whole["text"], len(whole["looks"]["weights"])) == (expected.text, len(expected.tokens))
    assert whole["log_probability"] == pytest.approx(expected.log_probability, abs=1e-4)


@pytest.mark.parametrize("most", [1, 3, 4, 5, 9])
def test_a_stream_ends_at_max_length(client: TestClient, speller: Path, most: int) -> None:
    expected = seq2see.load(speller).predict("facedeaf", beam=1, max_length=most)
    found = events(client, model="speller", input="facedeaf", max_length=most)
    assert tokens(found) == [token.text for token in expected.tokens]


def test_a_stream_continues_a_prefix(client: TestClient, speller: Path) -> None:
    prefix = list("ABCDEF")
    expected = seq2see.load(speller).predict("facedeaf", beam=1, prefix=prefix)
    found = events(client, model="speller", input="facedeaf", prefix=prefix)
    assert tokens(found) == [token.text for token in expected.tokens]
    assert tokens(found)[: len(prefix)] == prefix


def test_the_same_seed_streams_the_same_tokens(client: TestClient) -> None:
    first, second = (events(client, model="babbler", sample=True, seed=3) for _ in range(2))
    assert tokens(first) == tokens(second)


@pytest.mark.parametrize(
    ("body", "status", "key"),
    [
        ({**STREAM, "beam": 3}, 409, "beam"),
        ({**STREAM, "n_best": 2}, 409, "n_best"),
        ({"model": "judge", "input": {"first": "aab", "second": "bab"}}, 409, "stream"),
        ({**STREAM, "inputs": ["a"]}, 422, "inputs"),
        ({**STREAM, "input": ["a"]}, 422, "input"),
        ({"model": "nobody", "input": "a"}, 404, "nobody"),
    ],
)
def test_what_cannot_be_streamed_has_a_status(client: TestClient, body: Any, status: int, key: str) -> None:
    response = client.post("/api/stream", json=body)
    assert (response.status_code, key in response.json()["error"]) == (status, True)


def test_a_long_list_is_answered_page_by_page(client: TestClient) -> None:
    words = [f"{first}{second}" for first in "abcdef" for second in "abc"]
    most = LIMITS.request_inputs
    assert len(words) > 2 * most
    found, pages, after = [], 0, 0
    while after is not None:
        answer = client.post("/api/predict", json={"model": "speller", "inputs": words, "after": after, "beam": 1})
        assert answer.status_code == 200, answer.text
        found += [prediction["input"] for prediction in answer.json()["predictions"]]
        after, pages = answer.json()["next"], pages + 1
    assert (found, pages) == (words, -(-len(words) // most))


@pytest.mark.parametrize(
    ("body", "status", "key"),
    [
        ({"inputs": ["a"] * 9}, 422, "after"),
        ({"inputs": ["a"] * 9, "after": 9}, 409, "after"),
        ({"input": "a", "after": 0}, 422, "after"),
        ({"inputs": [], "after": 0}, 422, "inputs"),
        ({"inputs": ["a"] * 9, "after": -1}, 422, "after"),
        ({"inputs": ["a"] * 8 + [7], "after": 8}, 422, "inputs[8]"),
    ],
)
def test_pages_that_are_not_there(client: TestClient, body: Any, status: int, key: str) -> None:
    response = client.post("/api/predict", json={"model": "speller", **body})
    assert (response.status_code, key in response.json()["error"]) == (status, True)
