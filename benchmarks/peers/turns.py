"""What every worker shares: commands as JSON lines on stdin, answers on stdout, and the clock of training.

It runs in the environments of all engines, so it needs nothing but the standard library (torch sets its threads by
OMP_NUM_THREADS, which the driver sets). A worker that waits for a command sleeps in `read`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Command = dict[str, Any]

config: Command = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
"""What the driver says when it starts a worker: the mode (train or decode), folders, sizes, threads."""

_answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # whatever a toolkit prints goes to the log and not between the answers


def next_command() -> Command:
    """Wait for the driver; the end of its commands is the end of this process."""
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    command: Command = json.loads(line)
    return command


def answer(**values: object) -> None:
    _answers.write(json.dumps(values) + "\n")
    _answers.flush()


def peak_megabytes() -> float:
    """The most resident memory this process has had."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


class Updates:
    """Lets a toolkit's own training loop run for as many updates as the driver asks for, and stop in between.

    The worker calls `wait` before the first update and `updated` after each one. The clock runs from the command to
    the last update of it, so the reading of batches is in it and the wait for the driver is not.
    """

    def __init__(self, save: Callable[[str], None]):
        self._save = save
        self._left, self._tokens, self._updates, self._began = 0, 0, 0, 0.0

    def wait(self) -> None:
        while self._left == 0:
            command = next_command()
            if command["do"] == "save":
                self._save(command["path"])
                answer(saved=command["path"])
            else:
                self._updates = self._left = int(command["updates"])
                self._tokens, self._began = 0, time.perf_counter()

    def updated(self, tokens: int) -> None:
        """tokens: target words of the update with their end symbols."""
        self._tokens += tokens
        self._left -= 1
        if self._left == 0:
            seconds = time.perf_counter() - self._began
            answer(updates=self._updates, tokens=self._tokens, seconds=seconds, megabytes=peak_megabytes())
            self.wait()


def serve_decoding(load: Callable[[str], None], decode: Callable[[list[str], int, int], list[str]]) -> None:
    """Answer `load` and `decode` until the driver ends.

    decode(sentences, beam, batch): tokenised sentences to tokenised outputs, in the same order; only this is timed.
    """
    answer(ready=True)
    while True:
        command = next_command()
        if command["do"] == "load":
            load(command["path"])
            answer(loaded=command["path"])
            continue
        sentences: list[str] = command["sentences"]
        began = time.perf_counter()
        outputs = decode(sentences, int(command["beam"]), int(command["batch"]))
        seconds = time.perf_counter() - began
        tokens = sum(len(output.split()) + 1 for output in outputs)
        answer(sentences=len(outputs), tokens=tokens, seconds=seconds, outputs=outputs)


class Decoder(Protocol):
    """A model that decodes: see `serve_decoding`."""

    def load(self, path: str) -> None: ...
    def decode(self, sentences: list[str], beam: int, batch: int) -> list[str]: ...


def work(train: Callable[[], None], decoder: Callable[[], Decoder]) -> None:
    """Train or decode, as the driver says."""
    if config["mode"] == "train":
        train()
    else:
        made = decoder()
        serve_decoding(made.load, made.decode)
