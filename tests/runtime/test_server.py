"""The runtime's server: the same answers as `predict`, and a 4xx for whatever a client does wrong."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from seq2see.errors import UserError
from tests.runtime.conftest import inputs_of, original

Exported = Callable[[str], Path]
Ask = Callable[..., tuple[int, Any]]
TOKEN = "a long secret"


def serving(folder: Path, token: str | None = None) -> Iterator[Ask]:
    from seq2see_runtime import load
    from seq2see_runtime.server import make_server

    server = make_server(load(folder, threads=1), "127.0.0.1", 0, token=token)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, content, {"Content-Type": "application/json"} | headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        connection.close()
        return answer.status, found

    yield ask
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def words(exported: Exported) -> Iterator[Ask]:
    yield from serving(exported("transliteration"))


@pytest.fixture(scope="module")
def pictures(exported: Exported) -> Iterator[Ask]:
    yield from serving(exported("image-captioning"))


@pytest.fixture(scope="module")
def labels(exported: Exported) -> Iterator[Ask]:
    yield from serving(exported("entailment"))


@pytest.fixture(scope="module")
def guarded(exported: Exported) -> Iterator[Ask]:
    yield from serving(exported("transliteration"), TOKEN)


def test_predictions_are_the_models(words: Ask) -> None:
    inputs = inputs_of("transliteration")
    status, found = words("POST", "/api/predict", {"inputs": inputs, "beam": 2})
    assert status == 200
    wanted = original("transliteration").predict(inputs, beam=2)
    assert [each["text"] for each in found["predictions"]] == [each.text for each in wanted]
    assert found["predictions"][0]["looks"]["inputs"] == wanted[0].looks.to_dict()["inputs"]


def test_pictures_come_as_urls_and_never_as_paths(pictures: Ask) -> None:
    path = inputs_of("image-captioning")[0]
    url = "data:image/png;base64," + base64.b64encode(Path(path).read_bytes()).decode()
    status, found = pictures("POST", "/api/predict", {"input": url})
    assert status == 200
    assert found["predictions"][0]["text"] == original("image-captioning").predict(path).text
    assert found["predictions"][0]["input"] == "image/png"
    assert pictures("POST", "/api/predict", {"input": path})[0] == 422
    assert pictures("POST", "/api/predict", {"input": "data:image/png;base64,AAAA"})[0] == 409


def test_scores(words: Ask) -> None:
    value = inputs_of("transliteration")[0]
    text = original("transliteration").predict(value).text
    status, found = words("POST", "/api/score", {"input": value, "output": text})
    assert status == 200
    assert found["rows"][0]["log_probability"] < 0


def test_what_is_served(words: Ask) -> None:
    assert words("GET", "/health") == (200, {"status": "ok"})
    assert words("GET", "/api/model")[1]["answer"] == "text"


BAD: list[tuple[str, str, Any, int]] = [
    ("GET", "/nothing", None, 404),
    ("GET", "/api/predict", None, 405),
    ("PUT", "/api/predict", None, 405),
    ("POST", "/api/predict", {"input": "a", "beam": 64, "max_length": 2000}, 413),
    ("POST", "/api/predict", {"input": "a", "seed": 3}, 409),
    ("POST", "/api/predict", {"input": "a", "target": "a", "prefix": "a"}, 409),
    ("POST", "/api/predict", b"{", 400),
    ("POST", "/api/predict", b"\xff", 400),
    ("POST", "/api/predict", b"[" * 100_000, 400),
    ("POST", "/api/predict", [], 422),
    ("POST", "/api/predict", {}, 409),
    ("POST", "/api/predict", {"input": 5}, 409),
    ("POST", "/api/predict", {"input": "a", "beams": 2}, 422),
    ("POST", "/api/predict", {"input": "a", "beam": "2"}, 422),
    ("POST", "/api/predict", {"input": "a", "beam": True}, 422),
    ("POST", "/api/predict", {"input": "a", "beam": 10**30}, 422),
    ("POST", "/api/predict", {"input": "a", "beam": 1000}, 422),
    ("POST", "/api/predict", {"input": "a", "beam": 0}, 409),
    ("POST", "/api/predict", {"input": "a", "temperature": 2}, 409),
    ("POST", "/api/predict", {"inputs": []}, 422),
    ("POST", "/api/predict", {"inputs": ["a"] * 65}, 413),
    ("POST", "/api/predict", {"input": "a" * 20_001}, 413),
    ("POST", "/api/predict", {"input": "a", "target": "b" * 5_000}, 413),
    ("POST", "/api/predict", {"input": {"other": "a"}}, 409),
    ("POST", "/api/score", {"input": "a"}, 422),
    ("POST", "/api/score", {"rows": [5]}, 422),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), BAD)
def test_what_a_client_does_wrong_is_named(method: str, path: str, body: Any, status: int, words: Ask) -> None:
    found, answer = words(method, path, body)
    assert found == status
    assert answer["error"]


def test_too_much_is_refused_before_it_is_read(words: Ask) -> None:
    assert words("POST", "/api/predict", None, **{"Content-Length": "99999999"})[0] == 413
    assert words("POST", "/api/predict", None, **{"Content-Length": "x"})[0] == 411


def test_other_types_of_bodies_are_refused(words: Ask) -> None:
    """A page of another origin could send those without asking."""
    assert words("POST", "/api/predict", {"input": "a"}, **{"Content-Type": "text/plain"})[0] == 415


def test_pages_from_elsewhere_are_refused(words: Ask) -> None:
    body = {"input": "a"}
    assert words("POST", "/api/predict", body, Origin="http://evil.example")[0] == 403
    assert words("POST", "/api/predict", body, Host="evil.example")[0] == 403


def test_another_address_needs_a_token(exported: Exported) -> None:
    from seq2see_runtime import load
    from seq2see_runtime.server import make_server

    model = load(exported("transliteration"), threads=1)
    for host, token in (("0.0.0.0", None), ("127.0.0.1", "short")):
        with pytest.raises(UserError, match="token"):
            make_server(model, host, 0, token=token)


def test_an_empty_input_cannot_be_scored(labels: Ask) -> None:
    body = {"input": {"premise": "", "hypothesis": ""}, "output": "x"}
    status, answer = labels("POST", "/api/score", body)
    assert status == 409
    assert answer["error"]


def test_a_token_is_asked_for(guarded: Ask) -> None:
    body = {"input": inputs_of("transliteration")[0]}
    assert guarded("POST", "/api/predict", body)[0] == 401
    assert guarded("POST", "/api/predict", body, Authorization="Bearer wrong")[0] == 401
    assert guarded("POST", "/api/predict", body, Authorization=f"Bearer {TOKEN}")[0] == 200
    assert guarded("GET", "/health")[0] == 200
