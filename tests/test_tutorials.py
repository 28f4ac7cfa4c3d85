"""The tutorials are true: their files are written as they stand, their commands and snippets run in their order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from seq2see.attention import scores
from tests.commands import Commands

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
QUICK = {"--updates": "2", "--rows": "4", "--seeds": "1"}
"""What a reader has minutes for and a test has not."""


def words_of(line: str) -> list[str]:
    """The words of a command as it is typed, but quick."""
    words = shlex.split(line)
    for option, value in QUICK.items():
        if option in words:
            words[words.index(option) + 1] = value
    for number, word in enumerate(words):
        if words[number - 1] == "--vary":
            words[number] = ",".join(word.split(",")[:2])  # a comparison of two is enough here
    return words


def follow(tutorial: str, folder: Path, call: Commands) -> dict[str, str]:
    """Write its files, run its commands and snippets; what each command printed, by what it does."""
    printed: dict[str, str] = {}
    for number, (language, block) in enumerate(FENCED.findall((TUTORIALS / tutorial).read_text("utf-8"))):
        named = re.match(r"# ([\w.-]+\.\w+)\n", block)
        if named:
            (folder / named[1]).write_text(block, encoding="utf-8")
        elif language == "python":
            (folder / "snippet.py").write_text(re.sub(r"updates=\d+", "updates=2", block), encoding="utf-8")
            printed[f"snippet {number}"] = call.script(folder / "snippet.py").out
        elif block.startswith(("seq2see ", "python ")):
            for line in block.splitlines():
                program, *words = words_of(line)
                if program == "python":
                    call.script(folder / words[0])
                    continue
                assert program == "seq2see"
                done = call(*words)
                assert done.code == 0, f"{line}\n{done.err}"
                printed[words[0]] = done.out
    return printed


def test_a_score_of_your_own(here: Path, call: Commands) -> None:
    name = "a-score-of-your-own.md"
    text = (TUTORIALS / name).read_text("utf-8")
    assert all(f"{score}," in text for score in scores.settings), "it is compared with all the others"
    score = next(block for _, block in FENCED.findall(text) if block.startswith("# my_scores.py"))
    body = score[score.index("@register") :].strip().splitlines()
    assert len([line for line in body if line.strip()]) <= 10

    printed = follow(name, here, call)

    assert "e_j = -sharp |W q - k_j|^2" in printed["show"]
    assert (here / "gabe.png").stat().st_size > 1000
    assert (here / "faithful.png").stat().st_size > 1000
    assert (here / "runs/scores/comparison.svg").is_file()
    assert re.search(r"^│ score distance, sharp 1 ", printed["compare"], flags=re.MULTILINE)
    (verdict,) = [said for what, said in printed.items() if what.startswith("snippet")]
    assert verdict.startswith("best: ")


def test_an_encoder_of_your_own(here: Path, call: Commands) -> None:
    printed = follow("an-encoder-of-your-own.md", here, call)

    assert "h_j = tanh(W [e(x_{j-r}); ..; e(x_{j+r})] + b), r = reach; places h_j of 32 numbers" in printed["show"]
    assert (here / "bade.png").stat().st_size > 1000
    assert re.search(r"^│ encoder.kind window, decoder.kind forgetful ", printed["compare"], flags=re.MULTILINE)
    assert (here / "runs/reach/comparison.svg").is_file()
    assert "kind: forgetful" in (here / "runs/python/recipe.yaml").read_text("utf-8")
