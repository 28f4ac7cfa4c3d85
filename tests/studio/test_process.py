"""The server as users start it: a process, a socket, clients that behave badly."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

from seq2see.cli import main

FIFTY = 50_000_000


@contextmanager
def serving(names: str, *command: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server's process, and the address that it says for the models of these names."""
    given = [sys.executable, *map(str, command), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(given, stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        said, found = list[str](), None
        for line in iter(server.stderr.readline, ""):
            said.append(line)
            if found := re.search(rf"{names}: (http://127\.0\.0\.1:\d+)/", line):
                break
        assert found, "".join(said)
        yield server, found[1]


@pytest.fixture(scope="module")
def address(speller: Path) -> Iterator[str]:
    """http://127.0.0.1:PORT of a server that takes bodies of 8 MB."""
    with serving("speller", "-m", "seq2see", "serve", speller, "--max-upload", 8) as (server, made):
        yield made
        assert server.stderr is not None
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert "Traceback" not in server.stderr.read()


def test_slow_and_large_bodies_stop_nobody(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    head = "POST /api/predict HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    large = socket.create_connection((host, int(port)))
    try:
        for one in slow:
            one.sendall(head.format(f"{host}:{port}", 1000).encode() + b'{"input"')
        large.sendall(head.format(f"{host}:{port}", FIFTY).encode())
        large.sendall(b"a" * 1_000_000)
        with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            answers = [client.post("/api/predict", json={"input": word}) for word in ("face", "deaf", "bad")]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        for _ in range(49):
            large.sendall(b"a" * 1_000_000)
        large.settimeout(60)
        assert large.recv(4096).startswith(b"HTTP/1.1 413")
    finally:
        for one in (*slow, large):
            one.close()


def test_what_is_asked_in_a_browser(address: str) -> None:
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert client.get("/static/docs.js").headers["content-type"].startswith("text/javascript")
        assert client.get("/docs").status_code == 200
        assert "server" not in page.headers


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["{speller}", "{speller}"], "two models are called 'speller'"),
        (["{speller}", "--host", "0.0.0.0"], "others can reach it, so a token is needed"),
        (["{speller}", "--host", "0.0.0.0", "--token", "short"], "--token: at least 12"),
        (["{speller}", "--port", "70000"], "--port must be from 0 to 65535, got 70000"),
        (["{speller}", "--host", "no.such.host.invalid", "--token", "a-long-enough-token"], "cannot serve on no.such"),
        (["{speller}", "--max-upload", "0"], "--max-upload must be above 0, got 0"),
        (["{speller}", "--max-symbols", "0"], "--max-symbols must be above 0, got 0"),
        (["{speller}", "--max-work", "-3"], "--max-work must be above 0, got -3"),
        (["{speller}", "--max-connections", "0"], "--max-connections must be above 0, got 0"),
        (["{speller}", "--max-connections-each", "-1"], "--max-connections-each must be above 0, got -1"),
        (["{speller}", "--header-timeout", "0"], "--header-timeout must be above 0, got 0"),
        (["{speller}", "--send-timeout", "inf"], "--send-timeout"),
        (["{speller}", "--decoders", "0"], "--decoders must be above 0, got 0"),
        (["{speller}", "--decode-memory", "0"], "--decode-memory must be above 0, got 0"),
        (["{speller}", "--decode-timeout", "-1"], "--decode-timeout must be above 0, got -1"),
        (["{speller}", "--decode-queue", "0"], "--decode-queue must be above 0, got 0"),
        (["{speller}", "--workers", "0"], "--workers 0: each holds all models; allowed: 1 to"),
        (["{speller}", "--rate", "-1"], "--rate must be 0 or above, got -1"),
        (["{speller}", "--watch", "inf"], "--watch"),
        (["{speller}", "--drain-seconds", "-2"], "--drain-seconds must be 0 or above, got -2"),
        (["{speller}", "--proxy", "nginx"], "--proxy nginx: expected an address or a network"),
        (["{speller}", "--log", "xml"], "--log"),
        pytest.param(["nowhere", "--workers", "2"], "nowhere: no such folder", marks=pytest.mark.slow),
        (["{speller}", "--max-decoded", "0"], "--max-decoded must be above 0, got 0"),
        ([], "required: MODEL"),
    ],
)
def test_mistakes_on_the_command_line(
    speller: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEQ2SEE_TOKEN", raising=False)
    with pytest.raises(SystemExit, match="2"):
        main(["serve", *(one.format(speller=speller) for one in arguments)])
    assert said in capsys.readouterr().err


def decode(server: subprocess.Popen[str], address: str, content: bytes) -> list[int]:
    """Have a picture captioned; the processes that decode."""
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        sent = {"image": ("a.png", content)}
        assert client.post("/api/predict", data={"model": "captions"}, files=sent).status_code == 200
        assert client.get("/health").json()["decoding"] == {"waiting": 0, "running": 0, "processes": 1}
    return decoders_of(server.pid)


def ended(children: list[int]) -> bool:
    until = monotonic() + 60
    while any(Path(f"/proc/{child}/cmdline").exists() for child in children) and monotonic() < until:
        sleep(0.02)
    return not any(Path(f"/proc/{child}/cmdline").exists() for child in children)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them")
@pytest.mark.parametrize(
    "end", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL], ids=["told", "killed"]
)
def test_files_are_decoded_by_processes_that_end_with_the_server(
    captions: Path, home: Path, end: signal.Signals
) -> None:
    with serving("captions", "-m", "seq2see", "serve", captions, "--decoders", 1, "--drain-seconds", 1) as (
        server,
        address,
    ):
        children = decode(server, address, (home / "0.png").read_bytes())
        assert len(children) == 1
        server.send_signal(end)
        server.wait(60)
    assert ended(children)


