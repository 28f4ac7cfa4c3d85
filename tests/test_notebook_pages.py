"""The notebooks of the documentation run from a clean state, and what is committed of them can be shown."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

PROJECT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((PROJECT / "docs" / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")  # of jupyter's own


def load_script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, PROJECT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_notebooks = load_script("tools/make_notebooks.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder with a short path, which kernels' files need."""
    with tempfile.TemporaryDirectory(prefix="seq2see-notebook-") as made:
        (Path(made) / "run").mkdir()
        yield Path(made) / "run"


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def tags(path: Path) -> set[str]:
    return {tag for cell in read(path).cells for tag in cell.metadata.get("tags", [])}


SLOW = "slow"
"""Tag of cells that are run by `make slow` alone: exports take long."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_a_clean_state(path: Path, folder: Path) -> None:
    """It checks what it says by itself: a cell that asserts and fails ends it."""
    notebook = make_notebooks.run(path, folder, without=SLOW)
    assert list(make_notebooks.problems(notebook)) == []
    assert "assert " in "".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if SLOW in tags(path)], ids=lambda path: path.stem)
def test_a_notebook_runs_with_its_slow_cells(path: Path, folder: Path) -> None:
    assert list(make_notebooks.problems(make_notebooks.run(path, folder))) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_was_run_and_is_small(path: Path) -> None:
    notebook = read(path)
    assert list(make_notebooks.problems(notebook)) == []
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert any(cell.get("outputs") for cell in notebook.cells)
    assert notebook.cells[0].source.startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_site_has_a_page_of_it_with_its_outputs(path: Path) -> None:
    hooks = load_script("docs/site_hooks.py")
    markdown, outputs = hooks.notebook_page(path)
    assert f"notebooks/{path.stem}.md" in (PROJECT / "mkdocs.yml").read_text("utf-8")
    assert markdown.startswith(read(path).cells[0].source.splitlines()[0])
    for number in range(len(outputs)):
        assert f"output-{number}-here" in markdown
    shown = "".join(outputs)
    for cell in read(path).cells:
        for output in cell.get("outputs", []):
            picture = output.get("data", {}).get("image/png", "").replace("\n", "")
            assert picture in shown
            assert "<script" not in output.get("data", {}).get("text/html", "").partition("srcdoc=")[0]


def test_an_edited_notebook_or_one_with_a_path_of_this_machine_is_noticed() -> None:
    notebook = read(NOTEBOOKS[0])
    next(cell for cell in notebook.cells if cell.cell_type == "code").source += "  # edited"
    assert "make notebooks" in next(make_notebooks.problems(notebook))
    notebook.metadata["sources"] = make_notebooks.digest(notebook)
    assert list(make_notebooks.problems(notebook)) == []
    output = nbformat.v4.new_output("stream", name="stdout", text="/tmp/somewhere/model\n")
    next(cell for cell in notebook.cells if cell.cell_type == "code").outputs.append(output)
    assert "/tmp/somewhere" in next(make_notebooks.problems(notebook))
