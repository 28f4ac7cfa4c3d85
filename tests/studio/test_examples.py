"""Examples of a model that was moved: what is gone is not offered, and nothing else of the machine can be had."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from seq2see import api
from seq2see.studio.app import make_app
from seq2see.studio.counters import Counters
from seq2see.studio.served import shelf_of
from seq2see.training.reports import METRICS
from tests.studio.conftest import LIMITS, SMALL

Serve = Callable[..., TestClient]


@pytest.fixture
def serve() -> Iterator[Serve]:
    shelves = []

    def served(folder: Path) -> TestClient:
        shelves.append(shelf_of([f"model={folder}"], LIMITS, Counters()))
        app = make_app(shelves[-1], LIMITS, Counters())
        return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)

    yield served
    for shelf in shelves:
        shelf.close()


def moved(model: Path, folder: Path, samples: list[Path]) -> Path:
    """The model without its table; its last report speaks of these files."""
    shutil.copytree(model, folder)
    (folder / "data.json").unlink()
    report = {**json.loads((folder / METRICS).read_text("utf-8").splitlines()[-1])}
    report["samples"] = [{"input": str(path), "output": "", "reference": f"of {path.name}"} for path in samples]
    (folder / METRICS).write_text(json.dumps(report) + "\n", "utf-8")
    return folder


def test_only_files_that_the_model_reads_are_examples(serve: Serve, captions: Path, tmp_path: Path) -> None:
    picture, secret = tmp_path / "a.png", tmp_path / "secret.txt"
    Image.new("RGB", (16, 16), "red").save(picture)
    secret.write_text("a secret", "utf-8")
    shutil.copy(picture, tmp_path / "page.html")
    samples = [tmp_path / "gone.png", secret, picture, tmp_path / "page.html"]
    client = serve(moved(captions, tmp_path / "model", samples))
    told = client.get("/api/models/model").json()["examples"]
    assert [one["inputs"]["image"]["file"] for one in told] == ["a.png", "page.html"]
    kinds = [client.get(f"/api/models/model/examples/{n}/image").headers["content-type"] for n in (0, 1)]
    assert kinds == ["image/png", "application/octet-stream"]


def test_a_file_that_goes_later_is_said_to_be_gone(serve: Serve, captions: Path, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.new("RGB", (16, 16), "red").save(picture)
    client = serve(moved(captions, tmp_path / "model", [picture]))
    picture.unlink()
    answer = client.get("/api/models/model/examples/0/image")
    said = {"error": "example 0 of 'model': the file of 'image' is gone"}
    assert (answer.status_code, answer.json()) == (404, said)
    answer = client.post("/api/predict", json={"input": {"example": 0}})
    assert (answer.status_code, answer.json()) == (422, {"error": "input 'image': a.png: no such file"})


@pytest.fixture(scope="module")
def pairs(home: Path, captions: Path) -> Path:
    """Two pictures, a label."""
    rows = [f"{n}.png\t{n + 1}.png\t{'even' if n % 2 else 'odd'}\n" for n in range(20)]
    table = home / "two.tsv"
    table.write_text("left\tright\tverdict\n" + "".join(rows), "utf-8")
    picture = {"kind": "image", "height": 16, "width": 16}
    recipe: dict[str, Any] = {
        "task": "pairs",
        "inputs": {"left": picture, "right": picture},
        "encoder": {"kind": "convolutional", "channels": [4, 8], "size": 8},
        "output": {"kind": "label", "column": "verdict"},
        "decoder": {"kind": "label", "size": 8, "start": "left"},
        "attention": {"score": "additive", "size": 8, "over": "right"},
        "training": SMALL["training"],
    }
    api.train(recipe, table, out=home / "pairs", listeners=[])
    return home / "pairs"


def test_a_form_may_hold_an_example_beside_an_upload(serve: Serve, pairs: Path, home: Path) -> None:
    client = serve(pairs)
    files = {"right": ("mine.png", (home / "1.png").read_bytes(), "image/png")}
    answer = client.post("/api/predict", data={"left": '{"example":0}'}, files=files)
    assert answer.status_code == 200, answer.text
    assert answer.json()["predictions"][0]["input"] == {"left": "0.png", "right": "mine.png"}
    both = client.post("/api/predict", json={"input": {"example": 0}}).json()["predictions"][0]
    assert answer.json()["predictions"][0]["log_probability"] == pytest.approx(both["log_probability"], abs=1e-5)
    for wrong in ('{"example":99}', '{"example":', '{"file": "/etc/passwd"}', "0"):
        answer = client.post("/api/predict", data={"left": wrong}, files=files)
        assert answer.status_code == 422, answer.text