def decoders_of(pid: int) -> list[int]:
    """Its processes that decode files."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for one in threads for child in (one / "children").read_text("ascii").split()]
    return [one for one in children if b"decoder_process" in Path(f"/proc/{one}/cmdline").read_bytes()]


def test_a_port_that_is_taken_is_said(speller: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit, match="2"):
            main(["serve", str(speller), "--port", str(taken.getsockname()[1])])
    assert "Address already in use; --port 0 finds a free one" in capsys.readouterr().err


SLOW = """
import sys, time
from seq2see.studio import app, dynamic_batching, server
real = dynamic_batching.predict
def slow(bundles, rows, *given, **options):
    if "source" in rows[0]:
        print("begun", file=sys.stderr, flush=True)
        time.sleep(600)
    return real(bundles, rows, *given, **options)
dynamic_batching.predict, server.SHUTDOWN_GRACE, app.SHUTDOWN_GRACE = slow, 1, 0.1
from seq2see.cli import main
main(["serve", *sys.argv[1:]])
"""


def test_a_server_that_is_told_to_end_during_a_batch_ends_without_a_word(
    speller: Path, captions: Path, home: Path
) -> None:
    with (
        serving("speller, captions", "-c", SLOW, speller, captions, "--decoders", 1, "--drain-seconds", 1) as (
            server,
            address,
        ),
        ThreadPoolExecutor(1) as pool,
    ):
        assert server.stderr is not None
        children = decode(server, address, (home / "0.png").read_bytes()) if sys.platform == "linux" else []
        body = {"model": "speller", "input": "face"}
        answer = pool.submit(httpx.post, f"{address}/api/predict", json=body, timeout=300, trust_env=False)
        assert server.stderr.readline() == "begun\n"
        server.send_signal(signal.SIGTERM)
        assert answer.result(300).json() == {"error": "the server is closing"}
        assert answer.result().status_code == 503
        assert server.wait(300) == 0  # it does not wait for the batch, which takes 10 minutes
        assert server.stderr.read() == ""
    assert len(children) == (sys.platform == "linux")
    assert ended(children), "its decoders end with it"


HELD = """
import sys, time
from pathlib import Path
from seq2see.studio import dynamic_batching
real = dynamic_batching.predict
def held(bundles, rows, *given, **options):
    print("begun", file=sys.stderr, flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.02)
    return real(bundles, rows, *given, **options)
dynamic_batching.predict = held
from seq2see.cli import main
main(["serve", *sys.argv[2:]])
"""


def test_a_server_that_drains_says_so_and_answers_what_is_under_way(speller: Path, tmp_path: Path) -> None:
    with (
        serving("speller", "-c", HELD, tmp_path / "go", speller, "--drain-seconds", 300, "--log", "json") as (
            server,
            address,
        ),
        ThreadPoolExecutor(1) as pool,
    ):
        assert server.stderr is not None
        asked = pool.submit(httpx.post, f"{address}/api/predict", json={"input": "face"}, timeout=300, trust_env=False)
        assert server.stderr.readline() == "begun\n"
        assert httpx.get(f"{address}/health", trust_env=False).json()["status"] == "ok"
        server.send_signal(signal.SIGTERM)
        until = monotonic() + 60
        while (health := httpx.get(f"{address}/health", trust_env=False)).status_code == 200:
            assert monotonic() < until
        assert (health.status_code, health.json()["status"]) == (503, "draining")
        refused = httpx.post(f"{address}/api/predict", json={"input": "deaf"}, trust_env=False)
        assert (refused.status_code, refused.json()) == (503, {"error": "the server is closing"})
        assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
        assert not asked.done()
        (tmp_path / "go").touch()
        assert asked.result(300).json()["predictions"][0]["text"]
        assert server.wait(300) == 0
        assert server.stderr.read() == ""
