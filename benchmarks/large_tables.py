"""Time and memory from a large table to the first update: cold, warm (a second run), and row by row.

    python benchmarks/large_tables.py                       5 million pairs of two words
    python benchmarks/large_tables.py --rows 80_000_000     about 2 GB

The table is made first (pairs of words by Zipf's law, about 25 bytes a row). Each measurement is a process of its own,
which trains a small model until its first update is done. Reading row by row, which other kinds of recipes still need,
is measured on the first rows of the same table (`--plain`), and its time for all rows is that of a row times their
number.

Memory is the largest of the training process, with that of the processes that read the table apart: resident (what the
kernel counts, pages of mapped files among them, which it takes back as soon as others need memory) and anonymous (what
only the process can give back), read ten times a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = 50_000
RECIPE: dict[str, Any] = {
    "inputs": {"source": {"vocabulary": 4_000}},
    "output": {"column": "target", "vocabulary": 4_000},
    "encoder": {"size": 64},
    "decoder": {"size": 64},
    "training": {"updates": 1, "threads": 1},
}


def make_table(path: Path, rows: int) -> None:
    """Pairs of two words each, drawn by Zipf's law."""
    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = sorted({"".join(random.choice(letters, random.integers(3, 8))) for _ in range(VOCABULARY)})
    random.shuffle(words)
    shares = np.cumsum(1 / np.arange(1, len(words) + 1))
    with path.open("w", encoding="ascii") as file:
        file.write("source\ttarget\n")
        for start in range(0, rows, 1 << 18):
            drawn = random.random((min(1 << 18, rows - start), 4)) * shares[-1]
            picked = np.searchsorted(shares, drawn).clip(max=len(words) - 1).tolist()
            file.write("".join([f"{words[a]} {words[b]}\t{words[c]} {words[d]}\n" for a, b, c, d in picked]))


def first_update(table: Path, folder: Path, *, plain: bool) -> dict[str, float]:
    """Train until the first update; seconds from the start of the process, processor time, rows, memory in MB."""
    from seq2see.pipeline import encoded_table
    from seq2see.recipe import load_recipe
    from seq2see.training import dataset, run
    from seq2see.training.checkpoints import Sources
    from seq2see.training.trainer import Trainer

    if plain:
        dataset.block_columns = lambda *_: []
    measured: dict[str, float] = {}
    encode = encoded_table.TableEncoder.read

    def timed(self: Any, **options: Any) -> None:
        began, before = time.perf_counter(), _processor_time()
        encode(self, **options)
        measured.update(read=time.perf_counter() - began, read_processor=_processor_time() - before, rows=self.rows)

    encoded_table.TableEncoder.read = timed  # type: ignore[method-assign]
    began, before = time.perf_counter(), _processor_time()

    def update(self: Trainer, batches: int) -> None:
        original(self, batches)
        measured.update(seconds=time.perf_counter() - began, processor=_processor_time() - before, batches=batches)
        measured.update(memory=_peak(os.getpid()))
        print(json.dumps(measured))
        sys.stdout.flush()
        os._exit(0)

    original = Trainer._update
    Trainer._update = update  # type: ignore[method-assign]
    run.train(load_recipe(RECIPE), Sources(data=str(table)), folder=folder)
    raise AssertionError("no update was made")


def _processor_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _peak(process: int) -> float:
    """The most memory that a process had, in MB (Linux)."""
    return _memory(process, "VmHWM")


def _memory(process: int, kind: str) -> float:
    """One line of a process's status, in MB (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith(kind))


def _children(process: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]
    except OSError:
        return []


def measure(table: Path, *, plain: bool = False) -> dict[str, float]:
    """`first_update` in a process of its own, with the memory of the processes it starts."""
    with tempfile.TemporaryDirectory(dir=table.parent) as folder:
        command = [sys.executable, __file__, "--child", str(table), folder, *(["--as-rows"] if plain else [])]
        began = time.perf_counter()
        running = subprocess.Popen(command, stdout=subprocess.PIPE)
        together: dict[int, float] = {}
        anonymous = 0.0
        while running.poll() is None:
            with suppress(OSError, StopIteration):
                anonymous = max(anonymous, _memory(running.pid, "RssAnon"))
            for child in _children(running.pid):
                with suppress(OSError, StopIteration):
                    together[child] = _peak(child)
            time.sleep(0.1)
        assert running.stdout is not None
        found: dict[str, float] = json.loads(running.stdout.read().splitlines()[-1])
        found["total"] = time.perf_counter() - began
        found["others"] = sum(together.values())
        found["anonymous"] = anonymous
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(text.replace("_", "")), default=5_000_000)
    parser.add_argument(
        "--plain", type=lambda text: int(text.replace("_", "")), default=200_000, help="rows read singly"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="for the table and what is kept"
    )
    parser.add_argument("--table", type=Path, help="a table of so many rows that is there, or is to be kept")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--as-rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        first_update(*options.child, plain=options.as_rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        os.environ["SEQ2SEE_CACHE"] = str(folder / "cache")
        table, part = options.table or folder / "pairs.tsv", folder / "part.tsv"
        if not table.exists():
            make_table(table, options.rows)
        with table.open("rb") as source, part.open("wb") as target:
            target.writelines(line for line, _ in zip(source, range(options.plain + 1), strict=False))
        print(f"{options.rows:,} rows, {table.stat().st_size / 1e9:.2f} GB; {os.cpu_count()} cores")
        plain = measure(part, plain=True)
        cold, warm = measure(table), measure(table)
    scaled = plain["seconds"] * options.rows / options.plain
    print(
        f"reading, one pass: {cold['rows'] / cold['read_processor']:,.0f} rows/s per core (processor time), "
        f"{cold['rows'] / cold['read']:,.0f} rows/s by the clock"
    )
    print(
        "to the first update        seconds  processor time  with imports  MB resident  MB anonymous  MB of its readers"
    )
    for what, found in (("cold", cold), ("warm (second run)", warm)):
        memory = f"{found['memory']:12,.0f} {found['anonymous']:13,.0f} {found['others']:18,.0f}"
        print(f"{what:24} {found['seconds']:10.1f} {found['processor']:15.1f} {found['total']:13.1f} {memory}")
    print(f"{'row by row':24} {scaled:10.1f} (from {options.plain:,} rows: {plain['seconds']:.1f})")
    print(f"ratios: cold {scaled / cold['seconds']:.1f} x, warm {scaled / warm['seconds']:.0f} x as fast as row by row")


if __name__ == "__main__":
    main()
