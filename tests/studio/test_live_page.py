"""The page of a run in a browser: its film is scrubbed, and every cell shows what film.jsonl holds."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from seq2see import api
from seq2see.studio.app import create_app, serve_training_run
from seq2see.studio.metrics import ServerMetrics
from seq2see.studio.model_repository import load_models
from seq2see.training.film import FILM
from seq2see.training.reports import METRICS
from tests.studio.browsing import visiting
from tests.studio.conftest import LIMITS, SMALL, SPELLING

PHONE = {"width": 360, "height": 740}


def film(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    head, *frames = [json.loads(line) for line in (folder / FILM).read_bytes().splitlines()]
    return head["examples"], frames


def cells(page: Any, number: int) -> list[list[float]]:
    read = (
        "rows => rows.map(row => [...row.querySelectorAll('td[data-weight]')].map(one => Number(one.dataset.weight)))"
    )
    rows: list[list[float]] = page.locator(f"[data-example='{number}'] .heat tbody tr").evaluate_all(read)
    return rows


def check_frame(page: Any, folder: Path, at: int) -> None:
    """Every cell, what is said, and how strongly the heaviest cell is shaded: by the heaviest of the whole film."""
    scenes, frames = film(folder)
    frame = frames[at]
    assert page.locator("#examples").get_attribute("data-update") == str(frame["update"])
    assert f"update {frame['update']:,}" in page.locator("#at").inner_text()
    for number, (scene, shown) in enumerate(zip(scenes, frame["examples"], strict=True)):
        assert cells(page, number) == shown["weights"]
        part = page.locator(f"[data-example='{number}']")
        assert part.locator(".says").inner_text() == shown["says"]
        assert len(part.locator("thead th").all()) == len(scene["places"]) + 1
        top = max(max(map(max, one["examples"][number]["weights"])) for one in frames)
        shaded = part.locator("td.shade")
        shares = shaded.evaluate_all("all => all.map(one => Number(one.style.getPropertyValue('--w')))")
        assert max(shares) == pytest.approx(max(map(max, shown["weights"])) / top, abs=1e-3)


def test_the_film_is_scrubbed_and_shows_what_was_recorded(browser: Any, site: str, speller: Path) -> None:
    last = len(film(speller)[1]) - 1
    with visiting(browser, site) as visit:
        page = visit.page
        page.goto(f"{site}live?model=speller")
        page.wait_for_selector("body[data-state=recorded]")
        scrubber = page.locator("#frame")
        assert int(scrubber.get_attribute("max")) == last
        check_frame(page, speller, last)
        scrubber.focus()
        page.keyboard.press("Home")
        check_frame(page, speller, 0)
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        check_frame(page, speller, 3)
        scrubber.evaluate("(one, to) => { one.value = to; one.dispatchEvent(new Event('input')); }", str(last // 2))
        check_frame(page, speller, last // 2)
        assert page.locator("#frame").get_attribute("aria-valuetext") == page.locator("#at").inner_text()
        page.locator("h2#run").click()
        page.keyboard.press("ArrowLeft")
        check_frame(page, speller, last // 2 - 1)
        scrubber.evaluate("(one, to) => { one.value = to; one.dispatchEvent(new Event('input')); }", str(last - 2))
        page.locator("#play").click()
        page.wait_for_function("from => Number(document.getElementById('frame').value) > from", arg=last - 2)
        page.wait_for_function("to => document.getElementById('frame').value === to", arg=str(last))
        page.wait_for_selector("#play[aria-pressed=false]")
        check_frame(page, speller, last)


def test_curves_samples_and_answers_are_those_of_the_run(browser: Any, site: str, speller: Path) -> None:
    reports = [json.loads(line) for line in (speller / METRICS).read_bytes().splitlines()]
    with visiting(browser, site, viewport=PHONE, color_scheme="dark") as visit:
        page = visit.page
        page.goto(f"{site}live?model=speller")
        page.wait_for_selector("body[data-state=recorded]")
        assert page.locator(".curve").first.locator("circle").count() == len(reports)
        assert f"loss: {reports[0]['loss']:.3g}"[:10] in page.locator(".curve svg").first.get_attribute("aria-label")
        assert page.locator(".curve .baseline").count() == 1
        assert "-0" not in page.locator(".curve text").all_text_contents()
        for sample in reports[-1]["samples"]:
            assert sample["output"] in page.locator("#samples").inner_text()
        page.locator("summary", has_text="five answers").click()
        page.locator("#about pre", has_text="What is the loss").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert visit.colour("body") == "#0b0f14"
        page.locator("#theme").click()
        assert visit.colour("body") == "#f6f8fa"


def test_pictures_are_lit_by_each_word(browser: Any, site: str, captions: Path) -> None:
    scenes, frames = film(captions)
    with visiting(browser, site) as visit:
        page = visit.page
        page.goto(f"{site}live?model=captions")
        page.wait_for_selector("body[data-state=recorded]")
        page.locator("#frame").focus()
        page.keyboard.press("Home")
        shown = page.locator("[data-example='0'] canvas").evaluate_all("all => all.map(one => one.dataset.weights)")
        assert [[float(part) for part in one.split()] for one in shown] == frames[0]["examples"][0]["weights"]
        assert len(shown) == len(scenes[0]["outputs"])


class Held:
    """A listener that lets a run wait until it has been looked at."""

    def __init__(self) -> None:
        self.reached, self.free = threading.Event(), threading.Event()

    def on_update(self, status: object) -> None:
        self.reached.set()
        self.free.wait(120)

    def on_report(self, report: object, metric: str) -> None: ...
    def on_message(self, message: str) -> None: ...
    def close(self) -> None: ...


def test_the_page_goes_along_with_a_run_to_its_end(browser: Any, home: Path, speller: Path, tmp_path: Path) -> None:
    folder, held = tmp_path / "run", Held()

    def learn(listeners: list[Any]) -> None:
        recipe = {"task": "spelling", **SMALL, **SPELLING}
        api.train(recipe, home / "pairs.tsv", out=folder, updates=20, listeners=listeners)

    with serve_training_run(folder, 0) as (where, live):
        training = threading.Thread(target=learn, args=([live, held],))
        training.start()
        assert held.reached.wait(120)
        with visiting(browser, where.rstrip("/")) as visit:
            page = visit.page
            page.goto(where)
            page.wait_for_selector("body[data-state=learning]")
            page.wait_for_function("document.getElementById('examples').dataset.update === '8'")
            assert "10" in page.locator("#progress").inner_text()
            held.free.set()
            training.join(120)
            page.wait_for_selector("body[data-state=ended]")
            assert page.locator("#examples").get_attribute("data-update") == "20"
            check = film(folder)[1][-1]["examples"][0]["weights"]
            assert cells(page, 0) == check


def test_the_page_asks_for_nothing_inline(speller: Path) -> None:
    metrics = ServerMetrics()
    repository = load_models([str(speller)], LIMITS, metrics)
    client = TestClient(create_app(repository, LIMITS, metrics), base_url="http://127.0.0.1:8000")
    page = client.get("/live")
    assert "style=" not in page.text
    assert "onclick" not in page.text
    assert "'unsafe-inline'" not in page.headers["content-security-policy"]
    repository.close()
