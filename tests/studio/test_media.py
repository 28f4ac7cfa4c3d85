"""Files that clients send: decoded elsewhere, once, before the model's turn; whatever they do, others are answered."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from PIL import Image
from starlette.testclient import TestClient

from seq2see import api
from seq2see.data.decoder_pool import DecoderPool
from seq2see.data.image_files import ImageInput
from seq2see.data.media_files import Job
from seq2see.studio.app import create_app
from seq2see.studio.http import RequestError
from seq2see.studio.limits import Limits
from seq2see.studio.media import MediaDecoder
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository, serve_model
from seq2see.studio.server import listen, server_url
from tests.clips import filmed, table, written
from tests.data.test_hostile_media import DDS, EPS, PSD, film, playlist
from tests.misbehaving_decoder import pool
from tests.studio.conftest import SMALL

LIMITS = Limits(body_bytes=3_000_000, request_inputs=8)
PATIENT = 60
"""Seconds that only a server that hangs takes."""


@pytest.fixture(scope="module")
def watcher(home: Path) -> Path:
    """Clips of a square, and the way it goes."""
    rows = filmed(home / "watcher-data", 8, seed=3)
    recipe = {
        "task": "watcher",
        "inputs": {"video": {"kind": "video", "height": 16, "width": 16, "frames": 4}},
        "encoder": {"kind": "video", "size": 8, "channels": [4, 8]},
        "output": {"kind": "label", "column": "text"},
        "decoder": {"kind": "label", "size": 8},
        "training": {**SMALL["training"], "updates": 1, "dev_rows": 2},
    }
    data = table(home / "watcher-data" / "clips.tsv", rows)
    api.train(recipe, data, out=home / "watcher", listeners=[])
    return home / "watcher"


@pytest.fixture(scope="module")
def listener(home: Path) -> Path:
    """Tones, and whether they are high or low."""
    soundfile = pytest.importorskip("soundfile", reason="the extra `sound` is not installed")
    folder = home / "listener-data"
    folder.mkdir()
    rows = ["sound\ttext"]
    for number in range(8):
        tone = np.sin(2 * np.pi * (300 + 900 * (number % 2)) * np.arange(2000 + 100 * number) / 8000)
        soundfile.write(folder / f"{number}.wav", tone.astype(np.float32), 8000)
        rows.append(f"{number}.wav\t{('low', 'high')[number % 2]}")
    (folder / "tones.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    recipe = {
        "task": "listener",
        "inputs": {"sound": {"kind": "sound", "rate": 8000, "mels": 16}},
        "encoder": {"kind": "pyramidal", "size": 8, "layers": 1, "halvings": 1},
        "output": {"kind": "label", "column": "text"},
        "decoder": {"kind": "label", "size": 8},
        "training": {**SMALL["training"], "updates": 1, "dev_rows": 2},
    }
    api.train(recipe, folder / "tones.tsv", out=home / "listener", listeners=[])
    return home / "listener"


Serving = Callable[..., tuple[TestClient, ModelRepository]]


def served(*folders: Path, limits: Limits = LIMITS, **pooled: Any) -> tuple[TestClient, ModelRepository]:
    """Serve models with decoders that may misbehave."""
    media = MediaDecoder(limits, pool(**{"processes": 1, "queue_size": limits.decode_queue, **pooled}))
    metrics = ServerMetrics()
    models = [serve_model(one.name, api.load(one), limits, metrics, media=media) for one in folders]
    repository = ModelRepository(models, media)
    app = create_app(repository, limits, metrics)
    return TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False), repository


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Servers that end with the test."""
    repositories: list[ModelRepository] = []

    def made(*folders: Path, **how: Any) -> tuple[TestClient, ModelRepository]:
        client, repository = served(*folders, **how)
        repositories.append(repository)
        return client, repository

    yield made
    for repository in repositories:
        repository.close()


@pytest.fixture(scope="module")
def sharing() -> Iterator[Serving]:
    """Servers of one model with the usual limits, each started once for all tests that change nothing about it."""
    made: dict[Path, tuple[TestClient, ModelRepository]] = {}

    def share(folder: Path) -> tuple[TestClient, ModelRepository]:
        if folder not in made:
            made[folder] = served(folder)
        return made[folder]

    yield share
    for _, repository in made.values():
        repository.close()


