"""`make soak`: a real server with models of text, pictures, sounds and videos, and many clients for a long time.

One request in ten is malformed. Every ten seconds a line: memory of the server and of its decoder processes (PSS: what
they share counted once), latency of the well-formed requests, and statuses. It passes (exit 0) if

- memory is flat after warm-up: the median of the last quarter is at most 10 % and 20 MB above that of the second;
- no answer is a 5xx, but 503 with Retry-After, and every well-formed request gets 200 or that;
- every malformed request is answered with a 4xx, or with 200 where what is left of it has a meaning;
- the log has no traceback, and /health says ok at the end.

    .venv/bin/python -m tests.soak [--minutes 20] [--clients 50] [--pause 0.05] [--seed 1]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic, sleep

from benchmarks.attack import Server, descendants, film, memory, models, mutated, picture, sound

EVERY = 10.0
"""Seconds between two lines."""
SHARE, MARGIN = 1.10, 20e6
"""How much memory may grow between the second and the last quarter: this factor, and these bytes."""
MALFORMED = 0.1
FORM = {"Content-Type": "multipart/form-data; boundary=----edge"}
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Request:
    """kind: of the model, for the table; sound: whether it is well-formed."""

    kind: str
    sound: bool
    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Tally:
    """What the clients saw since the last line."""

    waits: list[tuple[str, float]] = field(default_factory=list)
    """(kind of model, seconds) of each well-formed request."""
    statuses: Counter[tuple[bool, str]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


@dataclass
class Sample:
    """One line: seconds since the start, bytes of the server and of its decoders."""

    seconds: float
    server: int
    decoders: int

    @property
    def memory(self) -> int:
        return self.server + self.decoders


def is_flat(amounts: Sequence[float]) -> bool:
    """Whether memory no longer grows: the first quarter is warm-up, the last is compared with the second."""
    second, last = quarters(amounts)
    return last <= second * SHARE + MARGIN


def quarters(amounts: Sequence[float]) -> tuple[float, float]:
    """The medians of the second and of the last quarter."""
    size = max(len(amounts) // 4, 1)
    return median(amounts[size : 2 * size] or amounts), median(amounts[-size:])


def percentile(waits: Sequence[float], share: float) -> float:
    return sorted(waits)[min(int(len(waits) * share), len(waits) - 1)] if waits else float("nan")


def latency(tally: Tally, kind: str = "") -> tuple[float, float]:
    """(p50, p99) in milliseconds, of one kind or of all."""
    waits = [wait for of, wait in tally.waits if kind in ("", of)]
    return 1000 * percentile(waits, 0.5), 1000 * percentile(waits, 0.99)


# ---------------------------------------------------------------- requests


def form(model: str, name: str, content: bytes, filename: str) -> bytes:
    head = f'------edge\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
    head += f'------edge\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n\r\n'
    return head.encode() + content + b"\r\n------edge--\r\n"


class Requests:
    """Makes requests: text most often, since it is cheapest."""

    def __init__(self) -> None:
        self.media = {
            "image": ("image", [picture(60 + 20 * n, 60, kind) for n, kind in enumerate(("PNG", "JPEG", "WEBP"))]),
            "sound": ("audio", [sound(0.2 + 0.2 * n, pitch=300 + 90 * n) for n in range(3)]),
            "video": ("video", [film(6 + n, 64) for n in range(3)]),
        }

    def draw(self, draw: random.Random) -> Request:
        kind = draw.choices(["text", "image", "sound", "video"], [7, 1, 1, 1])[0]
        malformed = draw.random() < MALFORMED
        if kind == "text":
            return self._text(draw, malformed)
        name, files = self.media[kind]
        content = draw.choice(files)
        body = form(kind, name, mutated(content, draw) if malformed else content, "a.bin")
        if malformed and draw.random() < 0.3:
            body = mutated(body, draw)
        return Request(kind, not malformed, "POST", "/api/predict", body, FORM)

    def _text(self, draw: random.Random, malformed: bool) -> Request:
        word = "".join(draw.choice("abcdefgh") for _ in range(draw.randint(3, 10)))
        weights = [1.0] + [0.0] * (len(word) - 1)
        route, body = draw.choice(
            [
                ("predict", {"input": word, "beam": draw.choice([1, 4])}),
                ("predict", {"inputs": [word, word[::-1], word * 2]}),
                ("predict", {"input": word, "sample": True, "seed": draw.randrange(1000)}),
                ("explain", {"input": word, "step": 0}),
                ("oracle", {"input": word, "oracle": {"0": weights}}),
                ("score", {"input": word, "output": "A B"}),
            ]
        )
        content = json.dumps({"model": "text", **body}).encode()
        if not malformed:
            return Request("text", True, "POST", f"/api/{route}", content, JSON)
        ways: list[Callable[[], Request]] = [
            lambda: Request("text", False, "POST", f"/api/{route}", mutated(content, draw), JSON),
            lambda: Request("text", False, "POST", f"/api/{route}", content, {"Content-Type": "text/plain"}),
            lambda: Request("text", False, draw.choice(["GET", "PUT"]), f"/api/{route}", b"", {}),
            lambda: Request("text", False, "GET", f"/api/{word}/%ff", b"", {}),
            lambda: Request("text", False, "POST", "/api/predict", b'{"input": "' + b"a" * 60_000 + b'"}', JSON),
            lambda: Request("text", False, "POST", "/api/predict", b"[" * 5000, JSON),
            lambda: Request("text", False, "GET", "/api/models", b"", {"Host": "evil.example"}),
        ]
        return draw.choice(ways)()


class Client(threading.Thread):
    """Asks again and again over one connection, which it opens anew where the server has closed it."""

    def __init__(self, server: Server, made: Requests, seed: str, pause: float, until: float):
        super().__init__(daemon=True)
        self.server, self.made, self.pause, self.until = server, made, pause, until
        self.draw, self.tally, self.lock = random.Random(seed), Tally(), threading.Lock()

    def run(self) -> None:
        connection = self.server.connection()
        while monotonic() < self.until:
            connection = self._ask(connection, self.made.draw(self.draw))
            sleep(self.draw.uniform(0, 2 * self.pause))
        connection.close()

    def _ask(self, connection: http.client.HTTPConnection, request: Request) -> http.client.HTTPConnection:
        start = monotonic()
        try:
            connection.request(request.method, request.path, request.body, request.headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            with self.lock:
                # a server may answer a body that is too large, or no HTTP, by closing the connection
                self.tally.statuses[request.sound, type(error).__name__] += 1
                if request.sound:
                    self.tally.problems.append(f"{request.kind}: {error!r}")
            return self.server.connection()
        retry = "Retry-After" in answer.headers
        with self.lock:
            self.tally.statuses[request.sound, str(answer.status)] += 1
            if request.sound:
                self.tally.waits.append((request.kind, monotonic() - start))
            if not allowed(answer.status, sound=request.sound, retry=retry):
                said = content[:200].decode("utf-8", "replace")
                self.tally.problems.append(f"{request.kind} {request.path}: {answer.status} {said}")
        return connection

    def take(self) -> Tally:
        with self.lock:
            tally, self.tally = self.tally, Tally()
        return tally


def allowed(status: int, *, sound: bool, retry: bool) -> bool:
    """Whether a status is one that is promised."""
    if status in (429, 503):
        return retry
    return status == 200 if sound else status < 500


# ---------------------------------------------------------------- the run


def collect(clients: Sequence[Client]) -> Tally:
    whole = Tally()
    for client in clients:
        tally = client.take()
        whole.waits += tally.waits
        whole.statuses += tally.statuses
        whole.problems += tally.problems
    return whole


def look(server: Server, seconds: float) -> Sample:
    pid = server.process.pid
    children = sum(memory(child) for child in descendants(pid))
    return Sample(seconds, memory(pid) - children, children)


def statuses(counts: Counter[tuple[bool, str]], sound: bool) -> str:
    found = sorted((status, number) for (good, status), number in counts.items() if good == sound)
    return " ".join(f"{status}:{number:,}" for status, number in found) or "-"


def run(server: Server, *, minutes: float, clients: int, pause: float, seed: int) -> list[str]:
    """Problems found; prints a line every ten seconds and the figures at the end."""
    start = monotonic()
    until, made = start + minutes * 60, Requests()
    asking = [Client(server, made, f"{seed}:{number}", pause, until) for number in range(clients)]
    for client in asking:
        client.start()
    samples, whole = list[Sample](), Tally()
    print(f"{'s':>6} {'server MB':>9} {'decoders':>9} {'p50 ms':>7} {'p99 ms':>7}  well-formed | malformed", flush=True)
    while monotonic() < until and server.process.poll() is None:
        sleep(min(EVERY, max(until - monotonic(), 0.1)))
        samples.append(look(server, monotonic() - start))
        tally = collect(asking)
        p50, p99 = latency(tally)
        figures = f"{samples[-1].seconds:>6.0f} {samples[-1].server / 1e6:>9.0f} {samples[-1].decoders / 1e6:>9.0f}"
        answers = f"{statuses(tally.statuses, True)} | {statuses(tally.statuses, False)}"
        print(f"{figures} {p50:>7.0f} {p99:>7.0f}  {answers}", flush=True)
        whole = Tally(whole.waits + tally.waits, whole.statuses + tally.statuses, whole.problems + tally.problems)
    for client in asking:
        client.join(90)
    return [*whole.problems[:20], *judge(server, samples, whole, seconds=monotonic() - start)]


def judge(server: Server, samples: Sequence[Sample], whole: Tally, *, seconds: float) -> list[str]:
    amounts = [sample.memory for sample in samples]
    second, last = quarters(amounts)
    count = sum(whole.statuses.values())
    print(f"\n{count:,} requests in {seconds:.0f} s: {count / seconds:.1f}/s")
    print(f"well-formed: {statuses(whole.statuses, True)}\nmalformed: {statuses(whole.statuses, False)}")
    for kind in ("", "text", "image", "sound", "video"):
        p50, p99 = latency(whole, kind)
        print(f"latency of well-formed requests, {kind or 'all'}: p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    print(f"memory: second quarter {second / 1e6:.0f} MB, last {last / 1e6:.0f} MB, most {max(amounts) / 1e6:.0f} MB")
    problems = [] if is_flat(amounts) else [f"memory grows: {second / 1e6:.0f} MB to {last / 1e6:.0f} MB"]
    if server.process.poll() is not None:
        return [*problems, f"the server ended with {server.process.returncode}"]
    with suppress(OSError):
        if server.get("/health")[0] == 200:
            return problems
    return [*problems, "the server is not healthy at the end"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.05, help="mean seconds between an answer and the next request")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="seq2see-soak-") as name:
        folder = Path(name)
        server = Server(models(folder), folder / "log.txt", every=EVERY)
        try:
            problems = run(server, **vars(options))
        finally:
            server.close()
        if "Traceback" in server.log.read_text("utf-8", "replace"):
            problems.append("the log has a traceback")
    print("\n".join([*problems, "FAILED" if problems else "passed"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
