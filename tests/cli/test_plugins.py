"""`--plugin`: a score of the user's own, by name, in every command; nothing else brings code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.cli.app import COMMANDS
from tests.commands import Run

Call = Callable[..., Run]

MODULE = '''
import torch
from torch import nn
from seq2see.attention import Score, register


@register("{name}")
class Near(Score):
    """e_j = -sharp |W q - k_j|"""

    def __init__(self, query: int, key: int, sharp: float = 1.0):
        super().__init__(query, key)
        self.W, self.sharp = nn.Linear(query, key, bias=False), sharp

    def energies(self, query, keys):
        return -self.sharp * torch.cdist(self.W(query), keys)
'''


def test_every_command_that_reads_a_recipe_or_a_model_takes_plugins(call: Call) -> None:
    without = {name for name in COMMANDS if "--plugin MODULE" not in call(name, "--help").out}
    # Each kind of figure has options of its own; samples, rendered lines and listed models are made from shipped parts.
    assert without == {"tasks", "demo", "figure", "sample", "render", "models", "get"}


def test_a_score_of_ones_own_from_training_to_looking(call: Call, here: Path, spelling: Path, pairs: Path) -> None:
    (here / "near_score.py").write_text(MODULE.format(name="near"))
    plugin = ["--plugin", "near_score"]
    trained = call("train", spelling, "--data", pairs, "--out", "run", "--set", "attention.score=near", *plugin)
    assert trained.code == 0, trained.err
    assert "look run INPUT --out look.png --plugin near_score" in trained.err
    assert "e_j = -sharp |W q - k_j|" in call("show", "run", *plugin).out
    assert call("predict", "run", "abc", *plugin).code == 0
    assert call("figure", "curve", "run", "--out", "curve.svg", *plugin).code == 0
    assert call("look", "run", "abc", "--out", "look.json", *plugin).code == 0
    assert call("evaluate", "run", "--data", pairs, "--json", *plugin).code == 0
    assert call("explain", "run", "abc", *plugin).code == 0


def test_its_own_options_are_set_in_the_recipe(call: Call, here: Path, spelling: Path) -> None:
    (here / "sharp_score.py").write_text(MODULE.format(name="sharp"))
    change = ["--set", "attention.score=sharp", "--set"]
    wrong = call("show", spelling, *change, "attention.options.sharpp=2", "--plugin", "sharp_score")
    assert (wrong.code, "did you mean 'sharp'?" in wrong.err) == (2, True)
    assert call("show", spelling, *change, "attention.options.sharp=2", "--plugin", "sharp_score").code == 0


def test_a_model_that_needs_a_plugin_says_so(call: Call, here: Path, spelling: Path) -> None:
    run = call("show", spelling, "--set", "attention.score=nearby")
    assert run.code == 2
    assert "attention.score: 'nearby'" in run.err
    assert "one that --plugin brings" in run.err


TWICE = """
import sys
sys.path = [place for place in sys.path if place]
from seq2see.cli import main
try:
    main()
except SystemExit as left:
    print("left with", left.code, flush=True)
main([*sys.argv[1:], "--plugin", "own_score"])
"""


def test_nothing_but_the_option_brings_code(here: Path, spelling: Path) -> None:
    """The installed program, whose folder is not on the path of modules."""
    (here / "own_score.py").write_text("print('imported')\n" + MODULE.format(name="own"))
    command = [sys.executable, "-P", "-c", TWICE, "show", str(spelling), "--set", "attention.score=own"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert run.returncode == 0, run.stderr
    without, brought = run.stdout.split("left with 2\n")
    assert without == ""
    assert brought.startswith("imported")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing_score", None, "no such module: missing_score.py"),
        (
            "broken_score",
            "import torch\nx = nothing\n",
            "NameError: name 'nothing' is not defined (broken_score.py, line 2)",
        ),
        ("unclosed_score", "x = (\n", "SyntaxError: "),
        ("twice_score", MODULE.format(name="dot"), "two classes want the score name 'dot'"),
        ("file_score.py", None, "(did you mean 'file_score'?)"),
        ("a b", None, "--plugin a b: "),
        ("numpy", "x = 1\n", "not numpy.py"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_the_users_to_mend(
    call: Call, here: Path, spelling: Path, name: str, text: str | None, message: str
) -> None:
    if text is not None:
        (here / f"{name}.py").write_text(text)
    run = call("show", spelling, "--plugin", name)
    assert run.code == 2
    assert message in run.err


FAULTY = {
    "energies of another shape": (
        "torch.cdist(query, keys).transpose(1, 2)",
        "energies are numbers (batch, queries, places) = ",
    ),
    "no numbers": ("torch.cdist(query, keys) > 1", " of torch.bool"),
    "nothing": ("None", "got NoneType"),
    "NaN": ("torch.cdist(query, keys) * float('nan')", "its energies are NaN or infinite"),
}
FAULT = """
import torch
from torch import nn
from seq2see.attention import Score, register


@register("faulty")
class Faulty(Score):
    def __init__(self, query: int, key: int):
        super().__init__(query, key)
        self.W = nn.Linear(query, key)

    def forward(self, query, candidates):
        query, keys = self.W(query), candidates.keys
        return {what}
"""


@pytest.mark.parametrize("fault", FAULTY)
def test_a_score_that_gives_what_it_should_not_is_named(
    call: Call, here: Path, spelling: Path, pairs: Path, fault: str
) -> None:
    what, message = FAULTY[fault]
    (here / "faulty_score.py").write_text(FAULT.format(what=what))
    brought = ["--set", "attention.score=faulty", "--plugin", "faulty_score", "--updates", "1", "--out", "run"]
    run = call("train", spelling, "--data", pairs, *brought)
    assert run.code == 2
    assert "the score 'faulty' (Faulty): " in run.err
    assert message in run.err


CLASS = """
from torch import nn
from seq2see.attention import Score, register


@register("empty")
class Empty({base}):
    def __init__(self, {arguments}):
        super().__init__()

    {method}
"""


@pytest.mark.parametrize(
    ("base", "arguments", "method", "message"),
    [
        ("Score", "query, key", "pass", "writes neither energies(query, keys) nor forward(query, candidates)"),
        ("nn.Module", "query, key", "def energies(self, query, keys): ...", "is no subclass of seq2see.attention.Sco"),
        ("Score", "size, key", "def energies(self, query, keys): ...", "constructor are query and key, their sizes"),
    ],
)
def test_a_class_that_is_no_score_is_refused_where_it_is_registered(
    call: Call, here: Path, spelling: Path, base: str, arguments: str, method: str, message: str
) -> None:
    (here / "empty_score.py").write_text(CLASS.format(base=base, arguments=arguments, method=method))
    run = call("show", spelling, "--plugin", "empty_score")
    assert run.code == 2
    assert message in run.err
    assert "empty_score.py, line 6" in run.err


def test_an_option_without_a_default_has_to_be_given(call: Call, here: Path, spelling: Path) -> None:
    (here / "asking_score.py").write_text(MODULE.format(name="asking").replace("sharp: float = 1.0", "sharp: float"))
    change = ["--set", "attention.score=asking", "--plugin", "asking_score"]
    run = call("show", spelling, *change)
    assert (run.code, "attention.options.sharp: required" in run.err) == (2, True)
    assert call("show", spelling, *change, "--set", "attention.options.sharp=2").code == 0
