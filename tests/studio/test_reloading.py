"""Models are replaced while requests are answered: none is dropped, and a damaged folder changes nothing."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see.api import Model
from seq2see.errors import UserError
from seq2see.pipeline.bundle import WEIGHTS
from seq2see.studio import model_repository
from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelLoader, ModelRepository
from seq2see.studio.reloading import Reloader
from seq2see.studio.workers import ReloadBoard
from tests.studio.conftest import LIMITS

TOKEN = "a-long-enough-token"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


class Site:
    """A server of one model, `model`, in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder, self.metrics = folder, ServerMetrics()
        self.loader = ModelLoader([f"model={folder}"], LIMITS, self.metrics)
        self.repository: ModelRepository = self.loader.load_all()
        self.reloader = Reloader(self.repository, self.loader, self.metrics)
        app = create_app(self.repository, LIMITS, self.metrics, token=TOKEN, reloader=self.reloader)

        async def without_end(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)

        self.client = TestClient(without_end, base_url="http://127.0.0.1:8000", headers=HEADERS)

    def put(self, model: Path) -> None:
        """Put another model into the folder."""
        shutil.rmtree(self.folder)
        shutil.copytree(model, self.folder)


@pytest.fixture
def site(speller: Path, tmp_path: Path) -> Iterator[Site]:
    made = Site(shutil.copytree(speller, tmp_path / "model"))
    yield made
    made.repository.close()


def test_a_request_that_is_under_way_ends_on_the_old_model(site: Site, judge: Path) -> None:
    old = site.repository.get("model")
    busy, go = threading.Event(), threading.Event()

    def work() -> None:
        busy.set()
        assert go.wait(60)

    old.batcher.submit_work(work)
    assert busy.wait(60)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(site.client.post, "/api/predict", json={"input": "face"})
        while not old.batcher.waiting:
            assert not asked.done()
        site.put(judge)
        answer = site.client.post("/api/models/model/reload")
        assert (answer.status_code, answer.json()) == (
            200,
            {"model": "model", "reloaded": True, "workers": 1, "ready": 1},
        )
        new = site.client.post("/api/predict", json={"input": {"first": "aba", "second": "bab"}})
        assert "label" in new.json()["predictions"][0], "the new model answers while the old one is busy"
        assert not asked.done()
        go.set()
        assert asked.result(60).json()["predictions"][0]["text"]
    old.batcher._thread.join(60)
    assert not old.batcher._thread.is_alive(), "the old model ends with its last request"
    document = site.client.get("/openapi.json").json()
    (body,) = [
        schema
        for schema in document["paths"]["/api/score"]["post"]["requestBody"]["content"]["application/json"]["schema"][
            "anyOf"
        ]
        if "rows" in schema.get("required", [])
    ]
    assert "first" in str(body), "the document describes the new model"


def test_a_damaged_folder_leaves_the_old_model_and_is_told(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    served = site.repository.get("model")
    weights = site.folder / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-100])
    with caplog.at_level(logging.INFO):
        answer = site.client.post("/api/models/model/reload")
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("'model' was not loaded again, the old model is still served: model.safe")
    assert str(site.folder) not in answer.text, "clients know no folders"
    assert str(site.folder) in caplog.text
    assert site.repository.get("model") is served
    assert site.client.post("/api/predict", json={"input": "face"}).status_code == 200
    assert 'seq2see_reloads_total{model="model",outcome="failed"} 1.0' in site.client.get("/metrics").text
    shutil.rmtree(site.folder)
    assert site.client.post("/api/models/model/reload").status_code == 409


def test_only_with_the_token_and_only_known_models(site: Site, client: TestClient) -> None:
    assert site.client.post("/api/models/other/reload").status_code == 404
    assert site.client.post("/api/models/model/reload", headers={"Authorization": "Bearer x"}).status_code == 401
    assert client.post("/api/models/speller/reload").status_code == 404, "a server without a token has no such route"


def test_a_folder_that_is_still_being_written_is_left_alone(site: Site) -> None:
    weights = site.folder / WEIGHTS
    whole = weights.read_bytes()
    assert site.reloader.changed() == []
    weights.write_bytes(whole[:100])
    assert site.reloader.changed() == [], "just changed: somebody may be writing it"
    weights.write_bytes(whole)
    assert site.reloader.changed() == []
    assert site.reloader.changed() == ["model"]
    site.reloader.reload("model")
    assert site.reloader.changed() == []


def test_a_folder_that_failed_is_tried_again_when_it_changes(site: Site) -> None:
    weights = site.folder / WEIGHTS
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    assert [site.reloader.changed() for _ in range(2)] == [[], ["model"]]
    with pytest.raises(UserError):
        site.reloader.reload("model")
    assert [site.reloader.changed() for _ in range(2)] == [[], []], "not again and again"
    weights.write_bytes(whole)
    assert [site.reloader.changed() for _ in range(2)] == [[], ["model"]]


def test_a_folder_that_changes_while_it_is_loaded_is_noticed(
    speller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, load = shutil.copytree(speller, tmp_path / "model"), model_repository.load

    def slowly(model: str, device: str | None = None) -> Model:
        loaded = load(model, device=device)
        (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes())
        return loaded

    monkeypatch.setattr(model_repository, "load", slowly)
    site = Site(folder)
    monkeypatch.undo()
    assert [site.reloader.changed() for _ in range(2)] == [[], ["model"]]
    site.reloader.reload("model")
    assert [site.reloader.changed() for _ in range(2)] == [[], []]
    site.repository.close()


def test_a_worker_that_could_not_load_it_is_not_ready(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ReloadBoard.create(tmp_path / "board", models=1, workers=2)
    boards = [ReloadBoard(tmp_path / "board", 1, worker, 2) for worker in range(2)]
    asked, other = (Reloader(site.repository, site.loader, site.metrics, board=board) for board in boards)

    def fail(name: str) -> None:
        raise UserError("damaged")

    monkeypatch.setattr(other, "reload", fail)
    monkeypatch.setattr(asked, "reload", lambda name: None)

    async def both() -> dict[str, object]:
        request = asyncio.create_task(asked.request("model", timeout=600))
        await asyncio.sleep(0)
        while not request.done():
            await other._follow_board()
            await asyncio.sleep(0)
        return await request

    assert asyncio.run(both()) == {"model": "model", "reloaded": True, "workers": 2, "ready": 1}


def test_workers_tell_each_other(site: Site, tmp_path: Path) -> None:
    """What a client asks of one worker, all do; the answer says how many have done it."""
    ReloadBoard.create(tmp_path / "board", models=1, workers=2)
    boards = [ReloadBoard(tmp_path / "board", 1, worker, 2) for worker in range(2)]
    asked, other = (Reloader(site.repository, site.loader, site.metrics, board=board) for board in boards)

    async def both() -> dict[str, object]:
        following = asyncio.create_task(other.run())
        answer = await asked.request("model", timeout=60)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        return answer

    assert asyncio.run(both()) == {"model": "model", "reloaded": True, "workers": 2, "ready": 2}
    assert site.repository.version == 2
    late = asyncio.run(asked.request("model", timeout=0))
    assert late["ready"] == 1, "it does not wait for ever for a worker that hangs"
    assert ReloadBoard(tmp_path / "board", 1, 1, 2).ready(0, 2) == 2, "one that starts has the new model"
