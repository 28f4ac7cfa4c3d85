"""Requests to the server's application, called in this process: bodies, forms, headers, methods and paths."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import random
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from PIL import Image

from seq2see import api
from seq2see.files import parse_json
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository, load_models
from tests.hostile.models import make_model, write_rows
from tests.hostile.mutations import TEXTS, mutate_bytes, mutate_settings

LIMITS = Limits(body_bytes=300_000, text_characters=500, request_inputs=8, request_work=5_000)
"""Small, so that cases at a limit are cheap; queues and times are those of a real server."""
HANG = 120.0
"""Seconds after which an answer is not waited for; the server's own limit is 60."""
EDGE = b"----edge"
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("predict", {"model": "word", "input": "one two", "beam": 2, "n_best": 2, "maps": True}),
    ("predict", {"model": "word", "inputs": ["one", "two three"], "looks": False, "shown": False, "max_length": 5}),
    ("predict", {"model": "word", "input": "two", "sample": True, "temperature": 0.7, "top_k": 3, "top_p": 0.9}),
    ("predict", {"model": "word", "input": "one two", "prefix": ["zwei"], "oracle": {"0": [1, 0], "1": [0.5, 0.5]}}),
    ("predict", {"model": "word", "input": {"source": "one"}, "target": "zwei eins", "runners_up": 3}),
    ("predict", {"model": "label", "input": ["one two", "two"], "beam": 1}),
    ("predict", {"model": "vector", "input": [1, 2.5]}),
    ("predict", {"model": "image", "input": "data:image/png;base64,{png}", "min_length": 1}),
    ("predict", {"model": "image", "input": {"example": 0}}),
    ("oracle", {"model": "word", "input": "one two", "oracle": {"0": {"source": [0.5, 0.5]}}, "said": ["zwei"]}),
    ("explain", {"model": "word", "input": "one two", "step": 1, "beam": 2, "target": ["zwei", "<eos>"]}),
    ("explain", {"model": "label", "input": "one ||| two", "oracle": {"0": [0.5, 0.5]}}),
    ("score", {"model": "word", "input": "one", "output": "eins"}),
    ("score", {"model": "word", "rows": [{"input": "one", "output": "eins"}, {"input": "two", "output": ""}]}),
]
"""(route, a body that is answered with 200)."""
PATHS = [
    *("/", "/docs", "/live", "/health", "/metrics", "/openapi.json", "/api/models", "/api/models/word", "/api/run"),
    *("/api/models/image/examples/0/image", "/api/run/metrics?model=word&after=0", "/static/js/main.js"),
    "/api/run/film?model=word&after=3&file=x",
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "X", "POST\x00"]
HEADERS: list[tuple[bytes, list[bytes]]] = [
    (b"host", [b"127.0.0.1:8000", b"localhost", b"evil.example", b"", b"[::1", b"127.0.0.1:99999999", b"\xff"]),
    (b"origin", [b"http://127.0.0.1:8000", b"null", b"http://[", b"https://evil.example", b"\xff\xfe"]),
    (b"content-length", [b"0", b"-1", b"9" * 30, b"abc", b"1", b"\xb2", b"300001"]),
    (
        b"content-type",
        [b"application/json", b"text/plain", b"", b"application/json; charset=\xff", b"multipart/form-data"],
    ),
    (b"content-type", [b"multipart/form-data; boundary=", b'multipart/form-data; boundary="', b"a" * 5000, b";;;"]),
    (b"transfer-encoding", [b"chunked", b"gzip", b"identity, chunked"]),
    (b"content-encoding", [b"gzip", b"br", b"identity"]),
    (b"authorization", [b"Bearer x", b"Bearer", b"Basic \xff", b""]),
    (b"cookie", [b"seq2see-token=x", b"a=b; c", b"=;=;=", b"\xff=\x00", b"a" * 9000]),
    (b"range", [b"bytes=0-1", b"bytes=-1", b"bytes=9-1", b"bytes=0-99999999999999999999", b"bytes=a-b", b"x=1-2"]),
    (b"if-none-match", [b"*", b'"a', b"W/"]),
    (b"if-modified-since", [b"yesterday", b"Thu, 99 Jan 1970 00:00:00 GMT", b"\xff"]),
    (b"accept", [b"*/*", b"text/html", b""]),
    (b"sec-fetch-site", [b"cross-site", b"same-origin", b"none", b""]),
    (b"expect", [b"100-continue"]),
    (b"x-forwarded-for", [b"1.2.3.4", b"\xff"]),
]


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    body: bytes
    headers: list[tuple[bytes, bytes]]
    pieces: int = 1
    gone: bool = False
    """The client hangs up before its body is whole."""


def picture() -> bytes:
    file = BytesIO()
    Image.new("RGB", (20, 20), (200, 30, 30)).save(file, "PNG")
    return file.getvalue()


def image_model(folder: Path) -> Path:
    rows = []
    for number in range(16):
        Image.new("RGB", (20, 20), (15 * number, 30, 200)).save(folder / f"{number}.png")
        rows.append(f"{number}.png\t{'red' if number > 8 else 'blue'}\n")
    table = folder / "pictures.tsv"
    table.write_text("image\ttext\n" + "".join(rows), "utf-8")
    settings = ["inputs.image.encoder.backbone=small", "inputs.image.height=16", "inputs.image.width=16"]
    settings += ["decoder.size=8", "decoder.embedding.size=4", "search.max_length=4", "training.dev_rows=2"]
    api.train("image-captioning", table, out=folder / "image", updates=1, overrides=settings, listeners=[])
    return folder / "image"


