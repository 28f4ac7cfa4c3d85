"""Clients that connect and dawdle, do not read, or hang up: they keep nobody else from being answered."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol

from seq2see.studio.app import create_app
from seq2see.studio.connections import Connections, LimitedConnection, _address
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.middleware import RequestBoundary
from seq2see.studio.model_repository import ServedModel, load_models
from seq2see.studio.server import create_server, listen
from tests.studio.test_dynamic_batching import hold

LARGE = 30_000_000
HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
ROUTES = ("predict", "oracle", "explain", "score")


class Small:
    """/ says ok, /large very much, /wait nothing until it may."""

    def __init__(self) -> None:
        self.waiting, self.go = threading.Semaphore(0), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/wait":
            message = await receive()
            while message.get("more_body"):
                message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.waiting.release()
            assert await asyncio.to_thread(self.go.wait, 60)
        body = b"a" * LARGE if scope["path"] == "/large" else b"ok"
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@contextmanager
def serving(app: Any, limits: Limits) -> Iterator[tuple[int, Connections]]:
    """The port of a server in a thread of this process, and its connections."""
    with closing(listen("127.0.0.1", 0)) as listening:
        boundary = app if isinstance(app, RequestBoundary) else RequestBoundary(app)
        server = create_server(boundary, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], server.config.http.manager  # type: ignore[union-attr]
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def connected(port: int, content: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=60)
    made.sendall(content)
    return made


def answered(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of all that comes until the other side closes."""
    content = b""
    while part := connection.recv(1 << 16):
        content += part
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, json.loads(body)


def eventually(true: Callable[[], bool]) -> bool:
    until = monotonic() + 60
    while not true() and monotonic() < until:
        sleep(0.002)
    return true()


def get(port: int, path: str = "/") -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", trust_env=False, timeout=60)


def test_a_multitude_of_slow_headers_locks_nobody_out() -> None:
    with ExitStack() as stack:
        port, connections = stack.enter_context(serving(Small(), Limits(connections=50, header_timeout=600)))
        for _ in range(4):
            for _ in range(75):
                stack.enter_context(connected(port, HALF_A_HEADER))
            assert (get(port).status_code, get(port).text) == (200, "ok")
        assert eventually(lambda: 40 <= len(connections) <= 50)
        with httpx.Client(trust_env=False, timeout=60) as client:
            for _ in range(3):
                assert client.get(f"http://127.0.0.1:{port}/").text == "ok"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """All connections are looked at ten times in a second."""
    monkeypatch.setattr("seq2see.studio.connections.TICK", 0.1)


@pytest.mark.usefixtures("often")
def test_a_header_has_its_seconds() -> None:
    with serving(Small(), Limits(header_timeout=0.5)) as (port, connections), ExitStack() as stack:
        silent, half = (stack.enter_context(connected(port, content)) for content in (b"", HALF_A_HEADER))
        second = stack.enter_context(connected(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))
        assert second.recv(1 << 16).startswith(b"HTTP/1.1 200")
        second.sendall(HALF_A_HEADER)  # the second request of a connection has them too
        for slow in (silent, half, second):
            status, headers, record = answered(slow)
            assert (status, headers["connection"], record.keys()) == (408, "close", {"error"})
        assert eventually(lambda: len(connections) == 0)


def test_more_connections_than_may_be_are_told_to_come_again() -> None:
    app = Small()
    with ExitStack() as stack:
        port, connections = stack.enter_context(serving(app, Limits(connections=3)))
        asked = b"GET /wait HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        waiting = [stack.enter_context(connected(port, asked)) for _ in range(3)]
        assert all(app.waiting.acquire(timeout=60) for _ in range(3))
        for _ in range(3):
            with connected(port, asked) as more:
                status, headers, record = answered(more)
            assert (status, headers["content-type"], record.keys()) == (503, "application/json", {"error"})
            assert int(headers["retry-after"]) > 0
        assert len(connections) == 3
        app.go.set()
        assert [one.recv(1 << 16)[:12] for one in waiting] == [b"HTTP/1.1 200"] * 3
        assert get(port).text == "ok", "those who were answered make room"


