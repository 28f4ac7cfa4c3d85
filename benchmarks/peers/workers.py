"""Starts workers and asks them; one works at a time, the others sleep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[1]


@dataclass(frozen=True)
class Engine:
    """An engine as the tables name it. environment: its folder below that of the peers; empty: this one."""

    name: str
    script: str
    environment: str = ""
    options: tuple[tuple[str, Any], ...] = ()

    def python(self, peers: Path) -> str:
        return str(peers / self.environment / "bin" / "python") if self.environment else sys.executable


class Worker:
    """A process that answers commands, each a line of JSON."""

    def __init__(self, engine: Engine, peers: Path, log: Path, **config: Any):
        self.engine, self.log, self.began = engine, log, time.perf_counter()
        threads = str(config["threads"])
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": threads,
            "MKL_NUM_THREADS": threads,
            "PYTHONPATH": str(PROJECT) if not engine.environment else "",
            # The peers' checkpoints hold their options as pickled objects; the only ones read are those written here.
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
        }
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [engine.python(peers), str(HERE / engine.script), json.dumps({**config, **dict(engine.options)})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                env=environment,
                cwd=log.parent,
            )
        self.first = self._read()
        self.start_up = time.perf_counter() - self.began

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            last = "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
            raise SystemExit(f"{self.engine.name} ended with {self.process.wait()}; the end of {self.log}:\n{last}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process, which ends itself where there are no more commands."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
