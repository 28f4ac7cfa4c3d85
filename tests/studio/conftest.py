"""Small models behind a server in this process."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

from seq2see import api
from seq2see.studio.app import create_app
from seq2see.studio.limits import Limits
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository, load_models
from seq2see.studio.server import create_server, listen, server_url
from tests.studio.browsing import CHROMIUM, Visit, visiting

SMALL: dict[str, Any] = {
    "encoder": {"size": 12, "embedding": {"size": 8}},
    "decoder": {"size": 16, "embedding": {"size": 8}},
    "attention": {"score": "additive", "size": 8},
    "training": {"learning_rate": 0.01, "dev_rows": 10, "samples": 1, "updates": 4, "epochs": 0, "report_every": 30},
    "search": {"max_length": 12, "beam": 3},
}
SPELLING: dict[str, Any] = {
    "inputs": {"source": {"column": "word", "tokens": "character"}},
    "output": {"column": "spelled", "tokens": "symbol"},
}
LIMITS = Limits(body_bytes=300_000, text_characters=1000, request_inputs=8)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("studio")


@pytest.fixture(scope="session")
def speller(home: Path) -> Path:
    """Words of four letters, spelled in capitals; it has learned something."""
    draw = random.Random(1)
    words = sorted({"".join(draw.choice("abcdef") for _ in range(4)) for _ in range(240)})[:200]
    table = home / "pairs.tsv"
    table.write_text("word\tspelled\n" + "".join(f"{word}\t{' '.join(word.upper())}\n" for word in words), "utf-8")
    api.train({"task": "spelling", **SMALL, **SPELLING}, table, out=home / "speller", updates=120, listeners=[])
    return home / "speller"


@pytest.fixture(scope="session")
def captions(home: Path) -> Path:
    """Pictures of one colour, and its name."""
    rows = []
    for number in range(24):
        colour = ("red", "green", "blue")[number % 3]
        Image.new("RGB", (16, 16), colour).save(home / f"{number}.png")
        rows.append(f"{number}.png\ta {colour} square\n")
    table = home / "captions.tsv"
    table.write_text("image\tcaption\n" + "".join(rows), "utf-8")
    recipe = {
        **SMALL,
        "task": "captions",
        "inputs": {"image": {"kind": "image", "height": 16, "width": 16}},
        "encoder": {"kind": "convolutional", "channels": [4, 8], "size": 8},
        "output": {"column": "caption", "min_count": 1},
    }
    api.train(recipe, table, out=home / "captions", updates=30, listeners=[])
    return home / "captions"


@pytest.fixture(scope="session")
def judge(home: Path) -> Path:
    """Two inputs, a label."""
    draw = random.Random(2)
    rows = ["".join(draw.choice("ab") for _ in range(6)) for _ in range(60)]
    table = home / "verdicts.tsv"
    lines = [f"{row[:3]}\t{row[3:]}\t{'alike' if row[0] == row[3] else 'different'}\n" for row in rows]
    table.write_text("first\tsecond\tverdict\n" + "".join(lines), "utf-8")
    recipe = {
        **SMALL,
        "task": "judge",
        "inputs": {"first": {"tokens": "character"}, "second": {"tokens": "character"}},
        "output": {"kind": "label", "column": "verdict"},
        "decoder": {"kind": "label", "size": 16, "start": "first"},
        "attention": {"score": "additive", "size": 8, "over": "second"},
        "search": {},
    }
    api.train(recipe, table, out=home / "judge", listeners=[])
    return home / "judge"


@pytest.fixture(scope="session")
def babbler(home: Path, speller: Path) -> Path:
    """A language model."""
    words = [line.split("\t")[0] for line in (home / "pairs.tsv").read_text("utf-8").splitlines()]
    table = home / "words.tsv"
    table.write_text("\n".join(words) + "\n", "utf-8")
    kept = {name: SMALL[name] for name in ("decoder", "training")}
    output = {"column": "word", "tokens": "character"}
    recipe = {"task": "babble", **kept, "output": output, "search": {"max_length": 8}}
    api.train(recipe, table, out=home / "babbler", listeners=[])
    return home / "babbler"


@pytest.fixture(scope="session")
def metrics() -> ServerMetrics:
    return ServerMetrics()


@pytest.fixture(scope="session")
def repository(
    home: Path, speller: Path, captions: Path, judge: Path, babbler: Path, metrics: ServerMetrics
) -> Iterator[ModelRepository]:
    made = load_models([str(speller), str(captions), str(judge), str(babbler)], LIMITS, metrics, files=[home])
    yield made
    made.close()


@pytest.fixture(scope="session")
def client(repository: ModelRepository, metrics: ServerMetrics) -> Iterator[TestClient]:
    """A client in this process, with one loop for all requests (and without the server's end, so that all tests share
    the models)."""
    app = create_app(repository, LIMITS, metrics)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for _ in ("startup", "shutdown"):
            message = await receive()
            await send({"type": f"{message['type']}.complete"})

    with TestClient(endless, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as made:
        yield made


@pytest.fixture(scope="session")
def reviews(home: Path) -> Path:
    """Documents of three sentences, and whether they are glad."""
    moods = {"good": "glad", "bad": "sad"}
    rows = [f"This is a {word}. I saw {n}. It was {word}.\t{mood}\n" for n in range(20) for word, mood in moods.items()]
    table = home / "reviews.tsv"
    table.write_text("text\tlabel\n" + "".join(rows), "utf-8")
    recipe = {
        "task": "reviews",
        "inputs": {"document": {"kind": "texts", "column": "text", "case": "lower"}},
        "encoder": {"kind": "hierarchical", "size": 6, "pooling_size": 4, "embedding": {"size": 5}},
        "output": {"kind": "label", "column": "label"},
        "decoder": {"kind": "label", "size": 8, "start": "none"},
        "attention": {"over": "document", "score": "static", "size": 4},
        "training": {**SMALL["training"], "updates": 12},
    }
    api.train(recipe, table, out=home / "reviews", listeners=[])
    return home / "reviews"


@pytest.fixture(scope="session")
def scribe(home: Path) -> Path:
    """Long words of Arabic letters, and the same letters once more: right to left on both sides."""
    draw = random.Random(3)
    words = ["".join(draw.choice("سلامبتن") for _ in range(14)) for _ in range(120)]
    table = home / "letters.tsv"
    table.write_text("word\tspelled\n" + "".join(f"{word}\t{' '.join(word)}\n" for word in words), "utf-8")
    recipe = {"task": "letters", **SMALL, **SPELLING, "search": {"max_length": 15, "beam": 3}}
    recipe["training"] = {**SMALL["training"], "samples": 3}
    api.train(recipe, table, out=home / "scribe", updates=8, listeners=[])
    return home / "scribe"


@pytest.fixture(scope="session")
def site(
    home: Path, speller: Path, captions: Path, reviews: Path, judge: Path, babbler: Path, scribe: Path
) -> Iterator[str]:
    """A server on a port of its own, in a thread of this process."""
    metrics = ServerMetrics()
    folders = [*map(str, (speller, captions, reviews, judge, babbler, scribe)), f"twin={speller}"]
    app = create_app(load_models(folders, LIMITS, metrics, files=[home]), LIMITS, metrics)
    with closing(listen("127.0.0.1", 0)) as listening:
        server = create_server(app, LIMITS)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield server_url(listening)
        server.should_exit = server.force_exit = True  # without waiting for connections that a browser keeps open
        thread.join(30)


MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
"""One that beeps, and a person who allows its use."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; one for each file of tests, since only one may be driven at a time."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with the extra `dev`")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no browser at {CHROMIUM}")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", *MICROPHONE])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Visit]:
    with visiting(browser, site) as made:
        yield made
