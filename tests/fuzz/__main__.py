"""`make fuzz`: cases of every target, each target in a process of its own.

A case passes if it ends in success or in a documented refusal: a UserError on the way to exit code 2, an HTTP status
below 500, or 503 with Retry-After. It fails with any other exception, more than 20 s of processor time, a process that
dies, or memory beyond the limit. Printed: cases, seconds and peak memory of each target, and how to repeat a failure.

    .venv/bin/python -m tests.fuzz [--cases 100000] [--seed 1] [--target tables] [--chunk 17]
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import logging
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any, TextIO

import torch

from tests.fuzz.chunks import CHUNK, run_chunk
from tests.fuzz.targets import TARGETS

SECONDS = 20
"""Of processor time that one case may take."""
SILENCE = 300
"""Seconds without a chunk, as the parent counts them: a process that waits for something that never comes."""
MEMORY = 2 << 30
"""Bytes that a process may hold beyond what it has when the target is prepared."""


@dataclass
class Result:
    """Of one target."""

    name: str
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    memory: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        return self.accepted + self.refused


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="only this one; may be repeated")
    parser.add_argument("--chunk", type=int, help="only this chunk of a target, to repeat a failure")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("seq2see.studio").setLevel(logging.CRITICAL)
    targets = {name: target for name, target in TARGETS.items() if not options.target or name in options.target}
    total = sum(target.share for target in targets.values())
    results = []
    print(f"seed {options.seed}; at most {SECONDS} s of processor time a case\n")
    print(
        f"{'target':<16} {'cases':>7} {'accepted':>8} {'refused':>8} {'cpu s':>8} {'peak MB':>8}  failures", flush=True
    )
    for name, target in targets.items():
        results.append(fuzz(name, options.seed, options.chunk, round(options.cases * target.share / total)))
        print(line(results[-1]), flush=True)
    whole = Result("all", *(sum(getattr(one, key) for one in results) for key in ("accepted", "refused", "seconds")))
    whole.memory = max(one.memory for one in results)
    whole.failures = {key: text for one in results for key, text in one.failures.items()}
    print(line(whole))
    for failure in whole.failures.values():
        print(f"\n{failure}")
    return 1 if whole.failures else 0


def line(one: Result) -> str:
    figures = f"{one.cases:>7,} {one.accepted:>8,} {one.refused:>8,} {one.seconds:>8.1f} {one.memory / 1e6:>8,.0f}"
    return f"{one.name:<16} {figures}  {len(one.failures)}"


def fuzz(name: str, seed: int, only: int | None, cases: int) -> Result:
    """All chunks of a target. A process that dies takes its chunk along, and another goes on with the next."""
    result = Result(name)
    first, last = (only, only + 1) if only is not None else (0, -(-cases // CHUNK))
    while first < last:
        left = cases - first * CHUNK if only is None else CHUNK
        done, problem = follow(partial(work, name, seed, first, left), result)
        first += done
        if problem:
            result.failures[f"{name}:{first}"] = f"{name}: {problem}\n{repeated(name, seed, first)}"
            first += 1
    return result


def repeated(name: str, seed: int, chunk: int) -> str:
    return f"repeat: python -m tests.fuzz --target {name} --seed {seed} --chunk {chunk}"


def follow(action: Callable[[TextIO], None], result: Result) -> tuple[int, str]:
    """Run an action in a process of its own: (chunks that it has done, what it died of)."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile("w+b") as errors, os.fdopen(reading) as lines, os.fdopen(writing, "w") as told:
        pid = os.fork()
        if not pid:
            code = 1
            try:
                os.dup2(errors.fileno(), 2)  # libraries of sounds and videos talk
                action(told)
                code = 0
            except BaseException:  # noqa: BLE001 - this process ends here, whatever it is
                traceback.print_exc()
            finally:
                told.flush()
                os._exit(code)  # threads of a server's models need not be waited for
        told.close()
        watch = Watch(pid)
        done = 0
        for text in lines:
            record: dict[str, Any] = json.loads(text)
            watch.heard()
            done += 1
            result.accepted += record["accepted"]
            result.refused += record["refused"]
            result.seconds += record["seconds"]
            result.memory = max(result.memory, record["memory"])
            for place, failure in record["failures"].items():
                result.failures.setdefault(place, failure)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        watch.end()
        if not code:
            return done, ""
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace")[-3000:]
    reasons = {
        -signal.SIGPROF: f"more than {SECONDS} s of processor time",
        -signal.SIGKILL: f"no chunk in {SILENCE} s, or out of memory",
    }
    return done, f"{reasons.get(code, f'the process ended with {code}')}\n{said}"


class Watch:
    """Kills a process that is silent for too long. It counts in steps, so that a machine that was suspended meanwhile
    is not taken for a case that hangs."""

    def __init__(self, pid: int):
        self._pid, self._waited, self._ended = pid, 0, Event()
        Thread(target=self._count, daemon=True).start()

    def heard(self) -> None:
        self._waited = 0

    def end(self) -> None:
        self._ended.set()

    def _count(self) -> None:
        while not self._ended.wait(1):
            self._waited += 1
            if self._waited > SILENCE:
                os.kill(self._pid, signal.SIGKILL)
                return


def work(name: str, seed: int, first: int, cases: int, told: TextIO) -> None:
    """Inside the process: chunks from the first on, a line of JSON for each."""
    warnings.simplefilter("ignore")
    start = time.process_time()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # tables and checkpoints are flushed to the disk
    with tempfile.TemporaryDirectory(prefix=f"seq2see-fuzz-{name}-", dir=memory) as folder:
        check = TARGETS[name].prepare(Path(folder))
        resource.setrlimit(resource.RLIMIT_DATA, (resident("VmData") + MEMORY,) * 2)
        # faulthandler says where Python is, and then the default action ends the process, also inside a library.
        faulthandler.register(signal.SIGPROF, all_threads=True, chain=True)
        for chunk in range(first, first + -(-cases // CHUNK)):
            count = min(CHUNK, cases - (chunk - first) * CHUNK)
            counted = run_chunk(name, check, seed=seed, chunk=chunk, cases=count, before=begin_case)
            record = asdict(counted) | {"memory": resident("VmHWM"), "seconds": time.process_time() - start}
            start = time.process_time()
            again = repeated(name, seed, chunk)
            record["failures"] = {place: f"{name}: {text}{again}" for place, text in counted.failures.items()}
            told.write(json.dumps(record) + "\n")
            told.flush()
        signal.setitimer(signal.ITIMER_PROF, 0)


def begin_case() -> None:
    """The time of a case begins."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def resident(key: str) -> int:
    """Bytes that /proc tells about this process."""
    found = re.search(rf"{key}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


if __name__ == "__main__":
    sys.exit(main())
