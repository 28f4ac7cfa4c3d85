"""Rules of the project: shapes are checked in tests, versions pinned, licences named, torch imported late."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

from seq2see.memory import Places

PROJECT = Path(__file__).resolve().parent.parent


def canonical(name: str) -> str:
    """The one spelling of a package's name: `rouge_score` and `Rouge-Score` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def direct_dependencies() -> dict[str, str]:
    """{name: range} of all that pyproject.toml asks for, extras included."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(line for extra in extras for line in extra)]
    parts = [re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?(.*)", line) for line in wanted]
    return {canonical(part[1]): part[2] for part in parts if part}


def pins() -> dict[str, str]:
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonical(name): version for name, version in pairs}


def test_a_wrong_shape_is_refused_while_tests_run() -> None:
    with pytest.raises(TypeCheckError):
        Places(states=torch.zeros(2, 3, 4), mask=torch.ones(2, 5, dtype=torch.bool))


def test_every_direct_dependency_is_pinned_and_its_range_is_open() -> None:
    wanted, pinned = direct_dependencies(), pins()
    assert wanted.keys() <= pinned.keys()
    assert pinned["torch"] == "2.13.0"
    assert all(asked.startswith(">=") for asked in wanted.values()), wanted


def test_every_direct_dependency_has_its_licence_named() -> None:
    page = (PROJECT / "docs" / "licences.md").read_text(encoding="utf-8")
    named = {canonical(name) for name in re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)}
    assert named == direct_dependencies().keys()


@pytest.mark.parametrize("module", ["seq2see", "seq2see.errors", "seq2see.looks", "seq2see.cli"])
def test_torch_is_imported_late(module: str) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("False\n", "")


@pytest.mark.parametrize(
    "path", sorted([*PROJECT.glob("benchmarks/**/*.py"), *PROJECT.glob("docs/*.py")]), ids=lambda path: path.name
)
def test_what_scripts_import_exists(path: Path) -> None:
    """No test runs benchmarks and the scripts of the docs; a rename must not leave them behind."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "seq2see":
            module = import_module(node.module or "")
            for name in node.names:
                assert hasattr(module, name.name) or import_module(f"{node.module}.{name.name}")
