"""A server whose processes are killed, whose models are replaced and whose clients hang up, while others ask."""

from __future__ import annotations

import base64
import os
import random
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import pytest
import yaml
from PIL import Image

from tests.faults.conftest import Count, Runs
from tests.studio.conftest import SMALL
from tests.studio.test_process import serving

TOKEN = "a-long-enough-token"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
ALLOWED_GROWTH = 1.15
"""Of the server's memory over the second half of the faults: a share, as heaps never stay the same to the byte."""

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes as Linux shows them"),
]


@pytest.fixture
def captions(runs: Runs, tmp_path: Path) -> Path:
    """A model that reads pictures, which are decoded by processes of their own."""
    rows = []
    for number in range(24):
        colour = ("red", "green", "blue")[number % 3]
        Image.new("RGB", (16, 16), colour).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png\ta {colour} square\n")
    (tmp_path / "captions.tsv").write_text("image\tcaption\n" + "".join(rows), "utf-8")
    recipe: dict[str, Any] = {
        **SMALL,
        "task": "captions",
        "inputs": {"image": {"kind": "image", "height": 16, "width": 16}},
        "encoder": {"kind": "convolutional", "channels": [4, 8], "size": 8},
        "output": {"column": "caption", "min_count": 1},
    }
    (tmp_path / "captions.yaml").write_text(yaml.safe_dump(recipe), "utf-8")
    out = tmp_path / "captions"
    table = tmp_path / "captions.tsv"
    ended = runs.children.run("train", tmp_path / "captions.yaml", "--data", table, "--out", out)
    assert ended.code == 0, ended.err
    return out


@contextmanager
def served(names: str, *command: object) -> Iterator[tuple[int, str]]:
    """(process, address) of a server, which is told to end and does."""
    with serving(names, "-m", "seq2see", "serve", *command, "--token", TOKEN, "--watch", 0) as (server, address):
        try:
            yield server.pid, address
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0


class Crowd:
    """Clients that ask all the time, and the answers they got. bodies: of requests to /api/predict."""

    def __init__(self, address: str, bodies: list[dict[str, Any]], clients: int = 4):
        self.address, self.bodies = address, bodies
        self.answers: Counter[str] = Counter()
        self.errors: list[str] = []
        self._lock, self._over = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]

    def _ask(self, number: int) -> None:
        with httpx.Client(base_url=self.address, headers=HEADERS, trust_env=False, timeout=120) as client:
            while not self._over.is_set():
                number += 1
                try:
                    got = client.post("/api/predict", json=self.bodies[number % len(self.bodies)])
                    answer = str(got.status_code)
                    if got.status_code >= 500:
                        self.errors.append(got.text)
                except httpx.TransportError:
                    answer = "connection lost"
                with self._lock:
                    self.answers[answer] += 1

    def until_answered(self, more: int) -> None:
        """Wait until so many more were answered."""
        want, end = sum(self.answers.values()) + more, monotonic() + 300
        while sum(self.answers.values()) < want:
            assert monotonic() < end, self.answers
            sleep(0.02)

    @contextmanager
    def asking(self) -> Iterator[Crowd]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._over.set()
            for thread in self._threads:
                thread.join()


def processes(parent: int, what: bytes) -> list[int]:
    """Processes below a process whose command line has this part."""
    found, level = [], [parent]
    while level:
        tasks = [task for pid in level for task in Path(f"/proc/{pid}/task").glob("*/children")]
        level = []
        for task in tasks:
            with suppress(OSError):  # it has ended meanwhile
                level += map(int, task.read_text("ascii").split())
        for pid in level:
            with suppress(OSError):
                found += [pid] * (what in Path(f"/proc/{pid}/cmdline").read_bytes())
    return found


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")


def bodies(picture: Path) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
    return [{"model": "text", "input": "abc"}, {"model": "captions", "input": url}]


def hang_up(address: str, body: dict[str, Any], draw: random.Random) -> None:
    """Send a request, or its beginning, and close the connection at once."""
    host, port = address.removeprefix("http://").split(":")
    request = httpx.Request("POST", f"{address}/api/predict", json=body, headers=HEADERS)
    head = "".join(f"{key}: {value}\r\n" for key, value in request.headers.items())
    content = f"POST /api/predict HTTP/1.1\r\n{head}\r\n".encode() + request.content
    with socket.create_connection((host, int(port))) as client:
        client.sendall(content[: draw.choice([len(content), draw.randrange(len(content))])])


def until(condition: Callable[[], bool]) -> None:
    end = monotonic() + 300
    while not condition():
        assert monotonic() < end
        sleep(0.1)


def test_killed_decoders_replaced_models_and_clients_that_hang_up(
    runs: Runs, captions: Path, tmp_path: Path, count: Count, seed: int, kills: int
) -> None:
    """All others are answered: with 200; or 409 where the process was killed that decoded the client's picture; or 503
    where it was killed twice while it started."""
    draw, asked, tries = random.Random(seed), bodies(tmp_path / "0.png"), max(kills // 5, 2)
    with served("text, captions", f"text={runs.whole}", f"captions={captions}") as (server, address):
        with httpx.Client(base_url=address, headers=HEADERS, trust_env=False, timeout=120) as client:
            with Crowd(address, asked).asking() as crowd:
                memory = []
                for _ in range(tries):
                    crowd.until_answered(20)
                    until(lambda: bool(processes(server, b"decoder_process")))
                    os.kill(processes(server, b"decoder_process")[0], signal.SIGKILL)
                    count("server: decoder process killed", "replaced")
                    for name in ("text", "captions"):
                        answer = client.post(f"/api/models/{name}/reload")
                        assert answer.status_code == 200, answer.text
                        count("server: model loaded again", "no request dropped")
                    for _ in range(20):
                        hang_up(address, draw.choice(asked), draw)
                        count("server: client hangs up", "no trace")
                    memory.append(resident(server))
                crowd.until_answered(20)
            health = client.get("/health")
        assert health.status_code == 200, health.text
        assert set(crowd.answers) <= {"200", "409", "503"}, (crowd.answers, crowd.errors)
        assert all("no decoder process can be started: it was killed" in error for error in crowd.errors)
        assert crowd.answers["409"] + crowd.answers["503"] <= tries
        half, end = memory[len(memory) // 2], memory[-1]
        assert end <= ALLOWED_GROWTH * half, memory
        told = ", ".join(f"{times} x {code}" for code, times in sorted(crowd.answers.items()))
        count(f"server: other clients' requests: {told}", "as promised")
        count(f"server: memory {half / 1e6:.0f} MB half way, {end / 1e6:.0f} MB at the end", "flat")


def test_a_killed_worker_is_replaced_while_the_other_answers(runs: Runs, count: Count, kills: int) -> None:
    """Connections to the killed one are lost; there is no error of the server."""
    with served("whole", runs.whole, "--workers", 2) as (server, address):
        with Crowd(address, [{"input": "abc"}]).asking() as crowd:
            for _ in range(max(kills // 25, 1)):
                crowd.until_answered(20)
                before = processes(server, b"spawn_main")
                assert len(before) == 2
                os.kill(before[0], signal.SIGKILL)
                until(lambda: len(set(processes(server, b"spawn_main")) - {before[0]}) == 2)  # noqa: B023
                count("server: worker killed", "replaced; the other answers")
            crowd.until_answered(20)
        assert set(crowd.answers) <= {"200", "connection lost"}, crowd.answers
        told = ", ".join(f"{times} x {code}" for code, times in sorted(crowd.answers.items()))
        count(f"server: requests beside killed workers: {told}", "no 5xx")
