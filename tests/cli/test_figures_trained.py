"""Figures that train models themselves, or ask an autoencoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from seq2see import api
from seq2see.modalities.vector import written
from tests.commands import Run

Call = Callable[..., Run]
FLAT = {
    "task": "flat",
    "inputs": {"x": {"kind": "vector"}},
    "output": {"kind": "vector", "column": "x"},
    "encoder": {"kind": "dense", "hidden": [], "size": 2},
    "training": {"learning_rate": 0.02, "epochs": 0, "updates": 20},
}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "numbers.tsv"
    rows = np.random.default_rng(1).random((60, 6))
    path.write_text("x\n" + "".join(f"{written(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def flat(numbers: Path) -> Path:
    path = numbers.parent / "flat.yaml"
    path.write_text(yaml.safe_dump(FLAT), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def autoencoder(flat: Path, numbers: Path) -> Path:
    api.train(flat, numbers, out=numbers.parent / "run", listeners=[])
    return numbers.parent / "run"


@pytest.mark.parametrize(("suffix", "options"), [(".png", ["--shape", "2x3"]), (".svg", []), (".html", [])])
def test_pca(call: Call, autoencoder: Path, numbers: Path, here: Path, suffix: str, options: list[str]) -> None:
    out = here / f"pca{suffix}"
    run = call("figure", "pca", autoencoder, "--data", numbers, "--out", out, "--json", *options)
    assert run.code == 0, run.err
    told = json.loads(run.out)
    errors = {row["model"]: row["mse"] for row in told["rows"]}
    assert errors["PCA"] < errors["autoencoder"]
    assert (told["size"], len(told["angles"]), told["measured"]) == (2, 2, 60)
    measured = json.loads(call("evaluate", autoencoder, "--data", numbers, "--json").out)["metrics"]["mse"]
    assert errors["autoencoder"] == pytest.approx(measured, rel=1e-4)
    assert out.stat().st_size > 1000


def test_code_size(call: Call, flat: Path, numbers: Path, here: Path) -> None:
    how = ("--data", numbers, "--sizes", "4,1", "--updates", 3, "--runs", here / "runs", "--json")
    run = call("figure", "code-size", flat, *how, "--vary", "encoder.hidden=[],[3]", "--out", here / "sizes.png")
    assert run.code == 0, run.err
    told = json.loads(run.out)
    assert told["sizes"] == [1, 4]
    names = {row["model"] for row in told["rows"]}
    assert len(names) == 3
    assert "PCA" in names
    assert (here / "sizes.png").stat().st_size > 1000


def test_gradients(call: Call, spelling: Path, pairs: Path, here: Path) -> None:
    how = ("--data", pairs, "--updates", 2, "--rows", 8, "--set", "attention=none", "--out", here / "g.png", "--json")
    run = call("figure", "gradients", spelling, *how)
    assert run.code == 0, run.err
    rows = json.loads(run.out)["rows"]
    assert {row["cell"] for row in rows} == {"rnn", "gru", "lstm"}
    assert {row["back"] for row in rows if "back" in row} == {0, 1, 2, 3}
    assert all(row["seen"] <= row["clip"] * 1.001 for row in rows if "seen" in row and row["clip"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pca", "{run}", "--data", "{numbers}", "--shape", "4x4"], "--shape 4x4: a row has 6 numbers"),
        (["pca", "{run}", "--data", "{numbers}", "--shape", "4"], "--shape"),
        (["pca", "{run}", "--data", "{numbers}", "--examples", "0"], "--examples must be 1 or more"),
        (["pca", "{speller}", "--data", "{pairs}"], "PCA needs numbers"),
        (
            ["code-size", "{flat}", "--data", "{numbers}", "--sizes", "2,x"],
            "got 'x'",
        ),
        (["code-size", "{flat}", "--data", "{numbers}", "--sizes", "2,2"], "--sizes: "),
        (["code-size", "{spelling}", "--data", "{pairs}", "--sizes", "2"], "PCA needs numbers"),
        (["gradients", "{flat}", "--data", "{numbers}"], "this recipe reads none"),
        (["gradients", "{spelling}", "--data", "{pairs}", "--updates", "0"], "--updates must be 1 or more"),
    ],
)
def test_what_is_wrong_is_said(
    call: Call,
    autoencoder: Path,
    flat: Path,
    numbers: Path,
    speller: Path,
    spelling: Path,
    pairs: Path,
    here: Path,
    arguments: list[str],
    said: str,
) -> None:
    known = {"run": autoencoder, "flat": flat, "numbers": numbers, "speller": speller}
    given = [one.format(**known, spelling=spelling, pairs=pairs) for one in arguments]
    run = call("figure", *given, "--out", here / "x.png")
    assert (run.code, said in run.err) == (2, True), run.err
    assert not (here / "x.png").exists()
