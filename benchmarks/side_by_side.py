"""Two trainings at once on one machine, beside one alone: as torch sets its threads, and as seq2see does.

Each training is a process of its own that makes updates of the shipped grapheme-to-phoneme model for a few seconds. Two
that share the cores evenly take twice as long: a slowdown of 2 is what the machine can give.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WAYS = {"torch's own": "", "seq2see": "configure"}


def work(way: str, seconds: float) -> None:
    """Updates a second, printed once told to begin."""
    if way:
        from seq2see import threads

        threads.configure()
    import torch
    from _models import batch, model

    network, rows = model(), batch()
    optimizer = torch.optim.Adam(network.parameters())

    def update() -> None:
        optimizer.zero_grad()
        step, ready = network.forward_batch(rows)
        assert rows.target is not None
        network.head.loss(step, ready, rows.target.ids, mask=rows.target.mask).backward()
        optimizer.step()

    for _ in range(3):
        update()
    print("ready", flush=True)
    sys.stdin.readline()
    start, updates = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        update()
        updates += 1
    print(updates / (time.perf_counter() - start), flush=True)


def speed(way: str, processes: int, seconds: float) -> float:
    """Updates a second of each of so many processes at once."""
    command = [sys.executable, __file__, "--work", way, "--seconds", str(seconds)]
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    environment["PYTHONPATH"] = str(HERE.parent)
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(processes)
    ]
    speeds = []
    for process in started:
        assert process.stdout is not None
        process.stdout.readline()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("begin\n")
        process.stdin.flush()
    for process in started:
        speeds.append(float(process.communicate()[0]))
    return statistics.mean(speeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.seconds)
        return
    measured: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        for name, way in WAYS.items():
            for processes in (1, 2):
                measured.setdefault((name, processes), []).append(speed(way, processes, options.seconds))
    for name in WAYS:
        alone, both = (statistics.median(measured[name, processes]) for processes in (1, 2))
        print(f"{name:12} alone {alone:6.2f} updates/s, two at once {both:6.2f} each: {alone / both:5.2f} x as long")


if __name__ == "__main__":
    main()
