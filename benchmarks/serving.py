"""64 clients at once against one model over HTTP, beside `model.predict` on the same inputs one after the other.

Both in one run on the same machine: a server in a process of its own, as users start it, and clients that each wait for
their answer before they ask again. The model has the size of the shipped grapheme-to-phoneme recipe; its weights are
random, which costs what trained ones cost.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import seq2see

CLIENTS, INPUTS, GOAL = 64, 512, 3.0
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

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str):
        self._reader, self._writer, self._host = reader, writer, host

    async def post(self, path: str, record: dict[str, str]) -> Any:
        body = json.dumps(record).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
        self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        told = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if not told.startswith("http/1.1 200"):
            raise RuntimeError(told)
        length = next(line.partition(":")[2] for line in told.splitlines() if line.startswith("content-length"))
        return json.loads(await self._reader.readexactly(int(length)))


async def ask(address: str, words: list[str]) -> list[str]:
    """What the server says of every word; each client takes the next one that nobody has."""
    found: dict[int, str] = {}
    waiting = iter(enumerate(words))
    host, port = address.removeprefix("http://").rstrip("/").split(":")

    async def client() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        connection = Client(reader, writer, f"{host}:{port}")
        for number, word in waiting:
            answer = await connection.post("/api/predict", {"input": word})
            found[number] = answer["predictions"][0]["text"]
        writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return [found[number] for number in range(len(words))]


def main() -> None:
    draw = random.Random(2)
    words = ["".join(draw.choice(LETTERS) for _ in range(draw.randint(4, 11))) for _ in range(INPUTS)]
    with tempfile.TemporaryDirectory() as folder:
        path = trained(Path(folder))
        model = seq2see.load(path)
        model.predict(words[0])
        start = perf_counter()
        alone = [model.predict(word).text for word in words]
        one = INPUTS / (perf_counter() - start)
        command = [sys.executable, "-m", "seq2see", "serve", str(path), "--port", "0"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        try:
            assert server.stderr is not None
            address = next(word for word in server.stderr.readline().split() if word.startswith("http"))
            asyncio.run(ask(address, words[:CLIENTS]))
            start = perf_counter()
            together = asyncio.run(ask(address, words))
            many = INPUTS / (perf_counter() - start)
        finally:
            server.terminate()
            server.wait()
    same = sum(a == b for a, b in zip(alone, together, strict=True))
    print(f"one after the other, model.predict: {one:7.1f} inputs/s")
    print(f"{CLIENTS} clients at once over HTTP:      {many:7.1f} inputs/s: {many / one:.2f} x (goal: {GOAL:g})")
    print(f"the same outputs: {same} of {INPUTS}")


if __name__ == "__main__":
    main()