def test_a_body_that_does_not_come_makes_room() -> None:
    with ExitStack() as stack:
        port, _ = stack.enter_context(serving(Small(), Limits(connections=3)))
        asked = b"POST /wait HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n"
        for _ in range(6):
            stack.enter_context(connected(port, asked))
        assert get(port).text == "ok"


@pytest.mark.usefixtures("often")
def test_who_never_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Small(), Limits(send_timeout=0.5)) as (port, connections):
        with monkeypatch.context() as sooner, small_window(port) as lazy:
            sooner.setattr("seq2see.studio.connections.SPANS", 1)
            assert begun(lazy)
            assert eventually(lambda: len(connections) == 0)
            assert sum(len(part) for part in iter(lambda: lazy.recv(1 << 20), b"")) < LARGE
        assert len(get(port, "/large").content) == LARGE


def small_window(port: int) -> socket.socket:
    """A connection whose client's kernel reads little in advance."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    made.settimeout(60)
    made.connect(("127.0.0.1", port))
    made.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return made


def begun(connection: socket.socket) -> bool:
    """Wait for the beginning of an answer, and leave it unread."""
    return eventually(lambda: len(connection.recv(1000, socket.MSG_PEEK)) == 1000)


def test_who_reads_slowly_but_fast_enough_is_not_cut_off() -> None:
    """16 KB are to be read in half a second, and five times as much is; the kernels at both ends take more at once."""
    with serving(Small(), Limits(send_timeout=0.5)) as (port, connections), small_window(port) as slow:
        until, read = monotonic() + 2.5, 0  # longer than what is read at once is enough for
        while monotonic() < until:
            read += len(slow.recv(1 << 14))
            assert len(connections) == 1, f"cut off after {read:,} bytes"
            sleep(0.1)
        assert any(one.transport.get_write_buffer_size() for one in connections), "this was not slow"


@pytest.mark.usefixtures("often")
def test_who_reads_too_little_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seq2see.studio.connections.SPANS", 1)
    with serving(Small(), Limits(send_timeout=0.5)) as (port, connections), small_window(port) as slow:
        assert begun(slow)

        def gone() -> bool:
            with suppress(ConnectionError):
                slow.recv(10)
            return len(connections) == 0

        assert eventually(gone)


def test_answers_that_wait_to_be_read_are_bounded_and_the_slowest_goes() -> None:
    limits = Limits(send_timeout=600, unread_bytes=LARGE * 3 // 2)
    with serving(Small(), limits) as (port, connections), ExitStack() as stack:
        for _ in range(3):
            assert begun(stack.enter_context(small_window(port)))
            assert eventually(lambda: len(connections) == 1)
            assert eventually(lambda: 0 < sum(one.unsent_bytes for one in connections) <= limits.unread_bytes)
        assert len(get(port, "/large").content) == LARGE, "who reads is not cut off for those who do not"


def test_what_is_no_http_is_refused_as_json() -> None:
    with serving(Small(), Limits()) as (port, _), connected(port, b"\x16\x03\x01 hello\r\n\r\n") as other:
        status, headers, record = answered(other)
    assert (status, headers["content-type"], record.keys()) == (400, "application/json", {"error"})


class Fake:
    """A connection as far as `Connections` asks; number: the one who connected first has the least."""

    def __init__(self, connections: Connections, address: str, since: float, *, receiving: bool = True) -> None:
        self.address, self.since, self.receiving, self.busy = address, since, receiving, not receiving
        self.connections, self.evicted = connections, False

    def evict(self) -> None:
        self.evicted = True
        self.connections.remove(self)  # type: ignore[arg-type]


def test_one_address_takes_no_more_than_its_share() -> None:
    async def come() -> None:
        connections = Connections(Limits(connections=10, connections_per_address=2))

        def connect(address: str, since: float, **more: bool) -> tuple[bool, Fake]:
            one = Fake(connections, address, since, **more)
            return connections.admit(one), one  # type: ignore[arg-type]

        other = connect("192.0.2.9", 0)[1]
        first = [connect("192.0.2.1", number)[1] for number in (1, 2)]
        admitted, third = connect("192.0.2.1", 3)
        assert (admitted, first[0].evicted, first[1].evicted, other.evicted) == (True, True, False, False)
        for one in (first[1], third):
            one.receiving, one.busy = False, True
        assert connect("192.0.2.1", 4)[0] is False, "all of its connections are being answered"
        here = [connect("127.0.0.1", 5 + number, receiving=False) for number in range(7)]
        assert all(admitted for admitted, _ in here), "this machine's own address has no limit but that of all"
        assert len(connections) == 10
        assert (connect("127.0.0.1", 20)[0], other.evicted) == (True, True), "whoever waits longest makes room"

    asyncio.run(come())


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("192.0.2.1", 5), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::/64"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1"),
        (("::1", 5, 0, 0), "::1"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
        ("", ""),
        (None, ""),
    ],
)
def test_whose_connection_it_is(peer: Any, address: str) -> None:
    class Transport(asyncio.BaseTransport):
        def get_extra_info(self, name: str, default: Any = None) -> Any:
            return peer if name == "peername" else default

    assert _address(Transport()) == address


def test_the_protocol_is_h11_whatever_is_installed() -> None:
    made = Connections(Limits()).protocol()
    assert issubclass(made, LimitedConnection)
    assert issubclass(made, H11Protocol)
    for needed in ("cycle", "on_response_complete", "send_400_response"):
        assert hasattr(H11Protocol, needed) or needed in H11Protocol.__init__.__code__.co_names


# ------------------------------------------------------------------- who hangs up


@pytest.fixture(scope="module")
def one(speller: Path) -> Iterator[tuple[int, ServedModel]]:
    limits = Limits(queue_size=20)
    repository = load_models([str(speller)], limits, ServerMetrics())
    with serving(create_app(repository, limits, ServerMetrics()), limits) as (port, _):
        yield port, next(iter(repository))
    repository.close()


def header(size: int) -> bytes:
    """A request of nearly that many bytes, without the empty line that ends it."""
    start = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX: "
    return start + b"a" * (size - len(start) - 10) + b"\r\n"


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ([header(60_000) + b"\r\n"], 200),
        ([header(60_000)[:20_000], header(60_000)[20_000:50_000], header(60_000)[50_000:], b"\r\n"], 200),
        ([header(100_000) + b"\r\n"], 431),
        ([header(100_000), b"\r\n"], 431),
        ([header(400_000)[at : at + 20_000] for at in range(0, 400_000, 20_000)], 431),
        ([b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"], 431),
    ],
)
def test_a_header_has_its_size_in_whatever_pieces_it_comes(
    one: tuple[int, ServedModel], caplog: pytest.LogCaptureFixture, pieces: list[bytes], status: int
) -> None:
    port, _ = one
    with connected(port) as client:
        for piece in pieces:
            try:
                client.sendall(piece)
            except ConnectionError:
                break  # refused already
            sleep(0.01)
        try:
            found, headers, record = answered(client)
        except ConnectionError:
            assert status == 431, "whoever writes on after it was refused may not see the answer"
        else:
            assert (found, headers["connection"], "error" in record) == (status, "close", status != 200)
    assert [one for one in caplog.records if one.levelname == "ERROR"] == []


BODIES: dict[str, dict[str, Any]] = {
    "predict": {"inputs": ["face", "deaf", "bead"]},
    "oracle": {"input": "face", "oracle": {"0": [1, 0, 0, 0]}},
    "explain": {"input": "face"},
    "score": {"input": "face", "output": "F"},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("form", [False, True])
def test_who_hangs_up_leaves_the_queue(one: tuple[int, ServedModel], route: str, form: bool) -> None:
    port, served = one
    request = httpx.Request("POST", f"http://127.0.0.1:{port}/api/{route}", json=BODIES[route])
    if form:
        data = {key: value if isinstance(value, str) else json.dumps(value) for key, value in BODIES[route].items()}
        request = httpx.Request("POST", request.url, files={key: (None, value) for key, value in data.items()})
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    content = f"POST /api/{route} HTTP/1.1\r\n{head}\r\n".encode() + request.read()
    expected = len(BODIES[route].get("inputs", [1]))
    go = hold(served.batcher)
    try:
        for _ in range(12):  # twelve times three inputs are more than may wait
            with connected(port, content):
                assert eventually(lambda: served.batcher.waiting == expected)
            assert eventually(lambda: served.batcher.waiting == 0)
    finally:
        go.set()
    answer = httpx.post(f"http://127.0.0.1:{port}/api/predict", json={"input": "face"}, trust_env=False, timeout=60)
    assert answer.status_code == 200
