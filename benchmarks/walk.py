"""How much of the project a reader passes through: files and functions that one training and one prediction call.

    python benchmarks/walk.py

Counts the files of seq2see, and the functions in them, that run after everything is imported. It works on any version
of the project: `PYTHONPATH=OTHER_CHECKOUT python benchmarks/walk.py`.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import seq2see
from seq2see.cli import main

ROOT = str(Path(seq2see.__file__).parent)
SMALL = ["--set", "encoder.size=8", "--set", "decoder.size=8", "--set", "decoder.embedding.size=8"]


def functions_of(command: list[str]) -> set[tuple[str, str]]:
    """(file, function) of all functions of the project that a command calls, but for those that imports call."""
    called: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        function = code.co_flags & inspect.CO_OPTIMIZED  # the bodies of modules and classes have no such flag
        if event == "call" and function and code.co_filename.startswith(ROOT) and not _imported(frame):
            called.add((code.co_filename.removeprefix(ROOT + "/"), code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            main(command)
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{command}: {errors.getvalue()}") from None
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return called


def _imported(frame: FrameType) -> bool:
    """Whether a module of the project is just being imported."""
    caller: FrameType | None = frame
    while caller is not None:
        if caller.f_code.co_name == "<module>" and caller.f_code.co_filename.startswith(ROOT):
            return True
        caller = caller.f_back
    return False


def tell(name: str, called: set[tuple[str, str]]) -> None:
    files = {file for file, _ in called}
    print(f"{name}: {len(files)} files, {len(called)} functions")
    packages = Counter(file.partition("/")[0] for file in files)
    print("  " + ", ".join(f"{package} {count}" for package, count in packages.most_common()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        table, run = Path(folder) / "pairs.tsv", str(Path(folder) / "run")
        words = ["abc", "bcd", "cab", "dab", "bad", "cad", "add", "dad"] * 5
        table.write_text("source\ttarget\n" + "".join(f"{word}\t{' '.join(word.upper())}\n" for word in words))
        train = ["train", "transliteration", "--data", str(table), "--columns", "source,target", "--out", run]
        tell("training", functions_of([*train, "--set", "training.updates=4", "--set", "training.epochs=0", *SMALL]))
        tell("prediction to a PNG", functions_of(["look", run, "abc", "--out", str(Path(folder) / "look.png")]))
