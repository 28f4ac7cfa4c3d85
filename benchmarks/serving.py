"""64 clients at once against one model over HTTP, beside `model.predict` on the same inputs one after the other; then 8
clients, and how long the slowest of a hundred requests takes.

Both in one run on the same machine: a server in a process of its own, as users start it, and clients that each wait for
their answer before they ask again. The model has the size of the shipped grapheme-to-phoneme recipe; its weights are
random, which costs what trained ones cost. `--workers 1 2` measures servers of one and of two processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import seq2see

CLIENTS, INPUTS, GOAL = 64, 512, 3.0
FEW, ROUNDS, QUEUED = 8, 3, 960
"""Clients of the small load; how often it is measured: the best round counts; inputs that the large client queues."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def trained(folder: Path) -> Path:
    """A model of one update."""
    draw = random.Random(1)
    words = ["".join(draw.choice(LETTERS) for _ in range(draw.randint(4, 11))) for _ in range(400)]
    table = folder / "words.tsv"
    table.write_text("word\tphonemes\n" + "".join(f"{word}\t{' '.join(word.upper())}\n" for word in words), "utf-8")
    settings = ["search.max_length=12", "search.min_length=8", "training.threads=1"]
    seq2see.train(
        "grapheme-to-phoneme",
        table,
        out=folder / "model",
        updates=1,
        overrides=settings,
        listeners=[],
        columns=["word", "phonemes"],
    )
    return folder / "model"


class Client:
    """A connection that is kept open, and no more HTTP than that takes: what is measured is the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, name: str = "10.0.0.1"):
        self._reader, self._writer, self._host, self._name = reader, writer, host, name

    async def post(self, path: str, record: dict[str, Any]) -> Any:
        body = json.dumps(record).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        head += f"X-Forwarded-For: {self._name}\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if not told.startswith("http/1.1 200"):
            raise RuntimeError(told)
        length = next(line.partition(":")[2] for line in told.splitlines() if line.startswith("content-length"))
        return json.loads(await self._reader.readexactly(int(length)))


async def ask(address: str, words: list[str], clients: int = CLIENTS) -> tuple[list[str], list[float]]:
    """(what the server says of every word, the seconds of each); each client takes the next word that nobody has."""
    found: dict[int, str] = {}
    seconds: list[float] = []
    waiting = iter(enumerate(words))
    host, port = address.removeprefix("http://").rstrip("/").split(":")

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        connection = Client(reader, writer, f"{host}:{port}")
        for number, word in waiting:
            start = perf_counter()
            answer = await connection.post("/api/predict", {"input": word})
            seconds.append(perf_counter() - start)
            found[number] = answer["predictions"][0]["text"]
        writer.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return [found[number] for number in range(len(words))], seconds


async def beside(address: str, words: list[str], model: str | None) -> list[float]:
    """The seconds of one client's single inputs of the model `other`, while another client always has `QUEUED` inputs
    of `model` in the queue (None: it does not)."""
    host, port = address.removeprefix("http://").rstrip("/").split(":")

    async def connect(name: str) -> Client:
        return Client(*await asyncio.open_connection(host, int(port)), f"{host}:{port}", name)

    async def flood() -> None:
        connection = await connect("10.0.0.2")
        while True:
            await connection.post("/api/predict", {"model": model, "inputs": words[:64], "looks": False})

    floods = [asyncio.create_task(flood()) for _ in range(QUEUED // 64 if model else 0)]
    await asyncio.sleep(3 if model else 0)
    connection, seconds = await connect("10.0.0.3"), []
    for word in words[:40]:
        start = perf_counter()
        await connection.post("/api/predict", {"model": "other", "input": word, "beam": 2})
        seconds.append(perf_counter() - start)
    for task in floods:
        task.cancel()
    await asyncio.gather(*floods, return_exceptions=True)
    return sorted(seconds)


def fairness(path: Path, words: list[str]) -> None:
    with serving(f"model={path}", f"other={path}", "--proxy", "127.0.0.1") as address:
        asyncio.run(beside(address, words, None))
        for model, what in ((None, "alone"), ("other", "in the same queue"), ("model", "in another model's queue")):
            seconds = asyncio.run(beside(address, words, model))
            p50, p99 = (1000 * seconds[len(seconds) * part // 100] for part in (50, 99))
            print(f"one input, {QUEUED if model else 0} of another client {what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-m", "seq2see", "serve", *arguments, "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stderr is not None
        yield next(word for word in server.stderr.readline().split() if word.startswith("http"))
    finally:
        server.terminate()
        server.wait()


def latency(address: str, words: list[str], clients: int) -> str:
    """Median and 99th percentile of the best round, in milliseconds, and inputs in a second."""
    rounds = []
    for _ in range(ROUNDS):
        start = perf_counter()
        seconds = sorted(asyncio.run(ask(address, words, clients))[1])
        rounds.append((seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], perf_counter() - start))
    median, slowest, whole = min(rounds)
    return f"p50 {1000 * median:6.1f} ms   p99 {1000 * slowest:6.1f} ms   {len(words) / whole:7.1f} inputs/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fair", action="store_true", help="measure one input beside many of another client instead")
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of processes to measure (default: no option)")
    args = parser.parse_args()
    workers: list[int | None] = args.workers or [None]
    draw = random.Random(2)
    words = ["".join(draw.choice(LETTERS) for _ in range(draw.randint(4, 11))) for _ in range(INPUTS)]
    with tempfile.TemporaryDirectory() as folder:
        path = trained(Path(folder))
        if args.fair:
            fairness(path, words)
            return
        model = seq2see.load(path)
        model.predict(words[0])
        start = perf_counter()
        alone = [model.predict(word).text for word in words]
        one = INPUTS / (perf_counter() - start)
        print(f"one after the other, model.predict: {one:7.1f} inputs/s")
        for number in workers:
            with serving(str(path), *([] if number is None else ["--workers", str(number)])) as address:
                asyncio.run(ask(address, words[:CLIENTS]))
                start = perf_counter()
                together, _ = asyncio.run(ask(address, words))
                many = INPUTS / (perf_counter() - start)
                same = sum(a == b for a, b in zip(alone, together, strict=True))
                print(f"workers: {number or 1}; the same outputs: {same} of {INPUTS}")
                print(f"{CLIENTS:3} clients over HTTP: {many:7.1f} inputs/s: {many / one:.2f} x (goal: {GOAL:g})")
                for clients in (CLIENTS, FEW, 1):
                    print(f"{clients:3} clients: {latency(address, words[: INPUTS // 2], clients)}", flush=True)


if __name__ == "__main__":
    main()
