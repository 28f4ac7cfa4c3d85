"""Make the record anew: `python -m tests.record.make_record`.

record.json holds what every case did when it was made; it is made anew only where behaviour is meant to change.
`--exact FILE` writes all numbers in full instead, and `--against FILE` compares with such a file bit for bit: a change
that should change nothing is tried by the first before it and by the second after it, on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.record.cases import Case, cases
from tests.record.record import ask, differences, record, shortened
from tests.record.tables import make

FILE = Path(__file__).with_name("record.json")
TRIES, MOVED = 3, 1e-4
"""How often and by which share the weights of a model are moved to find out what a rounding could throw."""


def unsteady(case: Case, folder: Path, whole: dict[str, Any]) -> list[str]:
    """Paths of what changes when every weight is moved a little: outputs that are almost as likely as others."""
    table = make(case.table or case.recipe, folder / "table")
    names = sorted(path.parent.name for path in folder.glob("*/model.safetensors"))
    names = names[1:] if case.way == "fine-tuned" else names
    kept, found = shortened(whole), set[str]()
    for number in range(TRIES):
        moved = [_moved(folder / name, folder / f"{name}-{number}", number) for name in names]
        found |= set(differences(kept, shortened({**whole, **ask(case, table, moved)})))
    return sorted(found)


def _moved(folder: Path, copy: Path, seed: int) -> Path:
    """A copy of a model with every weight moved."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("checkpoints"))
    draw, file = np.random.default_rng(seed), copy / "model.safetensors"
    weights = load_file(file)
    for name, numbers in weights.items():
        if numbers.dtype == np.float32:
            moved = numbers * (1 + MOVED * draw.standard_normal(numbers.shape))
            weights[name] = np.asarray(moved, dtype=np.float32)
    save_file(weights, file)  # without a checksum, which would have to fit
    return copy


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--exact", type=Path, metavar="FILE", help="write all numbers in full to this file")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare bit for bit with such a file")
    parser.add_argument("--only", default="*", metavar="NAME", help="cases of this name (* and ? stand for others)")
    parser.add_argument("--folder", type=Path, help="work here, and leave all there; otherwise a folder that goes")
    given = parser.parse_args()
    chosen = {name: case for name, case in cases().items() if fnmatch(name, given.only)}
    with tempfile.TemporaryDirectory() as temporary:
        made = _made(chosen, given.folder or Path(temporary), full=bool(given.exact or given.against))
    if given.against:
        return _compared(json.loads(given.against.read_text(encoding="utf-8")), made)
    target = given.exact or FILE
    before = json.loads(target.read_text(encoding="utf-8")) if given.only != "*" and target.exists() else {}
    lines = [f"{json.dumps(name)}: {_text(one)}" for name, one in sorted({**before, **made}.items())]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


def _text(one: Any) -> str:
    return json.dumps(one, ensure_ascii=False, separators=(",", ":"))


def _made(chosen: dict[str, Case], folder: Path, *, full: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, case in chosen.items():
        begun = time.perf_counter()
        whole = record(case, folder / name)
        if full:
            made[name] = whole
        else:
            made[name] = {"record": shortened(whole), "unsteady": unsteady(case, folder / name, whole)}
        sys.stderr.write(f"{time.perf_counter() - begun:5.1f} s  {name}\n")
    return made


def _compared(before: dict[str, Any], made: dict[str, Any]) -> int:
    """Print what differs; the exit status says whether anything does."""
    again = json.loads(json.dumps(made))
    found = {name: sorted(differences(before.get(name), again[name], exact=True)) for name in made}
    wrong = {name: paths for name, paths in found.items() if paths}
    for name, paths in wrong.items():
        sys.stdout.write(f"{name}: {len(paths)} differ: {', '.join(paths[:5])}\n")
    sys.stdout.write(f"{len(made) - len(wrong)} of {len(made)} cases are the same in every bit\n")
    return int(bool(wrong))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
