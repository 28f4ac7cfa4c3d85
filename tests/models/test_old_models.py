"""Models of every released version load for ever, and say what they said when they were saved."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.models.saying import said
from tests.record.record import differences

HERE = Path(__file__).parent
SAVED = sorted(path.parent for path in HERE.glob("*/*/recipe.yaml"))
LARGEST = 60_000


def expected(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder.parent / "expected.json").read_text(encoding="utf-8"))[folder.name]
    return told


def test_models_of_the_first_version_are_there() -> None:
    assert {path.name for path in SAVED if path.parent.name == "0.1.0"} >= {
        "transliteration",
        "entailment",
        "image-captioning",
    }


@pytest.mark.parametrize("folder", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_it_says_what_it_said(folder: Path) -> None:
    kept = expected(folder)
    now = said(folder.parent, folder.name, inputs=kept["inputs"], output=kept["output"])
    told = {name: value for name, value in kept.items() if name not in ("inputs", "output")}
    assert sorted(differences(told, json.loads(json.dumps(now)))) == []


@pytest.mark.parametrize("folder", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_it_is_small_and_knows_no_path(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= LARGEST
    for path in files:
        content = path.read_bytes()
        assert b"/tmp" not in content
        assert b"/work" not in content


def test_the_command_line_says_it_too() -> None:
    folder = HERE / "0.1.0" / "transliteration"
    kept = expected(folder)
    given = kept["inputs"]
    command = [sys.executable, "-m", "seq2see", "predict", str(folder), *given, "--json", "--looks", "-"]
    run = subprocess.run(command, cwd=HERE.parents[1], check=True, capture_output=True, text=True, encoding="utf-8")
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["input"] for line in lines] == given
    for line, told in zip(lines, kept["predictions"], strict=True):
        assert line["text"] == told["answer"]
        assert line["score"] == pytest.approx(told["score"], rel=2e-3, abs=1e-4)
        assert line["looks"]["inputs"] == told["inputs"]["source"]
        assert list(differences(told["looks"]["source"], line["looks"]["weights"])) == []