@pytest.fixture
def running(serving: Serving) -> Iterator[Callable[..., tuple[str, ModelRepository]]]:
    """The same on a port of its own: one loop and its threads for all clients."""
    servers: list[tuple[uvicorn.Server, threading.Thread]] = []
    with closing(listen("127.0.0.1", 0)) as listening:

        def made(*folders: Path, **how: Any) -> tuple[str, ModelRepository]:
            client, repository = serving(*folders, **how)
            config = uvicorn.Config(client.app, log_config=None, log_level="warning", ws="none", lifespan="off")
            server = uvicorn.Server(config)
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
            servers.append((server, thread))
            thread.start()
            return server_url(listening), repository

        yield made
        for server, thread in servers:
            server.should_exit = True
            thread.join(PATIENT)


def png(colour: str = "red", size: tuple[int, int] = (20, 20)) -> bytes:
    file = BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def sent(content: bytes, name: str = "image", suffix: str = "png") -> dict[str, Any]:
    return {"files": {name: (f"sent.{suffix}", content)}}


def reached(state: Callable[[], bool]) -> bool:
    until = monotonic() + PATIENT
    while not state() and monotonic() < until:
        sleep(0.01)
    return state()


def test_a_playlist_that_is_sent_shows_nothing_of_the_server(watcher: Path, sharing: Serving, tmp_path: Path) -> None:
    client, _ = sharing(watcher)
    for ended in (True, False):
        content = playlist(tmp_path, "list.m3u8", ended=ended).read_bytes()
        for suffix in ("m3u8", "mp4"):
            answer = client.post("/api/predict", **sent(content, "video", suffix))
            assert answer.status_code == 409
            assert "allowed: MP4" in answer.json()["error"]
    secret = (tmp_path / "secret.ts").read_bytes()
    assert client.post("/api/predict", **sent(secret, "video", "ts")).status_code == 200, "which is a video like others"


def test_a_film_of_huge_frames_is_refused(watcher: Path, sharing: Serving, tmp_path: Path) -> None:
    client, _ = sharing(watcher)
    content = film(tmp_path / "film.mkv", 1500, 4096).read_bytes()
    answer = client.post("/api/predict", **sent(content, "video", "mkv"))
    assert answer.status_code == 409
    assert "pixels" in answer.json()["error"]


