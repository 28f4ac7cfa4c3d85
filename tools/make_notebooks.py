"""Run the notebooks of docs/notebooks and write them back with their outputs: `make notebooks`.

    python tools/make_notebooks.py [NAME...]

The notebooks are edited as they are, in Jupyter or any editor; this script runs each from a clean state, in a folder of
its own, and leaves out what differs from run to run and from machine to machine. The site (docs/site_hooks.py) makes a
page of each, and tests/test_notebook_pages.py runs them again.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

PROJECT = Path(__file__).resolve().parent.parent
NOTEBOOKS = PROJECT / "docs" / "notebooks"
MOST_BYTES = 400_000
SECONDS = 600
"""A cell may take this long on a busy machine."""
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
DROPPED = ("application/vnd.jupyter.widget-view+json", "application/javascript", "image/jpeg")
"""Outputs that need a running kernel, whose text is kept, and a second copy of a picture."""
PROGRESS = re.compile(r"<progress[^>]*></progress> ?|, [\d,]+ \w+/s\s+about [^<]* left")
"""What is left of a progress bar once a training has ended."""


def run(path: Path, folder: Path, *, without: str = "") -> Any:
    """The notebook with the outputs of a run in this folder, which is empty; raises where a cell does.

    without: leave out cells with this tag.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if without not in cell.metadata.get("tags", [])]
    with environment(folder):
        client = NotebookClient(
            notebook,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            extra_arguments=["--IPKernelApp.log_level=40"],
        )
        client.execute(env=dict(os.environ))
    return cleaned(notebook)


@contextmanager
def environment(folder: Path) -> Iterator[None]:
    """Caches and settings of this run alone, this checkout's package, and one thread."""
    state = folder.parent / f"{folder.name}-state"
    paths = {
        "SEQ2SEE_CACHE": state / "cache",
        "IPYTHONDIR": state / "ipython",
        "JUPYTER_CONFIG_DIR": state / "jupyter",
        "JUPYTER_DATA_DIR": state / "data",
        "JUPYTER_RUNTIME_DIR": state / "runtime",
    }
    for made in paths.values():
        made.mkdir(parents=True, exist_ok=True)
    scripts, packages = sysconfig.get_path("scripts"), (PROJECT, PROJECT / "runtime")
    more = {
        "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "OMP_NUM_THREADS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TERM": "dumb",  # commands print what they found, and no progress bars
    }
    with patch.dict(os.environ, {name: str(value) for name, value in paths.items()} | more):
        yield


def cleaned(notebook: Any) -> Any:
    """Without what differs from run to run; with the digest of its sources."""
    notebook.metadata = nbformat.from_dict({**KERNEL, "language_info": {"name": "python"}, "sources": digest(notebook)})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.from_dict({name: value for name, value in cell.metadata.items() if name == "tags"})
        if cell.cell_type == "code":
            cell.outputs = [kept for kept in map(_cleaned_output, joined(cell.outputs)) if kept is not None]
    return notebook


def joined(outputs: list[Any]) -> Iterator[Any]:
    """Outputs, with what was printed in several pieces (as it happens to be sent) in one."""
    for _, group in groupby(outputs, key=lambda output: output.get("name") or id(output)):
        first, *others = group
        for other in others:
            first.text += other.text
        yield first


def _cleaned_output(output: Any) -> Any:
    if output.output_type == "stream":
        return output
    output.metadata = {}
    data = output.get("data", {})
    for kind in DROPPED:
        data.pop(kind, None)
    for kind, value in data.items():
        if isinstance(value, str) and kind.startswith("text/"):
            data[kind] = PROGRESS.sub("", re.sub(r" at 0x[0-9a-f]+", "", value))
    if "image/png" in data or "text/html" in data:
        data.pop("text/plain", None)  # of figures and tables: <Figure size 640x480 with 1 Axes>
    return output if data else None


def digest(notebook: Any) -> str:
    """Of the code: a notebook whose code was edited and not run again has another one."""
    written = "\0".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return sha256(written.encode()).hexdigest()[:16]


def problems(notebook: Any) -> Iterator[str]:
    """What a committed notebook must not have."""
    if notebook.metadata.get("sources") != digest(notebook):
        yield "edited since it was run: `make notebooks`"
    text = nbformat.writes(notebook)
    if len(text) > MOST_BYTES:
        yield f"{len(text):,} bytes; at most {MOST_BYTES:,}"
    found = re.search(r"(/tmp/|/home/|/root/|/Users/|/work/|site-packages)[^\s\"]*", text)
    if found:
        yield f"a path of one machine: {found[0]}"
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error" or output.get("name") == "stderr":
                yield f"cell {number}: {output.get('text') or output.get('evalue')}"


def main(names: list[str]) -> int:
    failed = 0
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        started = sum(os.times()[:4])
        clock = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="seq2see-notebook-") as made:
            folder = Path(made) / "run"
            folder.mkdir()
            notebook = run(path, folder)
        wrong = list(problems(notebook))
        spent = sum(os.times()[:4]) - started
        print(f"{path.stem}: {spent:.1f} s of the processor, {time.monotonic() - clock:.0f} s by the clock")
        for line in wrong:
            print(f"  {line}", file=sys.stderr)
        failed += bool(wrong)
        nbformat.write(notebook, path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
