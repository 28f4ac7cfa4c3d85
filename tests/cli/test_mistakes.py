"""The likeliest mistakes: each a message that names what is wrong and what would be right, and exit 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import Run

Call = Callable[..., Run]


def refused(run: Run, *pieces: str) -> None:
    assert run.code == 2, run
    assert run.out == ""
    assert run.err.startswith("error: ")
    assert "Traceback" not in run.err
    for piece in pieces:
        assert piece in run.err, run.err


@pytest.mark.parametrize(
    ("arguments", "pieces"),
    [
        (["trian"], ["unknown command 'trian'", "did you mean 'train'", "predict"]),
        (["--verbose"], ["unknown option '--verbose'"]),
        (["predict"], ["MODEL"]),
        (["predict", "MODEL", "abcd", "--bem", "3"], ["unknown option '--bem'", "did you mean '--beam'"]),
        (["predict", "MODEL", "abcd", "--beam", "two"], ["--beam", "whole number", "'two'"]),
        (["predict", "MODEL", "abcd", "--beam", "0"], ["beam must be a number of at least 1, got 0"]),
        (["predict", "MODEL", "abcd", "--beam", "2", "--n-best", "3"], ["n_best 3", "beam 2"]),
        (["predict", "MODEL", "abcd", "--sample", "--temperature", "1e-40"], ["from 0.001 to 1,000, got 1e-40"]),
        (["predict", "MODEL", "abcd", "--temperature", "0.5"], ["temperature 0.5", "set sample"]),
        (["predict", "MODEL", "abcd", "--seed", "3"], ["--seed", "--sample"]),
        (["predict", "MODEL", ""], ["INPUT is empty"]),
        (["predict", "MODEL", "abcd", "--file", "x.tsv"], ["INPUT", "--file"]),
        (["predict", "MODEL", "abcd", "--to", "x.tsv"], ["--to", "--file"]),
        (["predict", "MODEL", "abcd", "--overwrite"], ["--overwrite", "--to"]),
        (["predict", "MODEL", "--file", "PAIRS", "--to", "PAIRS"], ["pairs.tsv", "the table of --file", "--overwrite"]),
        (["predict", "MODEL+", "abcd"], ["speller+:", "FOLDER+FOLDER"]),
        (["predict", "MODEL", "abcd", "--columns", "word"], ["--columns", "--file"]),
        (["predict", "MODEL", "--file", "missing.tsv"], ["missing.tsv", "no such file"]),
        (["predict", "MODEL", "--file", "PAIRS", "--columns", "wrod"], ["no column 'wrod'", "did you mean 'word'"]),
        (["predict", "MODEL", "--file", "PAIRS", "--to", "no/such/o.tsv"], ["no/such", "does not exist"]),
        (["predict", "MODEL", "abcd", "--looks", "x.gif"], ["--looks x.gif", "'.gif'", ".png"]),
        (["predict", "MODEL", "abcd", "feed", "--looks", "x.png"], ["--looks x.png", "one input, got 2", "folder"]),
        (["predict", "MODEL+OTHER", "abcd"], ["same output vocabulary"]),
        (["predict", "JUDGE", "ab"], ["2 inputs (first, second), got 1", "tab"]),
        (
            ["predict", "JUDGE", "ab\tba", "--beam", "3"],
            ["--beam", "a label is not searched for", "--n-best"],
        ),
        (["predict", "BABBLER", "abcd"], ["language model", "INPUT", "--prefix"]),
        (["evaluate", "MODEL"], ["--data"]),
        (
            ["evaluate", "MODEL", "--data", "PAIRS", "--metrics", "exakt"],
            ["--metrics: ", "did you mean 'exact'"],
        ),
        (["evaluate", "MODEL", "--data", "PAIRS", "--metrics", "accuracy"], ["--metrics: ", "'accuracy'", "allowed:"]),
        (["evaluate", "MODEL", "--data", "PAIRS", "--columns", "word,spelt"], ["'spelt'", "did you mean 'spelled'"]),
        (["evaluate", "MODEL", "--data", "PAIRS", "--beam", "0"], ["beam", "at least 1"]),
        (["evaluate", "JUDGE", "--data", "VERDICTS", "--beam", "3"], ["a label is not searched for"]),
        (["evaluate", "BABBLER", "--data", "PAIRS", "--beam", "3"], ["perplexity"]),
        (["encode", "MODEL+MODEL", "abcd"], ["single model"]),
        (["score", "MODEL", "--data", "pairz.tsv"], ["pairz.tsv", "no such file"]),
        (["look", "MODEL", "abcd"], ["--out"]),
        (["look", "MODEL", "--out", "x.png"], ["INPUT is missing"]),
        (["look", "BABBLER", "--out", "x.png"], ["language model", "explain", "score", "--data"]),
        (["look", "BABBLER", "abcd", "--out", "x.png"], ["language model"]),
        (["look", "MODEL", "abcd", "--out", "x.jpg"], ["'.jpg'", ".png"]),
        (["look", "MODEL", "abcd", "--out", "x.png", "--map", "sauce"], ["sauce", "source"]),
        (["look", "MODEL", "abcd", "--out", "x.png", "--target", "A", "--beam", "2"], ["--beam", "--target"]),
        (["look", "BLIND", "abcd", "--out", "x.png"], ["without attention"]),
        (["look", "JUDGE", "ab\tba", "--out", "x.png", "--target", "alik"], ["unknown label 'alik'", "'alike'"]),
        (["explain", "MODEL"], ["INPUT is missing"]),
        (["explain", "MODEL", "abcd", "--step", "99"], ["step 99", "counted from 0"]),
        (["explain", "MODEL", "abcd", "--step", "-1"], ["step -1", "counted from 0"]),
        (["explain", "MODEL+MODEL", "abcd"], ["single model"]),
        (["encode", "MODEL", "abcd", "--neighbours", "1"], ["at least two"]),
        (["encode", "MODEL", "abcd", "feed", "--neighbours", "0"], ["at least 1, got 0"]),
        (["encode", "BABBLER"], ["language model"]),
        (["show", "translaton"], ["unknown recipe 'translaton'", "did you mean 'translation'"]),
        (["show", "MODEL", "--set", "decoder.size=3"], ["--set", "trained model"]),
        (["train", "SPELLING"], ["--data"]),
        (["train", "SPELLING", "--data", "PAIRS", "--set", "decoder.sise=3"], ["decoder.sise", "size"]),
        (["train", "SPELLING", "--data", "PAIRS", "--set", "decoder"], ["KEY=VALUE"]),
        (["train", "SPELLING", "--data", "PAIRS", "--epochs", "0"], ["--epochs must be above 0"]),
        (["train", "SPELLING", "--data", "PAIRS", "--minutes", "nan"], ["--minutes must be above 0"]),
        (["train", "SPELLING", "--data", "PAIRS", "--columns", "word,spelt", "--out", "NEW"], ["no column 'spelt'"]),
        (["train", "SPELLING", "--data", "PAIRS", "--device", "abacus", "--out", "NEW"], ["device", "abacus"]),
        (["train", "SPELLING", "--data", "PAIRS", "--out", "PAIRS"], ["a file; a run needs a folder"]),
        (["train", "SPELLING", "--resume", "--out", "NEW"], ["nothing to resume"]),
        (["train", "SPELLING", "--resume", "--from", "MODEL"], ["--from", "--resume"]),
        (["train", "MODEL", "--resume", "--data", "VERDICTS"], ["--data", "started with", "pairs.tsv", "verdicts.tsv"]),
        (["train", "MODEL", "--resume", "--set", "decoder.size=20"], ["decoder.size", "started with 16, got 20"]),
        (
            ["train", "SPELLING", "--data", "PAIRS", "--out", "NEW", "--set", "encoder.size=999999"],
            ["too large for this machine", "encoder.size 999,999", " GB"],
        ),
        (["demo", "--words", "two words"], ["--words", "letters"]),
        (["demo", "--minutes", "0"], ["--minutes"]),
        (["demo", "--out", "MODEL"], ["speller", "not a demo"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes(
    call: Call,
    arguments: list[str],
    pieces: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEQ2SEE_DATA", raising=False)
    places = {"NEW": str(tmp_path / "new")}
    fixtures = {"MODEL": "speller", "OTHER": "other", "JUDGE": "judge", "BABBLER": "babbler", "BLIND": "blind"}
    fixtures |= {"PAIRS": "pairs", "VERDICTS": "verdicts", "SPELLING": "spelling"}

    def filled(argument: str) -> str:
        parts = argument.split("+")
        for part in parts:
            if part in fixtures:
                places[part] = str(request.getfixturevalue(fixtures[part]))
        return "+".join(places.get(part, part) for part in parts)

    refused(call(*map(filled, arguments)), *pieces)
    assert not (tmp_path / "new").exists()


def test_nothing_on_standard_input(call: Call, stdin: Callable[[str], None], speller: Path) -> None:
    stdin("")
    refused(call("predict", speller), "standard input is empty")


def test_lines_with_the_wrong_number_of_inputs(call: Call, stdin: Callable[[str], None], judge: Path) -> None:
    stdin("ab\tba\nab\n")
    refused(call("predict", judge), "standard input, line 2", "first, second", "got 1")


def test_a_model_that_is_not_whole(call: Call, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("task: x\n")
    refused(call("evaluate", tmp_path, "--data", "x.tsv"), "model.safetensors is missing")


def test_unreadable_input(call: Call, tmp_path: Path, speller: Path) -> None:
    table = tmp_path / "broken.tsv"
    table.write_bytes(b"word\nabcd\n\xff\xfe\n")
    refused(call("predict", speller, "--file", table), "broken.tsv, line 3", "utf-8")