def damaged(folder: Path) -> Iterator[tuple[str, bytes]]:
    noise = np.random.default_rng(0).integers(0, 255, (8, 32, 48, 3)).astype(np.uint8)
    for suffix, codec in (("mp4", "mpeg4"), ("flv", "flv"), ("avi", "mpeg4"), ("mkv", "mpeg4")):
        whole = written(folder / f"whole.{suffix}", noise, codec=codec).read_bytes()
        broken = bytearray(whole)
        broken[len(whole) // 2 :: 7] = bytes(len(range(len(whole) // 2, len(whole), 7)))
        yield suffix, bytes(broken)
        yield suffix, whole[: len(whole) // 3]
        yield suffix, whole[:40]


def test_damaged_videos_are_the_clients_fault(watcher: Path, sharing: Serving, tmp_path: Path) -> None:
    client, _ = sharing(watcher)
    for suffix, content in damaged(tmp_path):
        answer = client.post("/api/predict", **sent(content, "video", suffix))
        assert answer.status_code in (200, 409), (suffix, len(content), answer.text)
    assert client.post("/api/predict", **sent(png(), "video")).status_code == 409


def test_pictures_of_other_formats_are_the_clients_fault(captions: Path, sharing: Serving) -> None:
    client, _ = sharing(captions)
    avif = b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf" + struct.pack(">I4s", 300, b"meta") + bytes(296)
    for content in (DDS, EPS, PSD, avif, b"", b"GIF89a", png()[:-30], b"RIFF\0\0\0\0WEBPVP8 "):
        answer = client.post("/api/predict", **sent(content))
        assert answer.status_code == 409
        assert answer.json()["error"].startswith("input 'image': sent.png: ")
    assert "allowed: PNG, JPEG, WEBP, GIF, BMP, TIFF" in client.post("/api/predict", **sent(EPS)).json()["error"]


@pytest.mark.parametrize("content", [b"crash", b"exit", b"bug", b"grow"])
def test_a_decoder_that_breaks_down_is_no_fault_of_the_server(captions: Path, sharing: Serving, content: bytes) -> None:
    client, _ = sharing(captions)
    assert client.post("/api/predict", **sent(content)).status_code == 409
    assert client.post("/api/predict", **sent(png())).status_code == 200


def test_a_file_that_takes_too_long_is_given_up(captions: Path, serving: Serving) -> None:
    client, _ = serving(captions, seconds=1.0)
    answer = client.post("/api/predict", **sent(b"hang"))
    assert answer.status_code == 409
    assert "longer than 1 s" in answer.json()["error"]
    assert client.post("/api/predict", **sent(png())).status_code == 200


def test_a_request_whose_files_take_too_long_is_given_up_as_a_whole(captions: Path, serving: Serving) -> None:
    client, repository = serving(captions, limits=replace(LIMITS, timeout=1.0))
    client.post("/api/predict", **sent(png()))  # its process is started by now
    answer = client.post("/api/predict", **sent(b"hang"))
    assert answer.status_code == 504
    assert repository.media is not None
    pooled = repository.media.pool
    assert reached(lambda: not pooled.running)


def test_text_is_answered_while_every_decoder_hangs(
    speller: Path, captions: Path, running: Callable[..., tuple[str, ModelRepository]]
) -> None:
    url, repository = running(
        speller, captions, limits=replace(LIMITS, decode_queue=20, timeout=600), processes=2, seconds=600
    )
    assert repository.media is not None
    pooled = repository.media.pool
    with (
        httpx.Client(base_url=url, trust_env=False, timeout=PATIENT) as client,
        ThreadPoolExecutor(24) as threads,
    ):

        def hang() -> int:
            form = {"model": "captions", "shown": "false"}
            return client.post("/api/predict", data=form, **sent(b"hang")).status_code

        asked = [threads.submit(hang) for _ in range(22)]
        assert reached(lambda: pooled.running == 2 and pooled.waiting == 20)
        answer = client.post("/api/predict", json={"model": "speller", "input": "face"})
        assert answer.status_code == 200
        health = client.get("/health")
        assert health.status_code == 503
        told = health.json()
        assert told["status"] == "overloaded"
        assert told["decoding"] == {"waiting": 20, "running": 2, "processes": 2}
        assert reached(lambda: client.get("/health").json()["queues"]["speller"] == {"waiting": 0, "running": 0})
        refused = client.post("/api/predict", data={"model": "captions"}, **sent(png()))
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert "error" in refused.json()
        pooled.close()
        assert {one.result(PATIENT) for one in asked} == {503}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The files that are decoded, one job for each time."""
    jobs: list[Job] = []
    submit = DecoderPool.submit

    def record(self: DecoderPool, submitted: list[Job]) -> Any:
        jobs.extend(submitted)
        return submit(self, submitted)

    monkeypatch.setattr(DecoderPool, "submit", record)
    return jobs


def test_a_file_is_decoded_once_for_the_model_and_the_page(
    captions: Path, sharing: Serving, decoded: list[Job]
) -> None:
    client, repository = sharing(captions)
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    first = client.post("/api/predict", json={"input": url}).json()["predictions"][0]
    weights = first["looks"]["weights"][-1]
    for route, body in [
        ("predict", {"input": url, "shown": True}),
        ("predict", {"input": url, "shown": False}),
        ("predict", {"input": url, "target": "a red square"}),
        ("oracle", {"input": url, "oracle": {"0": weights}}),
        ("explain", {"input": url}),
        ("score", {"input": url, "output": "a red square"}),
    ]:
        decoded.clear()
        answer = client.post(f"/api/{route}", json=body)
        assert (answer.status_code, len(decoded)) == (200, 1), (route, answer.text)
    assert repository.media is not None
    assert not repository.media._decoded, "and forgotten with its request"


@pytest.mark.parametrize(("name", "field"), [("captions", "image"), ("listener", "sound"), ("watcher", "video")])
def test_an_upload_that_is_predicted_and_shown_is_decoded_once(
    request: pytest.FixtureRequest, sharing: Serving, decoded: list[Job], tmp_path: Path, name: str, field: str
) -> None:
    folder: Path = request.getfixturevalue(name)
    client, _ = sharing(folder)
    if field == "image":
        content, suffix = png(size=(40, 30)), "png"
    else:
        path = next((folder.parent / f"{name}-data").rglob("*.wav" if field == "sound" else "*.mp4"))
        content, suffix = path.read_bytes(), path.suffix[1:]
    decoded.clear()
    answer = client.post("/api/predict", **sent(content, field, suffix))
    assert answer.status_code == 200, answer.text
    shown = answer.json()["predictions"][0]["shown"][field]
    assert shown["kind"] == field
    assert ("frames" if field == "video" else "picture") in shown
    assert len(decoded) == 1


def test_answers_are_those_of_the_model_itself(captions: Path, sharing: Serving, tmp_path: Path) -> None:
    client, _ = sharing(captions)
    (tmp_path / "a.png").write_bytes(png("green", (33, 47)))
    told = client.post("/api/predict", **sent((tmp_path / "a.png").read_bytes())).json()["predictions"][0]
    own = api.load(captions).predict(str(tmp_path / "a.png"))
    assert told["text"] == own.text
    assert told["log_probability"] == own.to_dict()["log_probability"]
    assert told["looks"]["weights"] == own.to_dict(looks=True)["looks"]["weights"]


def test_what_files_are_decoded_to_has_a_limit(captions: Path, serving: Serving) -> None:
    client, _ = serving(captions, limits=replace(LIMITS, decoded_bytes=3 * 16 * 16 * 2))
    url = "data:image/png;base64," + base64.b64encode(png()).decode()
    two, three = {"inputs": [url] * 2, "shown": False}, {"inputs": [url] * 3, "shown": False}
    assert client.post("/api/predict", json=two).status_code == 200
    answer = client.post("/api/predict", json=three)
    assert answer.status_code == 409
    assert "--max-decoded" in answer.json()["error"]


def test_a_request_that_is_cancelled_takes_its_files_along(tmp_path: Path) -> None:
    jobs = [Job(str(tmp_path / f"{number}.png"), ImageInput()) for number in range(3)]
    for job in jobs:
        Path(job.path).write_bytes(b"hang")
    media = MediaDecoder(LIMITS, pool(processes=1))

    async def cancelled() -> None:
        keyed = {job.key: job for job in jobs}
        task = asyncio.ensure_future(media.decode(keyed, names=dict.fromkeys(keyed, "a file")))
        while media.pool.running != 1:
            await asyncio.sleep(0.01)
        assert media.pool.waiting == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert media.pool.waiting == 0

    try:
        asyncio.run(cancelled())
        assert reached(lambda: media.pool.running == 0)
    finally:
        media.close()


def test_a_batch_under_way_needs_nothing_of_clients_that_hang_up(
    captions: Path,
    running: Callable[..., tuple[str, ModelRepository]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    url, repository = running(captions)
    (served,) = repository
    sizes, gathered, began, go = list[int](), threading.Event(), threading.Event(), threading.Event()

    def begin(rows: int) -> None:
        sizes.append(rows)
        began.set()
        assert go.wait(PATIENT)

    monkeypatch.setattr(served.batcher, "_on_batch", begin)
    served.batcher.submit_work(lambda: gathered.wait(PATIENT))
    picture = "data:image/png;base64," + base64.b64encode(png()).decode()
    body = {"input": picture, "shown": False}
    with (
        httpx.Client(base_url=url, trust_env=False, timeout=PATIENT) as client,
        ThreadPoolExecutor(4) as threads,
        ExitStack() as leaving,
    ):
        try:
            for _ in range(2):
                leaving.enter_context(hung_up(url, body))
            staying = [threads.submit(client.post, "/api/predict", json=body) for _ in range(2)]
            assert reached(lambda: served.batcher.waiting == 4)
            gathered.set()
            assert began.wait(PATIENT)
            leaving.close()
            assert reached(lambda: len(list(tmp_path.iterdir())) == 2), "their files are gone"
            gc.collect()
        finally:
            gathered.set()
            go.set()
        assert [one.result(PATIENT).status_code for one in staying] == [200, 200]
    assert sizes == [4]
    assert repository.media is not None
    kept = repository.media._decoded
    assert reached(lambda: not kept)


@contextmanager
def hung_up(url: str, body: dict[str, Any]) -> Iterator[None]:
    """A client that sends a request, and leaves at the end without having read an answer."""
    content = json.dumps(body).encode()
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    head = f"POST /api/predict HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        yield


def test_a_file_of_two_requests_stays_while_one_of_them_holds_it(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    job = Job(str(tmp_path / "a.png"), ImageInput(height=16, width=16))
    media = MediaDecoder(LIMITS, pool(processes=1))

    async def decoded_twice() -> list[Any]:
        asked = [media.decode({job.key: job}, names={job.key: "a file"}) for _ in range(2)]
        return list(await asyncio.gather(*asked))

    try:
        held = asyncio.run(decoded_twice())
        for _ in range(2):
            assert isinstance(job.settings, ImageInput)
            assert media.arrays(job.path, job.settings)[0].shape == (3, 16, 16)
            held.pop()
            gc.collect()
        with pytest.raises(RuntimeError):
            media.arrays(job.path, job.settings)  # a model's thread waits for no decoder
    finally:
        media.close()


def test_decoders_that_cannot_be_started_are_told(captions: Path, tmp_path: Path) -> None:
    media = MediaDecoder(LIMITS, pool(command=[str(tmp_path / "nowhere")]))
    metrics = ServerMetrics()
    repository = ModelRepository([serve_model("captions", api.load(captions), LIMITS, metrics, media=media)], media)
    try:
        client = TestClient(create_app(repository, LIMITS, metrics), base_url="http://127.0.0.1:8000")
        assert client.get("/health").json()["status"] == "ok"
        assert client.post("/api/predict", **sent(png())).status_code == 503
        health = client.get("/health")
        assert health.status_code == 503
        assert health.json()["status"] == "failing"
        assert any(problem.startswith("decoding: ") for problem in health.json()["problems"])
    finally:
        repository.close()


def test_health_tells_of_decoders_that_answer_nothing(captions: Path, serving: Serving) -> None:
    """Every request gets 504 then, and takes its files along: that they are gone is no sign of health."""
    client, _ = serving(captions, limits=replace(LIMITS, timeout=2.0), seconds=600)

    def fails() -> bool:
        assert client.post("/api/predict", **sent(b"hang")).status_code == 504
        return client.get("/health").status_code == 503

    assert client.get("/health").status_code == 200
    assert reached(fails)
    told = client.get("/health").json()
    assert told["status"] == "failing"
    assert told["problems"][0].startswith("decoding: ")
    assert reached(lambda: client.post("/api/predict", **sent(png())).status_code == 200)
    assert client.get("/health").status_code == 200


def test_one_file_that_hangs_is_no_problem_where_others_are_decoded(captions: Path, serving: Serving) -> None:
    client, _ = serving(captions, limits=replace(LIMITS, timeout=1.0), seconds=600, processes=2)
    assert client.post("/api/predict", **sent(b"hang")).status_code == 504
    assert client.get("/health").status_code == 200


def test_files_and_answer_share_the_seconds_of_a_request(
    captions: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, repository = serving(captions, limits=replace(LIMITS, timeout=600))
    (served,) = repository
    release, now, decode = threading.Event(), [0.0], MediaDecoder.decode

    async def slow(*given: Any, **how: Any) -> Any:
        found = await decode(*given, **how | {"deadline": None})
        now[0] += 600
        return found

    monkeypatch.setattr("seq2see.studio.service.monotonic", lambda: now[0])
    monkeypatch.setattr(MediaDecoder, "decode", slow)
    busy = served.batcher.submit_work(lambda: release.wait(PATIENT))
    try:
        assert client.post("/api/predict", **sent(png())).status_code == 504
        assert not busy.done()
    finally:
        release.set()


def test_files_wait_for_no_file_that_is_refused_with_a_full_queue() -> None:
    """What cannot be submitted is a 503 of its own, not a fault."""
    media = MediaDecoder(LIMITS, pool())
    media.close()
    job = Job("nowhere", ImageInput())
    with pytest.raises(RequestError) as stopped:
        asyncio.run(media.decode({job.key: job}, names={job.key: "a file"}))
    assert stopped.value.status == 503


def test_health_tells_of_a_batch_that_does_not_end(speller: Path, serving: Serving) -> None:
    client, repository = serving(speller, limits=replace(LIMITS, timeout=0.2))
    told = client.get("/health")
    assert told.status_code == 200
    assert told.json().keys() == {"status", "version", "models", "queues", "decoding"}
    assert told.json()["status"] == "ok"
    release = threading.Event()
    (served,) = repository
    try:
        stuck = served.batcher.submit_work(lambda: release.wait(PATIENT))
        assert reached(lambda: client.get("/health").status_code == 503)
        told = client.get("/health").json()
        assert told["status"] == "failing"
        assert told["problems"][0].startswith("speller: ")
        assert told["queues"]["speller"]["running"] == 1
    finally:
        release.set()
    stuck.result(PATIENT)
    assert reached(lambda: client.get("/health").status_code == 200)


def test_health_tells_of_a_thread_that_is_gone(
    speller: Path, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    client, repository = serving(speller)
    (served,) = repository

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("seq2see.studio.dynamic_batching._run_work", broken)
    served.batcher.submit_work(lambda: None)
    assert reached(lambda: client.get("/health").status_code == 503)
    assert client.get("/health").json()["status"] == "failing"
