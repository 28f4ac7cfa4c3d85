"""The tutorials are true: their files are written as they stand, their commands and snippets run in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from seq2see.attention import scores

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
QUICK = {"--updates": "2", "--rows": "4", "--seeds": "1"}
"""What a reader has minutes for and a test has not."""


def run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(list(command), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return done.stdout


def words_of(line: str) -> list[str]:
    """A command as it is typed, with this Python for .venv's, and quick."""
    words = shlex.split(line)
    program = {".venv/bin/python": [sys.executable], ".venv/bin/seq2see": [sys.executable, "-m", "seq2see"]}[words[0]]
    for option, value in QUICK.items():
        if option in words:
            words[words.index(option) + 1] = value
    for number, word in enumerate(words):
        if words[number - 1] == "--vary":
            words[number] = ",".join(word.split(",")[:2])  # a comparison of two is enough here
    return [*program, *words[1:]]


def follow(tutorial: str, folder: Path) -> dict[str, str]:
    """Write its files, run its commands and snippets; what each command printed, by what it does."""
    printed: dict[str, str] = {}
    for number, (language, block) in enumerate(FENCED.findall((TUTORIALS / tutorial).read_text("utf-8"))):
        named = re.match(r"# ([\w.-]+\.\w+)\n", block)
        if named:
            (folder / named[1]).write_text(block, encoding="utf-8")
        elif language == "python":
            (folder / "snippet.py").write_text(re.sub(r"updates=\d+", "updates=2", block), encoding="utf-8")
            printed[f"snippet {number}"] = run([sys.executable, "snippet.py"], folder)
        elif block.startswith(".venv/"):
            for line in block.splitlines():
                command = words_of(line)
                printed[line.split()[1]] = run(command, folder)
    return printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorial")


def test_a_score_of_your_own(folder: Path) -> None:
    name = "a-score-of-your-own.md"
    text = (TUTORIALS / name).read_text("utf-8")
    assert all(f"{score}," in text for score in scores.settings), "it is compared with all the others"
    score = next(block for _, block in FENCED.findall(text) if block.startswith("# my_scores.py"))
    body = score[score.index("@register") :].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 10

    printed = follow(name, folder)

    assert "e_j = -sharp |W q - k_j|^2" in printed["show"]
    assert (folder / "gabe.png").stat().st_size > 1000
    assert (folder / "faithful.png").stat().st_size > 1000
    assert (folder / "runs/scores/comparison.svg").is_file()
    assert re.search(r"^│ score distance, sharp 1 ", printed["compare"], flags=re.MULTILINE)
    (verdict,) = [said for what, said in printed.items() if what.startswith("snippet")]
    assert verdict.startswith("best: ")


def test_an_encoder_of_your_own(tmp_path: Path) -> None:
    printed = follow("an-encoder-of-your-own.md", tmp_path)

    assert "h_j = tanh(W [e(x_{j-r}); ..; e(x_{j+r})] + b), r = reach; places h_j of 32 numbers" in printed["show"]
    assert (tmp_path / "bade.png").stat().st_size > 1000
    assert re.search(r"^│ encoder.kind window, decoder.kind forgetful ", printed["compare"], flags=re.MULTILINE)
    assert (tmp_path / "runs/reach/comparison.svg").is_file()
    assert "kind: forgetful" in (tmp_path / "runs/python/recipe.yaml").read_text("utf-8")
