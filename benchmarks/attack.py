"""Attacks a server as a stranger on the network would, beside a client who wants honest answers.

One server, in a process of its own, with a text, a picture, a sound and a video model. First the largest honest
requests, whose memory is the measure; then each attack, while a witness asks the text model and /health again and
again. Printed: what every attack was answered, the witness's longest wait, and the peak of memory as a ratio of the
honest one. It fails (exit 1) on a 500, a traceback or a client's words in the log, a witness without an answer, a
secret that came out, or memory beyond twice the honest peak.

    .venv/bin/python benchmarks/attack.py [--mutants 2000] [--seed 1]
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import wave
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
from PIL import Image

import seq2see

CANARY = "canary-7b1f"
"""Stands in what the attacks send; it must not turn up in the log."""
ALLOWED = {200, 400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 422, 429, 431, 503, 504}
Reply = tuple[int, bytes]


# ---------------------------------------------------------------- files, honest and not


def picture(width: int, height: int, kind: str = "JPEG") -> bytes:
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x % 256, y % 256, (x + y) % 256], axis=-1).astype(np.uint8)
    target = BytesIO()
    Image.fromarray(pixels).save(target, kind)
    return target.getvalue()


def flat_png(width: int, height: int, *, depth: int, colour: int, channels: int) -> bytes:
    """A PNG of one colour: kilobytes that decode to `width * height * channels * depth / 8` bytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    packer = zlib.compressobj(9)
    line = b"\0" * (1 + width * channels * depth // 8)
    rows = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def sound(seconds: float, rate: int = 16_000, pitch: float = 440.0) -> bytes:
    samples = np.sin(np.arange(int(seconds * rate)) / rate * 2 * np.pi * pitch)
    target = BytesIO()
    with wave.open(target, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 20_000).astype("<i2").tobytes())
    return target.getvalue()


def film(frames: int, side: int, *, kind: str = "mp4") -> bytes:
    """Moving bands."""
    import av

    target = BytesIO()
    with av.open(target, "w", format=kind) as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "ultrafast", "crf": "40"})
        stream.width = stream.height = side
        stream.pix_fmt = "yuv420p"
        for number in range(frames):
            bands = ((np.arange(side) + number * 3) % 256).astype(np.uint8)
            pixels = np.ascontiguousarray(np.broadcast_to(bands[:, None, None], (side, side, 3)))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels)))
        container.mux(stream.encode())
    return target.getvalue()


def long_film(frames: int, side: int) -> bytes:
    """One colour, and again and again a frame in which nothing changes: a few kilobytes each, whatever its size."""
    import av

    target = BytesIO()
    with av.open(target, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=1000)
        stream.width = stream.height = side
        stream.pix_fmt = "yuv420p"
        still = av.VideoFrame.from_ndarray(np.full((side, side, 3), 90, np.uint8))
        packets = [bytes(packet) for packet in [*stream.encode(still), *stream.encode(still), *stream.encode()]]
        for number in range(frames):
            packet = av.Packet(packets[min(number, 1)])
            packet.stream, packet.time_base, packet.is_keyframe = stream, stream.codec_context.time_base, not number
            packet.pts = packet.dts = number
            container.mux(packet)
    return target.getvalue()


