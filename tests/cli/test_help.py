"""Help is there for every command, and quick: nothing heavy is imported to say it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see import __version__
from seq2see.cli.app import COMMANDS
from tests.commands import Run

Call = Callable[..., Run]

HEAVY = ["torch", "numpy", "pydantic", "yaml", "matplotlib", "rich"]


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
from seq2see.cli import main
for command in [[], *([name] for name in {list(COMMANDS)})]:
    try:
        main([*command, "--help"])
    except SystemExit as left:
        assert left.code == 0, (command, left.code)
print("heavy:", [name for name in {HEAVY} if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.stderr == ""
    assert run.stdout.splitlines()[-1] == "heavy: []"


def test_help_on_training_imports_no_server() -> None:
    code = """
import sys
from contextlib import suppress
from seq2see.cli import main
for command in ("distill", "train"):
    with suppress(SystemExit):
        main([command, "--help"])
print("server:", [name for name in sys.modules if name == "seq2see.cli.serve" or name.startswith("seq2see.studio")])
"""
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == "server: []"


def test_the_front_page_lists_every_command(call: Call) -> None:
    page = call("--help")
    assert page.code == 0
    assert page.err == ""
    assert all(f"  {name} " in page.out for name in COMMANDS)
    assert call().out == page.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(call: Call, command: str) -> None:
    page = call(command, "--help")
    assert page.code == 0
    assert page.out.startswith(f"Usage: seq2see {command}")
    assert f"Examples:\n  seq2see {command}" in page.out


def test_commands_of_one_model_do_not_speak_of_ensembles(call: Call) -> None:
    for command, ensembles in {"predict": True, "look": True, "encode": False, "explain": False}.items():
        assert ("ensemble" in call(command, "--help").out) is ensembles


@pytest.mark.parametrize(
    ("called", "on_path", "typed"),
    [
        (".venv/bin/seq2see", False, ".venv/bin/seq2see"),
        (".venv/bin/seq2see", True, "seq2see"),
        ("/x/seq2see/__main__.py", False, f"{sys.executable} -m seq2see"),
        ("/x/seq2see/__main__.py", True, "seq2see"),
        ("/usr/bin/pytest", False, "seq2see"),
    ],
)
def test_hints_can_be_typed(
    call: Call, called: str, on_path: bool, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if on_path:
        (tmp_path / "seq2see").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [called])
    assert f"Usage: {typed} COMMAND" in call("--help").out
    page = call("score", "--help").out
    assert page.startswith(f"Usage: {typed} score")
    assert f"Examples:\n  {typed} score runs/" in page
    assert f"{typed} score --help" in call("score").err


def test_version(call: Call) -> None:
    assert call("--version").out == f"seq2see {__version__}\n"


def test_tasks_are_listed_in_one_column(call: Call) -> None:
    from seq2see.recipe import shipped

    run = call("tasks")
    column = run.lines[0].index(shipped()[run.lines[0].split()[0]])
    assert [line[:column].strip() for line in run.lines] == list(shipped())
    assert [line[column:] for line in run.lines] == list(shipped().values())