def requests(
    folder: Path, *, kinds: tuple[str, ...] = ("word", "label", "vector", "image")
) -> Callable[[random.Random], bool]:
    """The check of one request; kinds: the models that are served."""
    table, metrics = write_rows(folder), ServerMetrics()
    folders = [image_model(folder) if kind == "image" else make_model(kind, table) for kind in kinds]
    repository = load_models([str(path) for path in folders], LIMITS, metrics, files=[folder])
    app, runner = create_app(repository, LIMITS, metrics), asyncio.Runner()
    bodies = [(route, _filled(body)) for route, body in BODIES]

    def check(draw: random.Random) -> bool:
        asked = make_request(draw, bodies)
        status, headers, body = runner.run(asyncio.wait_for(answer(app, asked), HANG))
        promised = status < 500 or (status == 503 and b"retry-after" in headers)
        assert promised, f"{asked.method} {asked.path!r}: {status} {body[:300]!r}\n{asked}"
        if headers.get(b"content-type", b"").startswith(b"application/json") and body:
            parse_json(body.decode("utf-8"), halves=True)
        return status < 400

    weakref.finalize(check, _close, repository, runner)
    return check


def _close(repository: ModelRepository, runner: asyncio.Runner) -> None:
    repository.close(1)
    runner.close()


def _filled(body: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(body).replace("{png}", base64.b64encode(picture()).decode())
    filled: dict[str, Any] = json.loads(text)
    return filled


def make_request(draw: random.Random, bodies: list[tuple[str, dict[str, Any]]]) -> Asked:
    if draw.random() < 0.2:
        method, path, body, kind = draw.choice(METHODS[:2]), draw.choice(PATHS), b"", b""
    else:
        route, record = draw.choice(bodies)
        method, path = "POST", f"/api/{route}"
        body, kind = _form(record, draw) if draw.random() < 0.2 else (_json(record, draw), b"application/json")
    headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", kind), (b"content-length", str(len(body)).encode())]
    if draw.random() < 0.2:
        path = _path(path, draw)
    if draw.random() < 0.1:
        method = draw.choice(METHODS)
    while draw.random() < 0.25:
        name, values = draw.choice(HEADERS)
        value = draw.choice(values)
        headers = [pair for pair in headers if pair[0] != name or draw.random() < 0.1]
        headers.append((name, mutate_bytes(value, draw) if draw.random() < 0.2 else value))
    return Asked(method, path, body, headers, draw.choice([1, 1, 2, 5]), draw.random() < 0.03)


def _json(record: dict[str, Any], draw: random.Random) -> bytes:
    what = draw.random()
    if what < 0.6:
        changed = mutate_settings(record, draw)
        return json.dumps(changed, default=str, skipkeys=True).encode("utf-8", "replace")
    text = json.dumps(record).encode()
    return mutate_bytes(text, draw) if what < 0.95 else text


def _form(record: dict[str, Any], draw: random.Random) -> tuple[bytes, bytes]:
    parts = b""
    for name, value in record.items():
        text = value if isinstance(value, str) else json.dumps(value)
        parts += b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n' % (EDGE, name.encode())
        parts += text.encode() + b"\r\n"
    if draw.random() < 0.5:
        content = mutate_bytes(picture(), draw) if draw.random() < 0.8 else picture()
        name = draw.choice(["image", "input", "source", *TEXTS]).encode("utf-8", "replace")
        head = b'Content-Disposition: form-data; name="%s"; filename="%s"' % (
            name,
            draw.choice([b"a.png", b"../a", b""]),
        )
        parts += b"--%s\r\n%s\r\nContent-Type: image/png\r\n\r\n%s\r\n" % (EDGE, head, content)
    whole = parts + b"--%s--\r\n" % EDGE
    return mutate_bytes(whole, draw) if draw.random() < 0.7 else whole, b"multipart/form-data; boundary=" + EDGE


def _path(path: str, draw: random.Random) -> str:
    text = draw.choice(TEXTS)
    where = draw.randrange(len(path) + 1)
    return (
        path[:where]
        + draw.choice([quote(text), "%", "%ff", "//", "?", "&after=", "=", "/../", "%2e%2e%2f"])
        + path[where:]
    )


async def answer(app: Any, asked: Asked) -> tuple[int, dict[bytes, bytes], bytes]:
    """(status, headers, body) as the application sends them; what a server would refuse itself is not sent."""
    from urllib.parse import unquote

    path, _, query = asked.path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": asked.method,
        "path": unquote(path),
        "raw_path": path.encode("utf-8", "replace"),
        "root_path": "",
        "query_string": query.encode("utf-8", "replace"),
        "headers": asked.headers,
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    waiting = iter(list(_pieces(asked)))
    sent: list[dict[str, Any]] = []
    answered = asyncio.Event()

    async def receive() -> dict[str, Any]:
        message = next(waiting, None)
        if message is None:
            await answered.wait()
            return {"type": "http.disconnect"}
        return message

    async def send(message: dict[str, Any]) -> None:
        sent.append(copy.copy(message))
        if message["type"] == "http.response.body" and not message.get("more_body"):
            answered.set()

    await app(scope, receive, send)
    start = next((message for message in sent if message["type"] == "http.response.start"), None)
    if start is None:
        assert asked.gone, f"no answer to {asked}"
        return 499, {}, b""
    body = b"".join(message.get("body", b"") for message in sent)
    return int(start["status"]), {name.lower(): value for name, value in start["headers"]}, body


def _pieces(asked: Asked) -> Iterator[dict[str, Any]]:
    size = max(1, -(-len(asked.body) // asked.pieces))
    pieces = [asked.body[at : at + size] for at in range(0, len(asked.body), size)] or [b""]
    for number, piece in enumerate(pieces):
        if asked.gone and number == len(pieces) - 1:
            yield {"type": "http.disconnect"}
            return
        yield {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1}
