"""Looks of a sequence at itself, in a Transformer or a recurrent encoder that looks back: in files and pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from seq2see import api
from seq2see.errors import Notice
from tests.cli.conftest import SMALL
from tests.commands import Run

Call = Callable[..., Run]
LAYERS: dict[str, Any] = {"kind": "transformer", "size": 12, "layers": 2, "heads": 3, "feedforward": 8}
EMBEDDED: dict[str, Any] = {"embedding": {"size": 12}}
OUTPUT: dict[str, Any] = {"column": "spelled", "tokens": "symbol"}


def trained(home: Path, table: Path, name: str, **settings: Any) -> Path:
    path = home / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"task": name, **settings, "training": SMALL["training"]}), encoding="utf-8")
    api.train(path, table, out=home / name, listeners=[])
    return home / name


@pytest.fixture(scope="module")
def transformer(home: Path, pairs: Path) -> Path:
    return trained(
        home,
        pairs,
        "inside",
        inputs={"source": {"column": "word", "tokens": "character"}},
        output=OUTPUT,
        encoder=LAYERS | EMBEDDED,
        decoder=LAYERS | EMBEDDED,
        attention={"score": "scaled-dot"},
        search={"max_length": 6},
    )


@pytest.fixture(scope="module")
def looking_back(home: Path, pairs: Path) -> Path:
    return trained(
        home,
        pairs,
        "back",
        inputs={"source": {"column": "word", "tokens": "character"}},
        output=OUTPUT,
        encoder={"size": 8, "self_attention": "general"},
        decoder={"size": 8},
        attention="none",
    )


@pytest.fixture(scope="module")
def storyteller(home: Path, pairs: Path) -> Path:
    output = {"column": "word", "tokens": "character"}
    return trained(home, pairs, "story", output=output, decoder=LAYERS | EMBEDDED, search={"max_length": 8})


@pytest.mark.parametrize("beam", [1, 3])
def test_every_map_is_in_the_numbers(call: Call, transformer: Path, tmp_path: Path, beam: int) -> None:
    run = call("look", transformer, "abcd", "--beam", beam, "--out", tmp_path / "look.json")
    assert run.code == 0
    assert "--map all" not in run.err
    looks = json.loads((tmp_path / "look.json").read_text("utf-8"))
    own = [f"{part}.self-{layer}" for part in ("source", "output") for layer in (1, 2)]
    assert list(looks["maps"]) == ["source", "source.layer-1", *own]
    written = ["<sos>", *looks["outputs"][:-1]]
    for name, symbols in zip(own, [["a", "b", "c", "d"]] * 2 + [written] * 2, strict=True):
        one = looks["maps"][name]
        assert one["inputs"] == one["rows"] == symbols
        assert np.shape(one["heads"]) == (3, len(symbols), len(symbols))
        np.testing.assert_allclose(np.sum(one["weights"], -1), 1, atol=1e-4)


@pytest.mark.parametrize("name", ["source.self-2", "output.self-1"])
@pytest.mark.parametrize("suffix", [".png", ".svg", ".html"])
def test_one_map_can_be_asked_for(call: Call, transformer: Path, tmp_path: Path, name: str, suffix: str) -> None:
    path = tmp_path / f"look{suffix}"
    run = call("look", transformer, "abcd", "--target", "A B", "--map", name, "--out", path)
    assert (run.code, run.out) == (0, "A B\n")
    if suffix == ".png":
        assert path.stat().st_size > 1000
        return
    text = path.read_text("utf-8")
    for shown in (
        name,
        "looked at",
        "looking",
        "head 1",
        "head 3",
        "d" if name.startswith("source") else "&lt;sos&gt;",
    ):
        assert shown in text


def test_a_picture_says_what_else_there_is(call: Call, transformer: Path, tmp_path: Path) -> None:
    run = call("look", transformer, "abcd", "--out", tmp_path / "look.svg")
    further = "source.layer-1, source.self-1, source.self-2, output.self-1, output.self-2"
    assert run.err.endswith(f": {further}\n")
    assert "source.self-1" not in (tmp_path / "look.svg").read_text("utf-8")
    run = call("look", transformer, "abcd", "--map", "all", "--out", tmp_path / "all.svg")
    assert "--map all" not in run.err
    assert all(name in (tmp_path / "all.svg").read_text("utf-8") for name in ("source.self-1", "output.self-2"))
    run = call("look", transformer, "abcd", "--map", "source.self-3", "--out", tmp_path / "none.svg")
    assert run.code == 2
    assert "unknown map 'source.self-3' (did you mean 'source.self-2'" in run.err


def test_a_recurrent_encoder_that_looks_back_needs_no_other_attention(
    call: Call, looking_back: Path, tmp_path: Path
) -> None:
    assert call("look", looking_back, "abcd", "--out", tmp_path / "look.png").code == 0
    call("look", looking_back, "abcd", "--out", tmp_path / "look.json")
    looks = json.loads((tmp_path / "look.json").read_text("utf-8"))
    assert list(looks["maps"]) == ["source.self-1-forwards", "source.self-1-backwards"]
    forwards, backwards = (np.array(one["weights"]) for one in looks["maps"].values())
    np.testing.assert_allclose(forwards.sum(-1), [0, 1, 1, 1], atol=1e-5)
    np.testing.assert_allclose(backwards.sum(-1), [1, 1, 1, 0], atol=1e-5)
    with pytest.warns(Notice, match="replace_unknown"):
        said = api.load(looking_back).predict("abcd", maps=True, replace_unknown=True)  # no input is most looked at
    assert said.text == api.load(looking_back).predict("abcd").text


def test_a_language_model_without_a_recurrence_looks_at_what_it_writes(
    call: Call, storyteller: Path, tmp_path: Path
) -> None:
    path = tmp_path / "look.json"
    assert call("look", storyteller, "--target", "abcd", "--out", path).code == 0
    looks = json.loads(path.read_text("utf-8"))
    assert looks["inputs"] == ["<sos>", "a", "b", "c", "d"]
    assert list(looks["maps"]) == ["output.self-1", "output.self-2"]
    run = call("look", storyteller, "abcd", "--out", path)
    assert (run.code, "--target TEXT" in run.err) == (2, True)
    assert call("look", storyteller, "--out", tmp_path / "own.png").code == 0
    short = call("look", storyteller, "--max-length", 3, "--out", path)
    assert (short.code, len(json.loads(path.read_text("utf-8"))["outputs"]) <= 3) == (0, True), short.err
    run = call("look", storyteller, "--max-length", 3, "--target", "abcd", "--out", path)
    assert (run.code, "--max-length" in run.err) == (2, True)
    run = call("look", storyteller, "--target", "abcd" * 20, "--out", tmp_path / "long.svg")
    assert "first 48 of 81 symbols" in run.err
    assert ">looked at, the first 48 of 81 →<" in (tmp_path / "long.svg").read_text("utf-8")
