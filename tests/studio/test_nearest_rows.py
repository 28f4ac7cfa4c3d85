"""The nearest training rows: over HTTP as in Python, and on the page for the input and for the chosen step."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import seq2see
from seq2see.pipeline.nearest_rows import save_index
from seq2see.studio.app import create_app
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import ModelRepository, load_models
from seq2see.studio.server import create_server, listen, server_url
from tests.studio.browsing import Visit, visiting
from tests.studio.conftest import LIMITS


@pytest.fixture(scope="module")
def indexed(home: Path, speller: Path, judge: Path, captions: Path) -> dict[str, Path]:
    """Copies of the models, with indices."""
    folders = {}
    for folder, table in ((speller, "pairs.tsv"), (judge, "verdicts.tsv"), (captions, "captions.tsv")):
        folders[folder.name] = home / "indexed" / folder.name
        shutil.copytree(folder, folders[folder.name])
        seq2see.load(folders[folder.name]).index_rows(home / table)
    return folders


@pytest.fixture(scope="module")
def served(home: Path, indexed: dict[str, Path], speller: Path) -> Iterator[ModelRepository]:
    folders = [*map(str, indexed.values()), f"bare={speller}"]
    made = load_models(folders, LIMITS, ServerMetrics(), files=[home])
    yield made
    made.close()


@pytest.fixture(scope="module")
def asked(served: ModelRepository) -> TestClient:
    return TestClient(create_app(served, LIMITS, ServerMetrics()), base_url="http://127.0.0.1:8000")


def rows_of(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    answer = client.post("/api/nearest", json=body)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["rows"])


def test_rows_are_those_of_python(asked: TestClient, indexed: dict[str, Path]) -> None:
    model = seq2see.load(indexed["speller"])
    for body in ({}, {"k": 2}, {"step": 1}, {"step": 2, "target": ["F", "A", "C"], "k": 3}, {"step": 0, "beam": 2}):
        expected = [each.to_dict() for each in model.nearest_rows("face", **body)]
        found = rows_of(asked, model="speller", input="face", **body)
        assert [each.pop("cosine") for each in found] == pytest.approx([each.pop("cosine") for each in expected])
        assert found == expected


def test_labels_and_pictures_have_nearest_rows(asked: TestClient) -> None:
    (first, *_) = rows_of(asked, model="judge", input={"first": "aba", "second": "abb"}, step=0)
    assert first["symbol"] == first["output"]
    assert first["input"].keys() == {"first", "second"}
    found = rows_of(asked, model="captions", input={"example": 0})
    assert all("/" not in each["input"] and each["input"].endswith(".png") for each in found)


def test_files_of_outputs_are_told_by_their_names_too(home: Path, captions: Path) -> None:
    """A model that draws pictures."""
    rows = [f"{number}.png\tfolder/{number}.png\n" for number in range(12)]
    (home / "folder").mkdir()
    for number in range(12):
        shutil.copy(home / f"{number}.png", home / "folder")
    table = home / "drawn.tsv"
    table.write_text("image\tpicture\n" + "".join(rows), "utf-8")
    small = [f"inputs.image.{side}=16" for side in ("height", "width")] + ["training.dev_rows=2"]
    out = home / "drawer"
    seq2see.train("image-autoencoder", table, columns=["image", "picture"], out=out, overrides=small, updates=2)
    seq2see.load(out).index_rows(table, columns=["image", "picture"])
    made = load_models([str(out)], LIMITS, ServerMetrics(), files=[home])
    client = TestClient(create_app(made, LIMITS, ServerMetrics()), base_url="http://127.0.0.1:8000")
    found = rows_of(client, model="drawer", input={"example": 0})
    made.close()
    assert all("/" not in each[key] and each[key].endswith(".png") for each in found for key in ("input", "output"))


def test_an_index_of_another_model_is_refused(home: Path, speller: Path, indexed: dict[str, Path]) -> None:
    folder = home / "mixed"
    shutil.copytree(speller, folder)
    own = seq2see.load(folder)
    other = seq2see.load(indexed["judge"])
    other.nearest_rows({"first": "aba", "second": "abb"})
    assert other.bundle.row_index is not None
    save_index(own.bundle, other.bundle.row_index)
    made = load_models([str(folder)], LIMITS, ServerMetrics())
    client = TestClient(create_app(made, LIMITS, ServerMetrics()), base_url="http://127.0.0.1:8000")
    answer = client.post("/api/nearest", json={"model": "mixed", "input": "face"})
    made.close()
    assert (answer.status_code, "that of another model" in answer.json()["error"]) == (409, True), answer.text
    assert str(home) not in answer.text


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"model": "bare", "input": "face"}, 409, "no index of its training rows; make one"),
        ({"model": "bare", "input": "face", "step": 0}, 409, "no index of its training rows; make one"),
        ({"model": "speller", "input": "face", "k": 0}, 422, "k: should be greater than or equal to 1, got 0"),
        ({"model": "speller", "input": "face", "k": 101}, 422, "k: should be less than or equal to 100, got 101"),
        ({"model": "speller", "input": "face", "step": 99}, 409, "step 99: the output has"),
        ({"model": "speller", "input": "face", "target": "F"}, 409, "target: needs step"),
        ({"model": "speller", "input": "face", "step": 0, "target": "F", "beam": 2}, 409, "beam: cannot be used with"),
        ({"model": "judge", "input": {"first": "a", "second": "b"}, "step": 1}, 409, "step 1: the output has 1 step"),
        ({"model": "judge", "input": {"first": "a", "second": "b"}, "step": 0, "target": "alike"}, 409, "one step"),
    ],
)
def test_what_cannot_be_asked_is_told(asked: TestClient, body: dict[str, Any], status: int, told: str) -> None:
    answer = asked.post("/api/nearest", json=body)
    assert (answer.status_code, told in answer.json()["error"]) == (status, True), answer.text


def test_models_say_whether_they_have_an_index(asked: TestClient) -> None:
    told = {model["name"]: model["index"] for model in asked.get("/api/models").json()["models"]}
    assert told == {"speller": True, "judge": True, "captions": True, "bare": False}
    assert asked.get("/api/models/bare").json()["index"] is False


@pytest.fixture(scope="module")
def page(browser: Any, served: ModelRepository) -> Iterator[Visit]:
    app = create_app(served, LIMITS, ServerMetrics())
    with closing(listen("127.0.0.1", 0)) as listening:
        server = create_server(app, LIMITS)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        with visiting(browser, server_url(listening)) as visit:
            yield visit
        server.should_exit = server.force_exit = True
        thread.join(30)


def test_the_page_shows_rows_for_the_input_and_the_chosen_step(page: Visit, indexed: dict[str, Path]) -> None:
    model = seq2see.load(indexed["speller"])
    page.open("speller")
    page.type("face")
    page.page.click("[data-part=learned] summary")
    page.page.wait_for_function("() => document.querySelectorAll('.near li').length === 10")
    near = model.nearest_rows("face")
    assert page.texts(".near >> nth=0 >> .from p") == [each.input for each in near]
    assert page.texts(".near >> nth=0 >> .figure") == [f"{each.cosine:.3f}" for each in near]
    for step in (0, 2):
        page.page.click(f".token[data-step='{step}']")
        page.page.wait_for_function(
            "step => document.querySelector('.learned').innerText.includes(step)", arg=f"step {step + 1} "
        )
        page.page.wait_for_function("() => document.querySelectorAll('.near li').length === 10")
        expected = model.nearest_rows("face", step=step, target=page.tokens())
        assert page.texts(".near >> nth=1 >> mark") == [each.symbol for each in expected]
    for width in (1280, 390):
        page.page.set_viewport_size({"width": width, "height": 900})
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_an_index_the_page_says_how_to_make_one(page: Visit) -> None:
    page.open("bare")
    page.type("face")
    if not page.page.locator("[data-part=learned]").evaluate("one => one.open"):
        page.page.click("[data-part=learned] summary")
    page.page.locator(".learned", has_text="seq2see nearest FOLDER --data TABLE").wait_for()
    page.page.click(".token[data-step='1']")
    assert page.page.locator(".near").count() == 0


def test_a_step_that_was_not_answered_is_asked_for_again(page: Visit) -> None:
    refused = []

    def refuse_once(route: Any) -> None:
        if route.request.post_data_json.get("step") == 1 and not refused:
            refused.append(route.request.url)
            route.fulfill(status=503, json={"error": "busy"})
        else:
            route.continue_()

    page.open("speller")
    page.type("fade")
    if not page.page.locator("[data-part=learned]").evaluate("one => one.open"):
        page.page.click("[data-part=learned] summary")
    page.page.wait_for_function("() => document.querySelectorAll('.near li').length === 10")
    page.page.route("**/api/nearest", refuse_once)
    page.page.click(".token[data-step='1']")
    page.page.locator(".learned .complaint").wait_for()
    assert page.page.locator(".near li").count() == 5, "the input's stay"
    page.page.click(".token[data-step='0']")
    page.page.wait_for_function("() => document.querySelectorAll('.near li').length === 10")
    page.page.click(".token[data-step='1']")
    page.page.locator(".learned h4", has_text="step 2").wait_for()
    page.page.wait_for_function("() => document.querySelectorAll('.near li').length === 10")
    page.page.unroute("**/api/nearest")
    assert len(refused) == 1
    page.faults[:] = [fault for fault in page.faults if "503" not in fault]  # the browser's word of it
