"""The public names of the package, and its version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import seq2see

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_listed_and_there() -> None:
    assert dir(seq2see) == sorted([*seq2see.__all__, "__version__"])
    assert {"train", "load", "compare", "Recipe", "Model", "Prediction", "attention", "search"} <= set(dir(seq2see))
    for name in dir(seq2see):
        assert getattr(seq2see, name) is not None


def test_importing_the_package_does_not_import_torch() -> None:
    script = "import sys, seq2see; dir(seq2see); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_the_version_is_the_same_everywhere() -> None:
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text("utf-8")
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.M)
    assert cited is not None
    assert cited[1].strip("\"'") == seq2see.__version__