def playlist(secret: Path, *, end: bool) -> bytes:
    lines = ["#EXTM3U", f"#EXT-X-TARGETDURATION:{10 if end else 3600}", "#EXTINF:2,", f"file://{secret}"]
    return "\n".join([*lines, *(["#EXT-X-ENDLIST"] if end else []), ""]).encode()


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, cut out, repeated or put in."""
    made = bytearray(content)
    for _ in range(draw.randint(1, 8)):
        at, size = draw.randrange(max(len(made), 1)), draw.choice([1, 2, 4, 16, 200])
        way = draw.randrange(5)
        if way == 0:
            made[at : at + size] = draw.randbytes(min(size, max(len(made) - at, 0)))
        elif way == 1:
            del made[at : at + size]
        elif way == 2:
            made[at:at] = made[at : at + size] * draw.randint(1, 20)
        elif way == 3:
            made[at : at + 4] = draw.choice([b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"])
        else:
            del made[draw.randrange(max(len(made), 1)) :]
    return bytes(made)


# ---------------------------------------------------------------- models


def models(folder: Path) -> dict[str, Path]:
    """One of each kind, of a few updates: what an attack costs does not depend on what a model has learned."""
    draw = random.Random(3)
    for name in ("pictures", "sounds", "films"):
        (folder / name).mkdir()
    rows: dict[str, list[str]] = {"text": [], "image": [], "sound": [], "video": []}
    for number in range(24):
        word = "".join(draw.choice("abcdefgh") for _ in range(6))
        rows["text"].append(f"{word}\t{' '.join(word.upper())}")
        (folder / f"pictures/{number}.jpg").write_bytes(picture(40 + number, 40))
        (folder / f"sounds/{number}.wav").write_bytes(sound(0.4, pitch=200 + 40 * number))
        (folder / f"films/{number}.mp4").write_bytes(film(6 + number % 3, 64))
        rows["image"].append(f"pictures/{number}.jpg\ta {word}")
        rows["sound"].append(f"sounds/{number}.wav\t{word}")
        rows["video"].append(f"films/{number}.mp4\t{'up' if number % 2 else 'down'}")
    recipes: dict[str, tuple[str, list[str]]] = {
        "text": ("grapheme-to-phoneme", ["search.max_length=20"]),
        "image": ("image-captioning", ["inputs.image.encoder.backbone=small", "search.max_length=8"]),
        "sound": ("speech-recognition", ["search.max_length=8"]),
        "video": ("video-classification", []),
    }
    made = {}
    for name, (recipe, overrides) in recipes.items():
        table = folder / f"{name}.tsv"
        table.write_text("\n".join(["input\toutput", *rows[name]]) + "\n", "utf-8")
        made[name] = folder / f"model-{name}"
        settings = [*overrides, "training.threads=1"]
        seq2see.train(recipe, table, out=made[name], updates=2, overrides=settings, listeners=[], seed=1)
    return made


# ---------------------------------------------------------------- the server and who asks it


class Server:
    """`seq2see serve` as users start it, its log, and the memory of all its processes."""

    def __init__(self, folders: dict[str, Path], log: Path, *, every: float = 0.02):
        """every: seconds between looks at the memory."""
        self.log, self._every = log, every
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        names = [f"{name}={folder}" for name, folder in folders.items()]
        command = [sys.executable, "-m", "seq2see", "serve", *names, "--port", str(self.port)]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdout=file, stderr=file)
        self.peak = 0
        self._watching = True
        threading.Thread(target=self._watch, daemon=True).start()
        until = monotonic() + 120
        while monotonic() < until:
            with suppress(OSError):
                if self.get("/health")[0] == 200:
                    return
            sleep(0.2)
        raise RuntimeError(f"the server did not start:\n{log.read_text()}")

    def _watch(self) -> None:
        while self._watching:
            now = memory(self.process.pid)
            self.peak = max(self.peak, now)
            sleep(self._every)

    def close(self) -> None:
        self._watching = False
        self.process.terminate()
        self.process.wait(30)

    def connection(self, timeout: float = 90) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path: str, timeout: float = 90) -> Reply:
        return self._ask("GET", path, None, {}, timeout)

    def post(self, path: str, body: Any, *, timeout: float = 90) -> Reply:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._ask("POST", path, content, {"Content-Type": "application/json"}, timeout)

    def upload(self, model: str, field: str, content: bytes, name: str, *, timeout: float = 120) -> Reply:
        edge = "----edge"
        parts = f'--{edge}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
        parts += f'--{edge}\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
        body = parts.encode() + content + f"\r\n--{edge}--\r\n".encode()
        kind = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        return self._ask("POST", "/api/predict", body, kind, timeout)

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float) -> Reply:
        connection = self.connection(timeout)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def memory(pid: int) -> int:
    """Bytes of a process and its descendants, what they share counted once (the proportional set size)."""
    total = 0
    for process in [pid, *descendants(pid)]:
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in task.read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


class Witness:
    """Asks the text model and /health again and again, each time anew, and notes how long it waits."""

    def __init__(self, server: Server):
        self.server, self.longest, self.answers, self.failures = server, 0.0, 0, list[str]()
        self._going = True
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        while self._going:
            start = monotonic()
            try:
                status, content = self.server.post("/api/predict", {"model": "text", "input": "abcdef"}, timeout=60)
                health, _ = self.server.get("/health", timeout=60)
                if status != 200 or health not in (200, 503):
                    self.failures.append(f"{status} {content[:80]!r}, health {health}")
            except OSError as error:
                self.failures.append(repr(error))
            self.longest = max(self.longest, monotonic() - start)
            self.answers += 1
            sleep(0.1)

    def stop(self) -> None:
        self._going = False
        self._thread.join()


# ---------------------------------------------------------------- attacks


def honest(server: Server, folder: Path) -> Counter[int]:
    """The largest that is allowed of each kind, four at a time, as four clients would send them."""
    large, clear = picture(9_000, 7_000), flat_png(8_060, 8_060, depth=8, colour=6, channels=4)
    long, clip = sound(19.5, rate=48_000), film(250, 720)
    uses_query = [lambda: server.upload("image", "image", large, "photo.jpg") for _ in range(4)]
    uses_query += [lambda: server.upload("image", "image", clear, "drawing.png") for _ in range(4)]
    uses_query += [lambda: server.upload("sound", "audio", long, "talk.wav") for _ in range(2)]
    uses_query += [lambda: server.upload("video", "video", clip, "clip.mp4") for _ in range(2)]
    return together(uses_query)


def together(uses_query: list[Callable[[], Reply]], threads: int = 8) -> Counter[int]:
    found: Counter[int] = Counter()

    def one(ask: Callable[[], Reply]) -> int:
        try:
            return ask()[0]
        except OSError:
            return 0

    with ThreadPoolExecutor(threads) as pool:
        found.update(pool.map(one, uses_query))
    return found


def attack_playlists(server: Server, folder: Path) -> Counter[int]:
    secret = folder / "secret.mp4"
    secret.write_bytes(film(10, 64))
    bodies = [playlist(secret, end=end) for end in (True, False) for _ in range(2)]
    names = ("clip.m3u8", "clip.mp4", "clip", "clip.ts")
    return together([lambda n=n, b=b: leaked(server.upload("video", "video", b, n)) for n in names for b in bodies])


def leaked(reply: Reply) -> Reply:
    """The secret is a video like any other: an answer at all means that it was read."""
    return (599, b"") if reply[0] == 200 else reply


def attack_large_films(server: Server, folder: Path) -> Counter[int]:
    body = long_film(2_800, 4096)
    return together([lambda: server.upload("video", "video", body, "clip.mp4") for _ in range(8)])


def attack_pictures(server: Server, folder: Path) -> Counter[int]:
    bombs = [
        flat_png(12_000, 5_400, depth=16, colour=6, channels=4),
        flat_png(8_000, 8_000, depth=8, colour=6, channels=4),
        flat_png(12_000, 5_400, depth=16, colour=0, channels=1),
    ]
    return together([lambda body=body: server.upload("image", "image", body, "a.png") for body in bombs * 3])


def attack_programs(server: Server, folder: Path) -> Counter[int]:
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    kinds = [
        eps,
        b"DDS " + bytes(200),
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.4\n",
        b"8BPS\0\1" + bytes(60),
    ]
    return together([lambda body=body: server.upload("image", "image", body, "a.png") for body in kinds])


MANY_KEYS = json.dumps({f"{CANARY}{number}": 0 for number in range(600_000)}).encode()


def attack_keys(server: Server, folder: Path) -> Counter[int]:
    odd = [{"int": 1}, {"a[b": 1}, {"input": "a", "oracle": {"str": {"int": [1]}}}, {"rows": [{"str": 1}]}]
    odd += [{"input": "\ud800"}, {"input": "a", "seed": 1 << 80}, {"input": "a", "oracle": {"9" * 5000: [1]}}]
    odd += [{"input": CANARY * 20_000}, {"input": {"a": CANARY}}, {"input": [CANARY]}]
    routes = ("predict", "oracle", "explain", "score")
    uses_query = [lambda route=route, body=body: server.post(f"/api/{route}", body) for route in routes for body in odd]
    uses_query += [lambda: server.post("/api/predict", MANY_KEYS)] * 2
    return together([lambda ask=ask: bounded(ask()) for ask in uses_query])


def bounded(reply: Reply) -> Reply:
    """An answer to something wrong is short; a long one counts as a failure."""
    return (500, b"") if reply[0] >= 400 and len(reply[1]) > 20_000 else reply


def attack_slow_headers(server: Server, folder: Path) -> Counter[int]:
    sockets, found = list[socket.socket](), Counter[int]()
    for _ in range(1_000):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=5)
            one.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            sockets.append(one)
    until = monotonic() + 8
    while monotonic() < until:
        for one in sockets:
            with suppress(OSError):
                one.sendall(b"X-A: b\r\n")
        sleep(1)
        try:
            found[server.get("/api/models", timeout=20)[0]] += 1
        except OSError:
            found[0] += 1
    for one in sockets:
        one.close()
    return found


def attack_hanging_up(server: Server, folder: Path) -> Counter[int]:
    """Clients that ask for much and leave; the next one should not wait for them."""
    body = json.dumps({"model": "text", "inputs": ["abcdefgh" * 4] * 64, "beam": 16}).encode()
    head = "POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    for _ in range(40):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=5)
            one.sendall(head.encode() + body)
            sleep(0.02)
            one.close()
    return Counter([server.post("/api/predict", {"model": "text", "input": "abc"})[0]])


def attack_mutants(server: Server, folder: Path, number: int, draw: random.Random) -> Counter[int]:
    seeds = [
        ("image", "image", picture(60, 50, kind), f"a.{kind.lower()}")
        for kind in ("PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP")
    ]
    seeds += [("sound", "audio", sound(0.2), "a.wav"), ("video", "video", film(5, 64), "a.mp4")]
    seeds += [("video", "video", film(5, 64, kind=kind), f"a.{kind}") for kind in ("avi", "matroska", "flv")]
    text = json.dumps(
        {"model": "text", "input": "abc", "beam": 2, "prefix": ["A"], "oracle": {"0": [1, 0, 0]}}
    ).encode()

    def uses_query() -> Iterator[Callable[[], Reply]]:
        for _ in range(number):
            model, field, content, name = draw.choice(seeds)
            body = mutated(content, draw)
            yield lambda model=model, field=field, body=body, name=name: server.upload(model, field, body, name)
            route, said = draw.choice(("predict", "oracle", "explain", "score")), mutated(text, draw)
            yield lambda route=route, said=said: server.post(f"/api/{route}", said)

    return together(list(uses_query()), threads=4)


# ---------------------------------------------------------------- the run


@contextmanager
def witnessed(server: Server, problems: list[str], name: str) -> Iterator[None]:
    witness = Witness(server)
    start = monotonic()
    try:
        yield
    finally:
        witness.stop()
        seconds = monotonic() - start
        print(f"    witness: {witness.answers} answers, longest wait {witness.longest:.2f} s; {seconds:.1f} s in all")
        problems += [f"{name}: the witness got {one}" for one in witness.failures[:3]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mutants", type=int, default=1_000, help="mutated uploads, and as many bodies (default: 1,000)"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = Server(models(folder), folder / "log.txt")
        try:
            run(server, folder, options, problems)
        finally:
            server.close()
        log = server.log.read_text("utf-8", "replace")
    problems += [f"the log holds {word!r}" for word in ("Traceback", CANARY) if word in log]
    print("\n".join(["", *problems, f"{len(problems)} problems" if problems else "no problem found"]))
    return 1 if problems else 0


def run(server: Server, folder: Path, options: argparse.Namespace, problems: list[str]) -> None:
    idle = memory(server.process.pid)
    print(f"honest requests: {dict(honest(server, folder))}")
    peak = server.peak
    print(f"    memory: {idle / 1e6:,.0f} MB idle, {peak / 1e6:,.0f} MB at most")
    attacks: list[Callable[[Server, Path], Counter[int]]] = [
        *(attack_playlists, attack_large_films, attack_pictures, attack_programs, attack_keys, attack_slow_headers),
        attack_hanging_up,
        lambda server, folder: attack_mutants(server, folder, options.mutants, random.Random(options.seed)),
    ]
    for attack in attacks:
        title = attack.__name__.removeprefix("attack_").replace("_", " ").replace("<lambda>", "mutants")
        server.peak = 0
        with witnessed(server, problems, title):
            found = attack(server, folder)
        ratio = server.peak / peak
        print(f"{title}: {dict(found)}, memory {ratio:.2f} of the honest peak")
        problems += [
            f"{title}: status {status}, {count} times" for status, count in found.items() if status not in ALLOWED
        ]
        if ratio > 2:
            problems.append(f"{title}: memory {ratio:.2f} times that of the largest honest requests")
    sleep(2)
    status, health = server.get("/health")
    print(f"afterwards: health {status} {health.decode()[:300]}; {memory(server.process.pid) / 1e6:,.0f} MB")
    if status != 200:
        problems.append(f"health afterwards: {status}")


if __name__ == "__main__":
    sys.exit(main())
