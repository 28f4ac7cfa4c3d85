"""The distribution: a wheel that needs neither torch nor seq2see."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.conftest import inputs_of, original

RUNTIME = Path(__file__).resolve().parents[2] / "runtime"
ABSENT = ("torch", "seq2see", "jaxtyping", "pydantic", "matplotlib", "PIL", "tokenizers", "yaml")
SCRIPT = """
import json, sys
import seq2see_runtime
prediction = seq2see_runtime.load(sys.argv[1], threads=1).predict(sys.argv[2])
print(json.dumps([prediction.text, sorted(set(sys.modules) & set(json.loads(sys.argv[3])))]))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules of a wheel that was built anew."""
    pytest.importorskip("hatchling", reason="hatchling is not installed (extra `dev`)")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=RUNTIME, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "modules")
    return folder / "modules"


def test_it_answers_without_torch(unpacked: Path, exported: Callable[[str], Path], tmp_path: Path) -> None:
    value = inputs_of("transliteration")[0]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(exported("transliteration")), value, json.dumps(ABSENT)],
        env={"PYTHONPATH": str(unpacked), "HOME": str(tmp_path)},
        cwd=unpacked,
        check=True,
        capture_output=True,
        text=True,
    )
    text, loaded = json.loads(done.stdout)
    assert text == original("transliteration").predict(value).text
    assert loaded == []
    assert list(tmp_path.iterdir()) == [], "onnxruntime's telemetry would keep an identifier of its user here"


def test_what_pictures_need_is_there(unpacked: Path) -> None:
    wanted = {path.name for path in (RUNTIME.parent / "seq2see" / "seeing").rglob("*.[cj]s*")}
    assert wanted
    assert {path.name for path in (unpacked / "seq2see_runtime" / "shared" / "seeing").rglob("*")} >= wanted


def test_the_checked_modules_are_those_in_the_wheel(unpacked: Path) -> None:
    """import-linter holds them free of torch: the list in pyproject.toml is the one of hatch_build.py."""
    settings = tomllib.loads((RUNTIME.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [
        each for each in settings["tool"]["importlinter"]["contracts"] if each["name"].startswith("What the runtime")
    ]
    shared = unpacked / "seq2see_runtime" / "shared"
    paths = [path.relative_to(shared).with_suffix("") for path in shared.rglob("*.py") if path.name != "__init__.py"]
    wanted = {".".join(("seq2see", *path.parts)) for path in paths}
    checked = set(contract["source_modules"])
    assert {name for name in wanted if name not in checked and name.rpartition(".")[0] not in checked} == set()


def test_every_module_is_its_own(unpacked: Path) -> None:
    for path in unpacked.rglob("*.py"):
        imports = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
        strangers = ("import torch", "from torch", "from jaxtyping", "from seq2see.", "import seq2see.")
        assert not [line for line in imports if line.startswith(strangers)], path


def test_what_a_shared_module_imports_is_in_the_wheel(unpacked: Path) -> None:
    """At its head; what is imported late belongs to commands that the runtime does not have."""
    for path in (unpacked / "seq2see_runtime").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seq2see_runtime"):
                target = unpacked.joinpath(*str(node.module).split("."))
                assert target.is_dir() or target.with_suffix(".py").is_file(), f"{path.name} imports {node.module}"


# ---------------------------------------------------------------- the container image


def instructions() -> list[list[str]]:
    """The Dockerfile's instructions as words, lines that go on joined."""
    text = (RUNTIME / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def test_what_the_image_copies_is_there() -> None:
    """From the project's folder, or from the stage before; the model's folder is an argument."""
    stages = {words[3] for words in instructions() if words[0] == "FROM" and len(words) > 3}
    arguments = {words[1].partition("=")[0] for words in instructions() if words[0] == "ARG"}
    copied = [words[1:-1] for words in instructions() if words[0] == "COPY"]
    for sources in copied:
        if sources[0].startswith("--from="):
            assert sources[0].removeprefix("--from=") in stages
        elif not sources[0].startswith("$"):
            assert (RUNTIME.parent / sources[0]).exists(), sources
        else:
            assert sources[0].strip("${}") in arguments
    assert {"LICENSE", "seq2see", "runtime"} <= {sources[0] for sources in copied}, "what hatch_build.py reads"


def test_what_the_image_leaves_out_is_not_imported(unpacked: Path, exported: Callable[[str], Path]) -> None:
    (removal,) = [words for words in instructions() if words[0] == "RUN" and "rm" in words]
    folders = removal[removal.index("-rf") + 1 : removal.index("&&", removal.index("-rf"))]
    modules = [folder.replace("/", ".") for folder in folders if folder != "bin"]
    assert "onnxruntime.transformers" in modules
    value = inputs_of("transliteration")[0]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(exported("transliteration")), value, json.dumps(modules)],
        env={"PYTHONPATH": str(unpacked)},
        cwd=unpacked,
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)[1] == []


def test_the_image_starts_a_module_of_the_wheel(unpacked: Path) -> None:
    (start,) = [words for words in instructions() if words[0] == "ENTRYPOINT"]
    command = json.loads(" ".join(start[1:]))
    assert command[:2] == ["/usr/bin/python3", "-m"]
    assert (unpacked / command[2] / "__main__.py").is_file()
    final = [words for words in instructions() if words[0] == "FROM"][-1]
    assert final[1].endswith(":nonroot")
