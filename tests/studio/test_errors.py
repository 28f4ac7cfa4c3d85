"""Bad requests: a 4xx and a message that says what is allowed; never a traceback, never another's trouble."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository
from seq2see.studio.request_log import RequestRecord
from tests.studio.conftest import LIMITS

SPELLER = {"model": "speller", "input": "face"}
EVERYTHING = [[symbol] for symbol in ("<unk>", "<eos>", *"ABCDEF")]


@pytest.mark.parametrize(
    ("what", "body", "status", "said"),
    [
        ("predict", {**SPELLER, "model": "spelller"}, 404, "did you mean 'speller'?"),
        ("predict", {"input": "face"}, 422, "model: missing; allowed: speller, captions, judge, babbler"),
        ("predict", {"model": "speller"}, 422, "input: missing; the model reads source"),
        ("predict", {**SPELLER, "input": ""}, 409, "input: it is empty"),
        ("predict", {"model": "judge", "input": {"first": "ab", "second": " "}}, 409, "input: second: empty"),
        ("predict", {**SPELLER, "input": 5}, 422, "input 'source': expected text, got 5"),
        ("predict", {**SPELLER, "input": "a" * 1001}, 422, "1,001 characters; allowed: at most 1,000"),
        ("predict", {**SPELLER, "input": {"text": "a"}}, 422, "the model reads the inputs source"),
        ("predict", {**SPELLER, "input": {"example": 99}}, 422, "example: 99 is none; allowed: 0 to"),
        ("predict", {**SPELLER, "inputs": ["a"]}, 422, "input and inputs: give one of them"),
        ("predict", {"model": "speller", "inputs": ["a"] * 9}, 422, "inputs: 9 given; allowed: 1 to 8"),
        ("predict", {"model": "speller", "inputs": ["a", ""]}, 409, "inputs[1]: input: it is empty"),
        ("predict", {"model": "speller", "inputs": ["a", "b", 5]}, 422, "inputs[2]: input 'source': expected text"),
        ("predict", {"model": "speller", "inputs": ["a", 5], "target": "A"}, 422, "inputs[1]: input 'source'"),
        (
            "score",
            {"model": "speller", "rows": [{"input": "a", "output": "A"}, {"input": 5, "output": "A"}]},
            422,
            "rows[1]",
        ),
        ("predict", {**SPELLER, "baem": 3}, 422, "unknown key 'baem' (did you mean 'beam'?); allowed: model, input"),
        ("predict", {**SPELLER, "beam": "3"}, 422, "beam: should be an integer, got '3'"),
        ("predict", {**SPELLER, "beam": 65}, 422, "beam: should be less than or equal to 64, got 65"),
        ("predict", {**SPELLER, "temperature": 2.0}, 409, "temperature 2.0 shapes what is drawn: set sample"),
        ("predict", {**SPELLER, "seed": 2}, 409, "seed: needs sample"),
        ("predict", {**SPELLER, "target": "A", "beam": 2}, 409, "beam: cannot be used with target"),
        ("predict", {**SPELLER, "prefix": ["A", "<eos>", "B"]}, 409, "symbol 1 is <eos>; only <eos> may be given"),
        ("predict", {**SPELLER, "prefix": [1]}, 422, "prefix.0: should be a string that is not empty, got 1"),
        ("predict", {**SPELLER, "prefix": ["A", ""]}, 422, "prefix.1: should be a string that is not empty, got ''"),
        ("predict", {**SPELLER, "target": [""]}, 422, "target.0: should be a string that is not empty, got ''"),
        ("oracle", {**SPELLER, "oracle": {"0": [1, 0, 0, 0]}, "said": ["A", ""]}, 422, "said.1: "),
        ("predict", {**SPELLER, "avoid_prefixes": [["A", ""]]}, 422, "avoid_prefixes.0.1: should be a string that is"),
        ("predict", {**SPELLER, "avoid_prefixes": "A"}, 422, "avoid_prefixes: should be a list of prefixes, got 'A'"),
        ("predict", {**SPELLER, "avoid_prefixes": ["A", []]}, 422, "avoid_prefixes.1: should be a string or a list"),
        ("predict", {**SPELLER, "avoid_prefixes": [["A", 1]]}, 422, "avoid_prefixes.0.1: should be a string that"),
        ("predict", {**SPELLER, "avoid_prefixes": [["A"]] * 257}, 422, "257 prefixes; allowed: at most 256"),
        ("predict", {**SPELLER, "avoid_prefixes": [" "]}, 409, "number 0: empty"),
        ("predict", {**SPELLER, "avoid_prefixes": [["<sos>"]]}, 409, "avoid_prefixes.0: symbol 0 is <sos>"),
        ("predict", {**SPELLER, "prefix": "A B", "avoid_prefixes": ["A"]}, 409, "the forced prefix begins with it"),
        ("predict", {**SPELLER, "avoid_prefixes": EVERYTHING}, 409, "nothing is left to write"),
        ("predict", {**SPELLER, "avoid_prefixes": EVERYTHING, "beam": 1}, 409, "nothing is left to write"),
        ("predict", {**SPELLER, "target": "A", "avoid_prefixes": ["B"]}, 409, "avoid_prefixes: cannot be used with"),
        ("predict", {**SPELLER, "oracle": {"0": [0.5, 0.5]}}, 409, "2 weights for 'source', which has 4 places"),
        ("predict", {**SPELLER, "oracle": {"0": [1, 1, 0, 0]}}, 409, "must sum to 1, got 2"),
        (
            "predict",
            {**SPELLER, "oracle": {"0": [2, -1, 0, 0]}},
            422,
            "oracle.0.0: weights must be numbers from 0 to 1, got 2",
        ),
        ("predict", {**SPELLER, "oracle": {"0": [1e308, 1e308, 0, 0]}}, 422, "from 0 to 1, got 1e+308"),
        ("predict", {**SPELLER, "oracle": {"0": [10**400, 0, 0, 0]}}, 422, "oracle.0"),
        (
            "predict",
            {**SPELLER, "sample": True, "temperature": 1e-40},
            422,
            "temperature: should be greater than or equal to 0.001, got 1e-40",
        ),
        (
            "predict",
            {**SPELLER, "length_penalty": 1e300},
            422,
            "length_penalty: should be less than or equal to 10, got 1e+300",
        ),
        ("predict", {**SPELLER, "coverage_penalty": 1e300}, 422, "coverage_penalty: should be less"),
        ("predict", {**SPELLER, "oracle": {"one": [1, 0, 0, 0]}}, 422, "step 'one'; steps are whole numbers"),
        ("predict", {**SPELLER, "oracle": {"0": {"sorce": [1, 0, 0, 0]}}}, 409, "did you mean 'source'?"),
        ("predict", {**SPELLER, "oracle": {"99": [1, 0, 0, 0]}}, 409, "step 99; allowed: 0 to 11"),
        ("predict", {"model": "judge", "input": "a"}, 422, "the model reads first, second: give {name: value}"),
        ("predict", {"model": "judge", "input": {"first": "a", "second": "b"}, "beam": 2}, 409, "is not searched for"),
        ("predict", {"model": "babbler", "input": "a"}, 422, "is a language model and reads none"),
        ("predict", {"model": "captions", "input": "/etc/passwd"}, 422, "input 'image': expected a file"),
        ("predict", {"model": "captions", "input": "data:image/png;base64,####"}, 422, "the data: URL is damaged"),
        ("predict", {"model": "captions", "input": "data:image/png;base64,aGVsbG8="}, 409, "image.png: not an image"),
        ("oracle", SPELLER, 422, "oracle: missing; give {step: weights}"),
        ("oracle", {"model": "babbler", "oracle": {"0": [1]}}, 409, "no attention to set"),
        ("explain", {**SPELLER, "step": 99}, 409, "step 99: the output has"),
        ("score", SPELLER, 422, "output: missing; give `input` and `output`, or `rows`"),
        ("score", {"model": "speller", "rows": [{"input": "a", "outptu": "A"}]}, 422, "unknown key 'rows.0.outptu'"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(
    client: TestClient, what: str, body: dict[str, Any], status: int, said: str
) -> None:
    answer = client.post(f"/api/{what}", json=body)
    assert (answer.status_code, answer.json().keys()) == (status, {"error"}), answer.text
    assert said in answer.json()["error"]


def test_bodies_that_are_no_json_or_no_object(client: TestClient) -> None:
    def post(content: bytes, kind: str = "application/json") -> tuple[int, str]:
        answer = client.post("/api/predict", content=content, headers={"Content-Type": kind})
        return answer.status_code, answer.json()["error"]

    assert post(b"{")[0] == 400
    assert post(b'{"beam": NaN}')[0] == 400
    assert post(b"[" * 100_000)[0] == 400
    assert post(b"[1]")[0] == 422
    assert post(b"face", "text/plain") == (
        415,
        "Content-Type 'text/plain' is not read; allowed: application/json, multipart/form-data",
    )
    assert post(b"x", "multipart/form-data; boundary=a")[0] == 400
    assert client.get("/api/nothing").json() == {"error": "nothing is at /api/nothing; /docs lists what there is"}
    assert client.get("/api/predict").status_code == 405
    assert client.get("/api/models/captions/examples/0/..%2f..%2fetc").status_code == 404
    assert client.get("/static/../app.py").status_code == 404
    last = len(client.get("/api/models/captions").json()["examples"]) - 1
    for number in ("²", "9" * 5000, "-1", "99"):
        answer = client.get(f"/api/models/captions/examples/{number}/image")
        assert (answer.status_code, f"allowed: 0 to {last}" in answer.json()["error"]) == (404, True)


def test_a_body_beyond_the_limit_is_never_read(client: TestClient) -> None:
    said = {"error": "the body is too large; allowed: at most 0.3 MB"}
    answer = client.post("/api/predict", json={**SPELLER, "input": "a" * 400_000})
    assert (answer.status_code, answer.json()) == (413, said)
    parts = (b"a" * 50_000 for _ in range(10))  # no length is told beforehand
    answer = client.post("/api/predict", content=parts, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()) == (413, said)
    answer = client.post("/api/predict", data={"model": "captions"}, files={"image": b"a" * 400_000})
    assert (answer.status_code, answer.json()) == (413, said)


def test_text_with_markup_comes_back_as_it_is(client: TestClient) -> None:
    answer = client.post("/api/predict", json={**SPELLER, "input": "<b>a</b>"})
    assert answer.json()["predictions"][0]["input"] == "<b>a</b>"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_only_this_machine_is_served_and_other_pages_are_refused(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "ok"
    assert client.get("/health", headers={"Host": "evil.example:8000"}).status_code == 403
    assert client.get("/health", headers={"Host": "localhost:8000"}).status_code == 200
    assert client.post("/api/predict", json=SPELLER, headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.post("/api/predict", json=SPELLER, headers={"Origin": "http://127.0.0.1:8000"}).status_code == 200
    assert client.get("/health", headers={"Host": "["}).json() == {
        "error": "Host '[' is not an address; allowed: NAME or NAME:PORT"
    }
    answer = client.get("/health", headers={"Origin": "http://["})
    assert (answer.status_code, "Origin 'http://[' may not ask here" in answer.text) == (403, True)
    page = client.get("/")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert "access-control-allow-origin" not in page.headers


def test_an_answer_has_its_size(repository: ModelRepository) -> None:
    client = TestClient(
        create_app(repository, replace(LIMITS, response_bytes=2_000), ServerMetrics()), base_url="http://127.0.0.1:8000"
    )
    large = {**SPELLER, "input": "face", "beam": 4}
    assert client.post("/api/predict", json=large).status_code == 409
    small = {**large, "beam": 1, "looks": False, "shown": False}
    assert client.post("/api/predict", json=small).status_code == 200


def test_a_token_is_asked_of_every_request(repository: ModelRepository) -> None:
    token = "a-long-enough-token"
    app = create_app(repository, LIMITS, ServerMetrics(), token=token, local=False)
    client = TestClient(app, base_url="http://example.org")
    for path in ("/", "/api/models", "/health", "/metrics", "/static/docs.js", "/openapi.json"):
        assert client.get(path).status_code == 401
    assert client.get("/health", headers={"Authorization": f"Bearer {token}x"}).status_code == 401
    assert client.get("/health", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    answer = client.get("/", params={"token": token, "model": "a"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/?model=a")
    assert "HttpOnly" in answer.headers["set-cookie"]
    for path in ("//evil.example/", "///evil.example/", "/\\evil.example/", "/%2Fevil.example/"):
        stranger = TestClient(app, base_url="http://example.org")
        answer = stranger.get(f"http://example.org{path}?token={token}", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/evil.example/")
    assert client.get("/api/models").status_code == 200


def test_a_fault_of_ours_is_logged_and_not_told(
    client: TestClient, repository: ModelRepository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr("seq2see.studio.dynamic_batching.predict", broken)
    answer = client.post("/api/predict", json=SPELLER)
    assert (answer.status_code, answer.json()) == (500, {"error": "the server failed at this; its log says more"})
    assert "a secret" not in caplog.text, "messages of exceptions quote what a client sent"
    assert "POST /api/predict failed" in caplog.text
    assert "builtins.RuntimeError" in caplog.text
    assert "in broken" in caplog.text


def test_the_pages_of_the_server_ask_nobody_else(client: TestClient) -> None:
    for path in ("/", "/docs"):
        page = client.get(path).text
        assert "//" not in page.replace("<!doctype", "")
        assert "<script>" not in page
    told = client.get("/openapi.json").json()
    assert {"/api/predict", "/api/oracle", "/api/score", "/api/explain", "/api/models", "/health", "/metrics"} <= set(
        told["paths"]
    )
    body = told["paths"]["/api/predict"]["post"]["requestBody"]["content"]
    assert "beam" in body["application/json"]["schema"]["anyOf"][0]["properties"]
    json.dumps(told)


def test_what_was_done_is_counted(client: TestClient) -> None:
    client.post("/api/predict", json=SPELLER)
    text = client.get("/metrics").text
    assert 'seq2see_requests_total{path="/api/predict",status="200"}' in text
    assert 'seq2see_batch_rows_count{model="speller"}' in text
    assert 'seq2see_waiting{model="captions"} 0' in text


def test_sums_are_told_to_the_last_figure() -> None:
    metrics = ServerMetrics()
    for _ in range(3):
        metrics.count_request(RequestRecord("", "", "POST", "/api/predict", 200, milliseconds=411522250))
    assert 'seq2see_request_seconds_sum{path="/api/predict"} 1.23456675e+06' in metrics.text().splitlines()


def test_files_of_requests_do_not_stay(client: TestClient, home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    files = {"image": ("a.png", (home / "0.png").read_bytes(), "image/png")}
    assert client.post("/api/predict", data={"model": "captions"}, files=files).status_code == 200
    assert list(tmp_path.iterdir()) == []
