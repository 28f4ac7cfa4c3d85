"""Halves of surrogate pairs, which JSON can spell out and bytes that are no text become: read as U+FFFD everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import seq2see
from seq2see.errors import Notice, UserError
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models

Call = Callable[..., tuple[int, str, str]]
HALF = "one \ud800 t\udcffwo"
WHOLE = "one \ufffd t\ufffdwo"
TEXTS = ("bpe", "character", "word", "symbol", "copy")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Notices about unknown symbols are not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Notice)
        yield


@pytest.mark.parametrize("kind", [*TEXTS, "label", "set"])
def test_an_input_is_read_as_if_it_had_the_replacement_character(models: dict[str, Path], kind: str) -> None:
    model = seq2see.load(models[kind])
    found = model.predict(HALF).to_dict(looks=True)
    assert found == model.predict(WHOLE).to_dict(looks=True)
    json.dumps(found, ensure_ascii=False).encode("utf-8")
    assert model.places(HALF) == model.places(WHOLE)
    assert model.encode([HALF]) == model.encode([WHOLE])


@pytest.mark.parametrize("kind", TEXTS)
def test_an_output_that_is_given(models: dict[str, Path], kind: str) -> None:
    model = seq2see.load(models[kind])
    assert model.predict("one", prefix=HALF).to_dict() == model.predict("one", prefix=WHOLE).to_dict()
    assert model.look("one", target=HALF).to_dict() == model.look("one", target=WHOLE).to_dict()
    assert model.explain("one", target=HALF).to_dict() == model.explain("one", target=WHOLE).to_dict()
    rows = [{"source": HALF, "output": HALF}]
    whole = [{"source": WHOLE, "output": WHOLE}]
    assert model.score(rows).log_probability == model.score(whole).log_probability
    assert model.evaluate(rows).metrics == model.evaluate(whole).metrics


def test_a_label_that_is_given(models: dict[str, Path]) -> None:
    model = seq2see.load(models["label"])
    with pytest.raises(UserError, match="unknown label") as refused:
        model.look("one", target=HALF)
    str(refused.value).encode("utf-8")


def test_bytes_that_are_no_text_in_arguments(models: dict[str, Path], call: Call) -> None:
    folder, broken = models["bpe"], os.fsdecode(b"one \xff two")
    code, out, _ = call("predict", folder, broken, "--prefix", broken, "--json")
    assert (code, json.loads(out)["input"]) == (0, "one \ufffd two")
    assert call("predict", folder, broken)[0] == 0
    assert call("look", folder, broken, "--target", broken, "--out", folder.parent / "look.json")[0] == 0
    assert call("explain", folder, broken, "--target", broken)[0] == 0
    assert call("predict", models["label"], broken, "--json")[0] == 0


def test_bytes_that_are_no_text_in_a_process(models: dict[str, Path]) -> None:
    line = [sys.executable, "-m", "seq2see", "predict", str(models["bpe"]), b"one \xff two", "--json"]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout.decode("utf-8"))["input"] == "one \ufffd two"


def test_a_path_keeps_its_bytes_in_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from seq2see.cli.parser import print_json

    print_json({"input": "a\udcff.png"})
    assert json.loads(capsys.readouterr().out) == {"input": "a\udcff.png"}


def test_a_server_refuses_them(models: dict[str, Path]) -> None:
    limits, metrics = Limits(), ServerMetrics()
    app = create_app(load_models([str(models["bpe"])], limits, metrics), limits, metrics)
    bodies = {
        "predict": [
            {"input": HALF, "prefix": HALF},
            {"input": "one", "prefix": ["\ud800"]},
            {"input": HALF, "target": HALF},
            {"input": "one", "target": ["\ud800", "<eos>"]},
            {"inputs": [HALF, "one"]},
        ],
        "oracle": [{"input": "two", "oracle": {"0": [1.0]}, "prefix": HALF}],
        "explain": [{"input": HALF, "target": HALF}, {"input": HALF}],
        "score": [{"input": HALF, "output": HALF}, {"rows": [{"input": HALF, "output": HALF}]}],
    }
    client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
    for route, body in [(route, body) for route, several in bodies.items() for body in several]:
        answer = client.post(f"/api/{route}", content=json.dumps(body), headers={"content-type": "application/json"})
        assert answer.status_code == 400, (route, answer.text)
