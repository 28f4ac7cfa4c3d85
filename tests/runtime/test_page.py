"""The commands and the script of docs/export.md that are about the runtime."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest

from tests.commands import Commands
from tests.runtime.conftest import SAVED
from tests.runtime.test_commands import call

PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"


def test_the_page_about_it_is_true(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(SAVED / "transliteration", "runs/names")
    Path("test.csv").write_text("latin,native\nabca,ab\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    made = re.findall(r"^seq2see (export .* --to onnx .*)$", page, flags=re.MULTILINE)
    plain = [command for command in made if "--shortlist" not in command]
    assert len(plain) == 2
    for command in plain:
        done = Commands(capsys)(*command.split())
        assert done.code == 0, done.err
    used = re.findall(r"^seq2see-runtime (.*)$", page, flags=re.MULTILINE)
    assert {command.split()[0] for command in used} == {"predict", "look", "score", "serve"}
    for command in used:
        if not command.startswith("serve"):
            code, out, err = call(capsys, *command.split())
            assert code == 0, err
            assert out
    scripts = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    (script,) = [each for each in scripts if "import seq2see_runtime" in each]
    Path("script.py").write_text(script, encoding="utf-8")
    runpy.run_path("script.py", run_name="__main__")
    assert len(capsys.readouterr().out.splitlines()) == 2
