"""`figure`: every kind is drawn in every format, holds the right numbers, and says what is wrong."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from seq2see import api
from seq2see.cli.figure import KINDS, named_paths
from seq2see.errors import UserError
from tests.cli.conftest import recipe
from tests.commands import Run

Call = Callable[..., Run]
FORMATS = (".png", ".svg", ".html", ".json")


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of one to eight letters, spelled."""
    draw = random.Random(5)
    words = {"".join(draw.choice("abcdef") for _ in range(1 + n % 8)) for n in range(60)}
    path = tmp_path_factory.mktemp("uneven") / "uneven.tsv"
    path.write_text(
        "word\tspelled\n" + "".join(f"{word}\t{' '.join(word.upper())}\n" for word in sorted(words)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_help_with_an_example(call: Call, kind: str) -> None:
    page = call("figure", kind, "--help")
    assert (page.code, page.out.startswith(f"Usage: seq2see figure {kind}")) == (0, True)
    assert f"Examples:\n  seq2see figure {kind}" in page.out
    assert f"  {kind} " in call("figure", "--help").out


@pytest.mark.parametrize("suffix", FORMATS)
def test_lengths_in_every_format(call: Call, speller: Path, blind: Path, uneven: Path, here: Path, suffix: str) -> None:
    out = here / f"lengths{suffix}"
    how = ("--data", uneven, "--metric", "cer", "--edges", "3,6", "--out", out, "--json")
    run = call("figure", "lengths", f"with={speller}", f"without={blind}", *how)
    assert run.code == 0, run.err
    told = json.loads(run.out)
    assert [(row["model"], row["shortest"], row["longest"]) for row in told["rows"]] == [
        (name, *span) for name in ("with", "without") for span in ((1, 2), (3, 5), (6, 8))
    ]
    assert all(row["low"] <= row["value"] <= row["high"] for row in told["rows"])
    assert "ahead" not in told["rows"][0]
    assert told["rows"][3]["ahead"] == pytest.approx(told["rows"][3]["value"] - told["rows"][0]["value"])
    assert out.stat().st_size > 200
    if suffix == ".json":
        assert json.loads(out.read_text("utf-8")) == told


def test_lengths_agree_with_evaluate(call: Call, speller: Path, uneven: Path, here: Path) -> None:
    told = call("figure", "lengths", speller, "--data", uneven, "--bins", 1, "--out", here / "x.json", "--json")
    measured = json.loads(call("evaluate", speller, "--data", uneven, "--json").out)
    row = json.loads(told.out)["rows"][0]
    assert (json.loads(told.out)["metric"], row["rows"]) == ("exact", measured["inputs"])
    assert row["value"] == pytest.approx(measured["metrics"]["exact"])
    asked = ("--metric", "perplexity", "--out", here / "y.json", "--json", "--bins", 1)
    perplexity = call("figure", "lengths", speller, "--data", uneven, *asked)
    assert json.loads(perplexity.out)["rows"][0]["value"] == pytest.approx(measured["metrics"]["perplexity"], rel=1e-4)


def test_positions(call: Call, home: Path, uneven: Path, here: Path) -> None:
    letters = {"column": "word", "tokens": "character"}
    copying = recipe(home, "copying", inputs={"source": letters}, output=letters)
    api.train(copying, uneven, out=home / "copier", updates=30, listeners=[])
    how = ("--data", uneven, "--bins", 2, "--out", here / "p.html", "--json")
    run = call("figure", "positions", home / "copier", *how)
    rows = json.loads(run.out)["rows"]
    assert any(row["recall"] > 0 for row in rows)
    assert [(row["start"], row["end"]) for row in rows] == [(0.0, 0.5), (0.5, 1.0)]
    assert all(0 <= row["low"] <= row["recall"] <= row["high"] <= 1 for row in rows)
    page = (here / "p.html").read_text("utf-8")
    assert "data:image/svg+xml;base64," in page
    assert "http" not in page.replace('http-equiv="Content', "")
    assert "prefers-color-scheme: dark" in page


def test_a_map_has_the_vectors_in_it(call: Call, speller: Path, uneven: Path, here: Path) -> None:
    run = call("figure", "map", speller, "--file", uneven, "--neighbours", 2, "--out", here / "map.svg", "--json")
    assert run.code == 0, run.err
    told = json.loads(run.out)
    vectors = np.array(api.load(speller).encode([row["input"] for row in told["rows"]]))
    centred = vectors - vectors.mean(0)
    points = np.array([(row["x"], row["y"]) for row in told["rows"]])
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    assert np.square(points).sum(0) == pytest.approx(values[:2], rel=1e-4)
    assert told["variance"] == pytest.approx((values / values.sum())[:2], rel=1e-4)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit @ unit.T - 2 * np.eye(len(unit))
    assert told["rows"][0]["neighbours"][0] == told["rows"][int(cosines[0].argmax())]["input"]
    assert (here / "map.svg").read_text("utf-8").count("<text") > 10


def test_a_map_by_groups_leaves_repetitions_out(call: Call, speller: Path, here: Path) -> None:
    table = here / "by.tsv"
    table.write_text("word\tkind\nab\tx\ncd\ty\nef\tx\nab\tx\n", encoding="utf-8")
    run = call("figure", "map", speller, "--file", table, "--by", "kind", "--out", here / "m.png", "--columns", "word")
    assert "1 row with a duplicate input" in run.err
    assert [line.split("\t")[3] for line in run.lines] == ["group", "x", "y", "x"]


def test_small_groups_of_many_are_drawn_as_one(call: Call, speller: Path, here: Path) -> None:
    table = here / "by.tsv"
    rows = [f"{first}{second}\t{first}\n" for first in "abcdefgh" for second in ("bc" if first < "f" else "b")]
    table.write_text("word\tkind\n" + "".join(rows), encoding="utf-8")
    run = call("figure", "map", speller, "--file", table, "--by", "kind", "--out", here / "m.png", "--columns", "word")
    assert "drawn as 'others': f, g, h" in run.err
    assert {line.split("\t")[3] for line in run.lines[1:]} == {*"abcde", "others"}


def test_curves_are_what_the_runs_wrote(call: Call, speller: Path, blind: Path, here: Path) -> None:
    run = call("figure", "curve", f"a={speller}", f"b={blind}", "--out", here / "c.png", "--json")
    told = json.loads(run.out)
    written = [json.loads(line) for line in (speller / "metrics.jsonl").read_text("utf-8").splitlines()]
    wanted = [(line["update"], line["dev"]["exact"]) for line in written if not line.get("averaged")]
    assert [(row["update"], row["dev.exact"]) for row in told["rows"] if row["run"] == "a"] == wanted
    assert {row["run"] for row in told["rows"]} == {"a", "b"}
    assert told["title"] == "exact on dev during training"
    drawn = here / "c.svg"
    call("figure", "curve", speller, "--out", drawn)
    assert ">exact on dev<" in drawn.read_text("utf-8")
    seconds = call("figure", "curve", speller, "--measure", "loss", "--against", "seconds", "--out", here / "d.json")
    assert seconds.lines[0] == "run\tseconds\tloss"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "allowed: lengths"),
        (["length"], "unknown figure 'length' (did you mean 'lengths'?)"),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.pgn"], "'.pgn' (did you mean '.png'?)"),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.png", "--theme", "dim"], "unknown theme 'dim'"),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.json", "--theme", "dark"], "has no colours"),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.png", "--metric", "accuracy"], "--metric: metric"),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.png", "--edges", "9,3"], "must rise: [9, 3]"),
        (
            ["lengths", "{speller}", "--data", "{pairs}", "--out", "x.png", "--edges", "a"],
            "--edges",
        ),
        (["lengths", "{speller}", "--data", "{pairs}", "--out", "x.png", "--bins", "0"], "--bins must be 1 or more"),
        (["lengths", "{babbler}", "--data", "{pairs}", "--out", "x.png"], "this model reads nothing"),
        (["lengths", "{speller}", "{speller}", "--data", "{pairs}", "--out", "x.png"], "NAME=MODEL"),
        (["map", "{speller}", "--file", "{pairs}", "--out", "x.png", "--by", "spelt"], "did you mean 'spelled'?"),
        (["map", "{babbler}", "--file", "{pairs}", "--out", "x.png"], "no input to encode"),
        (["map", "{speller}", "--file", "{pairs}", "--out", "x.png", "--rows", "2"], "got 2"),
        (["curve", "{pairs}", "--out", "x.png"], "metrics.jsonl"),
        (["curve", "{speller}", "--out", "x.png", "--against", "updates"], "did you mean 'update'?"),
        (["curve", "{speller}", "--out", "x.png", "--measure", "dev.blue"], "numbers found: averaged"),
    ],
)
def test_what_is_wrong_is_said(
    call: Call, speller: Path, babbler: Path, pairs: Path, here: Path, arguments: list[str], said: str
) -> None:
    given = [one.format(speller=speller, babbler=babbler, pairs=pairs) for one in arguments]
    run = call("figure", *given)
    assert (run.code, said in run.err) == (2, True), run.err
    assert not list(here.iterdir())


def test_names_of_models() -> None:
    assert named_paths(["runs/a/x", "runs/b/x", "y"]) == {"runs/a/x": "runs/a/x", "runs/b/x": "runs/b/x", "y": "y"}
    with pytest.raises(UserError, match="'a'"):
        named_paths(["a=runs/x", "a=runs/y"])
