"""Several worker processes as users start them: one port, one set of limits, and no end with a single one's."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

from seq2see.errors import UserError
from seq2see.studio import workers
from seq2see.studio.clients import FREE_BURST
from seq2see.studio.limits import Limits
from seq2see.studio.workers import WORKERS_PER_CORE, Supervisor, WorkerPlace, _Worker, check_workers
from seq2see.threads import cores
from tests.studio.test_process import serving

TOKEN = "a-long-enough-token"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def test_what_is_shared_is_divided_and_the_rest_is_not() -> None:
    each = Limits().divided(4)
    assert (each.queue_size, each.connections, each.decoded_bytes) == (256, 128, 125_000_000)
    assert (each.body_bytes, each.timeout, each.request_work) == (25_000_000, 60.0, 200_000)
    assert each.decoders == 1, "no worker goes without"


@pytest.mark.parametrize("count", [0, -1, 1000])
def test_no_more_workers_than_the_machine_has_cores_for(count: int) -> None:
    check_workers(WORKERS_PER_CORE * cores())
    with pytest.raises(UserError, match=rf"--workers {count}: .*allowed: 1 to {WORKERS_PER_CORE * cores()}"):
        check_workers(count)


def workers_of(server: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("ascii").split()
    return [int(one) for one in children if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def until(condition: Callable[[], bool]) -> None:
    end = monotonic() + 120
    while not condition():
        assert monotonic() < end
        sleep(0.05)


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them")


@LINUX
def test_two_workers_share_a_port_and_a_rate(speller: Path) -> None:
    options = ("--workers", 2, "--token", TOKEN, "--rate", 1, "--watch", 0)
    with serving("speller", "-m", "seq2see", "serve", speller, *options) as (server, address):
        assert server.stderr is not None
        before = workers_of(server)
        assert len(before) == 2
        each_anew = httpx.Limits(max_keepalive_connections=0)  # so that both accept some
        with httpx.Client(headers=HEADERS, trust_env=False, limits=each_anew) as client:
            codes = [client.get(f"{address}/api/models").status_code for _ in range(FREE_BURST + 40)]
        assert codes.count(200) < FREE_BURST + 30, "the limit is not there once for each"
        assert codes.count(200) >= FREE_BURST
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0
        assert "Traceback" not in server.stderr.read()
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in before))


@pytest.mark.slow
@LINUX
def test_a_worker_that_dies_is_replaced_and_what_it_counted_stays(speller: Path) -> None:
    with serving("speller", "-m", "seq2see", "serve", speller, "--workers", 2, "--watch", 0) as (server, address):
        assert server.stderr is not None
        before = workers_of(server)
        with httpx.Client(trust_env=False, timeout=120, limits=httpx.Limits(max_keepalive_connections=0)) as client:
            assert {client.get(f"{address}/api/models").status_code for _ in range(20)} == {200}
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(workers_of(server)) == 2 and before[0] not in workers_of(server))
        assert httpx.get(f"{address}/health", trust_env=False, timeout=120).status_code == 200
        until(lambda: "serves again" in server.stderr.readline())
        text = httpx.get(f"{address}/metrics", trust_env=False, timeout=120).text
        assert 'seq2see_requests_total{path="/api/models",status="200"} 20.0' in text
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0
        assert "Traceback" not in server.stderr.read()


def serve_nothing(place: WorkerPlace, listening: socket.socket, ready: Callable[[str], None]) -> None:
    """A worker that is killed with its supervisor, or ends when told."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    (place.folder / str(place.index)).write_text(str(os.getpid()), "ascii")
    ready("ready")
    while True:
        signal.pause()


SUPERVISOR = """
import sys
from pathlib import Path
from seq2see.studio.server import listen
from seq2see.studio.workers import Supervisor
from tests.studio.test_workers import serve_nothing
if __name__ == "__main__":
    listening = listen("127.0.0.1", 0)
    supervisor = Supervisor(serve_nothing, listening, count=2, folder=Path(sys.argv[1]), drain=1)
    supervisor.run(lambda said: print(said, flush=True))
"""


@pytest.mark.slow
@LINUX
def test_workers_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "supervisor.py"
    script.write_text(SUPERVISOR, "utf-8")
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        workers = [int((tmp_path / str(index)).read_text("ascii")) for index in range(2)]
        process.kill()
    until(lambda: not any(Path(f"/proc/{one}").exists() for one in workers))


def fail_to_start(place: WorkerPlace, listening: socket.socket, ready: Callable[[str], None]) -> None:
    os._exit(7)


def test_a_worker_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as listening:
        supervisor = Supervisor(fail_to_start, listening, count=1, folder=tmp_path, drain=0)
        with pytest.raises(UserError, match="worker 0 ended before it could serve \\(exit code 7\\)"):
            supervisor.run(lambda _: None)


class Ended:
    """A process that has ended."""

    pid, exitcode = 123, 7

    def __init__(self, sentinel: Connection):
        self.sentinel = sentinel

    def join(self, timeout: float | None = None) -> None: ...


@pytest.mark.parametrize("seen_first", ["report", "exit"])
def test_a_replacement_may_die_while_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen_first: str
) -> None:
    """Its pipe and its process end at the same time, and either may be seen first."""
    exits, started = list[int](), list[int]()
    reports, sender = multiprocessing.Pipe(duplex=False)
    sentinel, end = multiprocessing.Pipe(duplex=False)
    sender.close()
    with socket.socket() as listening, closing(sentinel), closing(end):
        supervisor = Supervisor(serve_nothing, listening, count=1, folder=tmp_path, drain=0, on_exit=exits.append)
        monkeypatch.setattr(supervisor, "_start", started.append)
        supervisor._workers[0] = _Worker(Ended(sentinel), reports, monotonic())
        order = [reports, sentinel] if seen_first == "report" else [sentinel, reports]
        monkeypatch.setattr(workers, "wait", lambda sources, timeout: [one for one in order if one in sources])
        supervisor._step(listening)
        supervisor._step(listening)
    assert exits == [123]
    assert started == [0], "another takes its place"
