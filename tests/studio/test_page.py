"""The page in a browser: what a person does there, and that it shows what `predict --json` says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import seq2see
from seq2see import api
from seq2see.cli import main
from seq2see.seeing.style import THEMES
from seq2see.studio.app import make_app
from seq2see.studio.counters import Counters
from seq2see.studio.served import shelf_of
from seq2see.studio.server import address, bound
from tests.studio.browsing import CHROMIUM, Visit, visiting
from tests.studio.conftest import LIMITS, SMALL

playwright = pytest.importorskip("playwright.sync_api", reason="the page is tested with the extra `dev`")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no browser at {CHROMIUM}")

HTML = "<b>face</b>"


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


@pytest.fixture(scope="module")
def site(speller: Path, captions: Path, reviews: Path, judge: Path, babbler: Path) -> Iterator[str]:
    """A server on a port of its own, in a thread of this process."""
    counters = Counters()
    folders = [*map(str, (speller, captions, reviews, judge, babbler)), f"twin={speller}"]
    app = make_app(shelf_of(folders, LIMITS, counters), LIMITS, counters)
    with closing(bound("127.0.0.1", 0)) as listening:
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield address(listening)
        server.should_exit = True
        thread.join(30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any, site: str) -> Iterator[Visit]:
    with visiting(browser, site) as made:
        yield made


def predicted(capsys: pytest.CaptureFixture[str], folder: Path, given: object, *options: object) -> dict[str, Any]:
    """What the command line says."""
    capsys.readouterr()
    with pytest.raises(SystemExit, match="0"):
        main(["predict", str(folder), str(given), "--json", "--looks", "-", *map(str, options)])
    return dict(json.loads(capsys.readouterr().out))


def percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.001 else f"{share * 100:.1f} %" if share * 100 < 9.95 else f"{share * 100:.0f} %"


def scaled(weights: list[float], everything: list[list[float]]) -> Any:
    """Weights as shares of the heaviest of all."""
    return pytest.approx([weight / max(map(max, everything)) for weight in weights], abs=2e-3)


# ---------------------------------------------------------------- text


def test_what_is_typed_is_answered_as_on_the_command_line(
    visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predicted(capsys, speller, "face")
    visit.open("speller")
    visit.type("face")
    assert visit.answer() == expected["text"]
    assert visit.tokens() == [one["text"] for one in expected["tokens"][:-1]] + ["end"]
    assert visit.texts(".token .probability") == [percent(one["probability"]) for one in expected["tokens"]]
    assert [text.split("\n")[0] for text in visit.texts(".other")] == [one["text"] for one in expected["alternatives"]]
    assert "speller says: " + expected["text"] == visit.page.locator("[aria-live]").inner_text()


def test_pointing_at_an_output_lights_the_input(
    visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = predicted(capsys, speller, "face")["looks"]["weights"]
    visit.open("speller")
    visit.type("face")
    assert visit.shares(".read .place") == scaled(weights[0], weights)
    visit.page.hover(".token[data-step='2']")
    assert visit.shares(".read .place") == scaled(weights[2], weights)
    assert visit.page.locator(".heat tr.active").get_attribute("data-step") == "2"
    visit.page.focus(".token[data-step='0']")
    visit.page.keyboard.press("Tab")
    visit.page.mouse.move(5, 5)
    assert visit.shares(".read .place") == scaled(weights[1], weights)
    visit.page.hover(".read .place[data-place='3']")
    assert visit.shares(".token") == scaled([row[3] for row in weights], weights)
    cells = visit.shares(".heat tbody td")
    assert cells == scaled([weight for row in weights for weight in row], weights)


def test_a_step_is_worked_out(visit: Visit, speller: Path) -> None:
    visit.open("speller")
    visit.type("face")
    visit.page.click(".token[data-step='1']")
    visit.page.click("[data-part=numbers] summary")
    visit.page.wait_for_selector('.explanation')
    told = seq2see.load(speller).explain("face", step=1)
    energies = visit.page.locator(".explanation .figures").first.locator("td:nth-child(2)")
    assert [float(text) for text in energies.all_inner_texts()] == pytest.approx(told.looks[0].energies, abs=6e-4)
    visit.page.click("[data-part=answers] summary")
    assert "What is the encoder?" in visit.page.locator(".answers").inner_text()


# ---------------------------------------------------------------- the wheel


def test_a_click_on_a_place_takes_the_wheel(visit: Visit, speller: Path) -> None:
    model = seq2see.load(speller)
    before = model.predict("face")
    after = model.predict("face", prefix=[before.tokens[0].text], oracle={1: [0, 0, 0, 1]})
    assert after.text != before.text, "the edit should matter, or the test shows nothing"
    visit.open("speller")
    visit.type("face")
    visit.page.click(".token[data-step='1']")
    visit.page.click(".read .place[data-place='3']")
    visit.rest(edits=1)
    assert visit.answer() == after.text
    assert visit.texts(".running") == [before.text, after.text]
    assert visit.texts("ins"), "what differs is marked"
    visit.page.mouse.move(5, 5)
    assert visit.shares(".read .place") == [0, 0, 0, 1]
    visit.page.click("text=Undo")
    visit.rest()
    assert visit.answer() == before.text
    assert not visit.texts(".comparison")


def test_bars_are_dragged_and_moved_by_keys(visit: Visit) -> None:
    visit.open("speller")
    visit.type("face")
    wheel = visit.page.locator(".bar[data-place='2'] .track")
    wheel.scroll_into_view_if_needed()
    track = wheel.bounding_box()
    x, bottom = track["x"] + track["width"] / 2, track["y"] + track["height"]
    visit.page.mouse.move(x, bottom - 4)
    visit.page.mouse.down()
    visit.page.mouse.move(x, bottom - track["height"] * 0.5)
    visit.page.mouse.move(x, track["y"] - 10)
    visit.page.mouse.up()
    visit.rest(edits=1)
    bars = visit.page.locator(".bar")
    assert [bars.nth(n).get_attribute("aria-valuenow") for n in range(4)] == ["0.0", "0.0", "100.0", "0.0"]
    assert visit.page.evaluate("document.activeElement.dataset.place") == "2", "the keyboard stays where it was"
    for key in ("ArrowLeft", "ArrowUp", "ArrowUp"):
        visit.page.keyboard.press(key)
    visit.rest(edits=2)
    assert [bars.nth(n).get_attribute("aria-valuenow") for n in range(4)] == ["0.0", "10.0", "90.0", "0.0"]
    visit.page.keyboard.press("Control+z")
    visit.rest(edits=1)
    visit.page.click("text=Reset")
    visit.rest()


def test_another_symbol_is_chosen_and_taken_back(visit: Visit, speller: Path) -> None:
    model = seq2see.load(speller)
    before = model.predict("face")
    visit.open("speller")
    visit.type("face")
    visit.page.click(".token[data-step='1']")
    chosen = visit.page.locator("button.runner").first
    symbol = chosen.get_attribute("data-symbol")
    chosen.click()
    visit.rest(edits=1)
    after = model.predict("face", prefix=[before.tokens[0].text, symbol])
    assert visit.answer() == after.text
    assert visit.tokens()[1] == symbol
    visit.page.click(".other >> nth=0")
    visit.rest(edits=2)
    visit.page.click("text=Reset")
    visit.rest()
    assert visit.answer() == before.text


# ---------------------------------------------------------------- pictures, documents, several inputs, none


def test_a_picture_is_lit_where_it_is_looked_at(
    visit: Visit, captions: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predicted(capsys, captions, home / "1.png")
    visit.open("captions")
    visit.page.set_input_files("#entry-image", home / "1.png")
    visit.rest()
    assert visit.answer() == expected["text"]
    assert visit.page.locator(".scene").count() == len(expected["tokens"])
    painted = "document.querySelector('.stage canvas').toDataURL()"
    first = visit.page.evaluate(painted)
    visit.page.locator(".stage").click(position={"x": 30, "y": 30})
    visit.rest(edits=1)
    visit.page.wait_for_function(f"first => {painted} !== first", arg=first)
    bars = visit.page.locator(".bar")
    assert bars.count() == len(expected["looks"]["inputs"])
    assert bars.first.get_attribute("aria-valuenow") == "100.0"
    visit.page.click(".example[data-example='0']")
    visit.rest()


def test_a_document_shows_its_sentences(visit: Visit, reviews: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "This is good. I saw 3. It was good."
    expected = predicted(capsys, reviews, text)
    visit.open("reviews")
    visit.page.fill("textarea", text)
    visit.page.press("textarea", "Control+Enter")
    visit.rest()
    assert visit.answer() == expected["label"]
    assert visit.texts(".document .share") == [percent(weight) for weight in expected["looks"]["weights"][0]]
    assert visit.texts(".document .word")[:4] == ["this", "is", "good", "."]
    assert all(share >= 0 for share in visit.shares(".document .word"))
    visit.page.locator(".document li").nth(1).click()
    visit.rest(edits=1)
    assert visit.texts(".document .share") == ["0.0 %", "100 %", "0.0 %"]
    oracle = seq2see.load(reviews).predict(text, oracle={0: [0, 1, 0]})
    assert visit.texts(".token .probability") == [percent(oracle.tokens[0].probability)]


def test_several_inputs_and_none(visit: Visit, judge: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = predicted(capsys, judge, "aab\tbab")
    visit.open("judge")
    visit.type("aab", "bab")
    assert visit.answer() == expected["label"]
    visit.page.select_option("#model", "babbler")
    visit.page.wait_for_selector("text=reads nothing")
    visit.page.fill("#search-prefix", "fa")
    visit.page.press("#search-prefix", "Enter")
    visit.rest()
    assert visit.answer().startswith("fa")


# ---------------------------------------------------------------- models, colours, scripts, sizes, faults


def test_two_models_answer_side_by_side(visit: Visit) -> None:
    visit.open("speller")
    visit.type("deaf")
    visit.page.select_option("#beside", "twin")
    visit.rest(panels=2)
    assert visit.answer(0) == visit.answer(1)
    visit.page.fill("textarea", "face")
    visit.page.press("textarea", "Enter")
    visit.page.wait_for_function("() => [...document.querySelectorAll('.panel .read')].every(one => one.innerText === 'face')")
    visit.page.select_option("#model", "captions")
    visit.page.wait_for_selector("#entry-image", state="attached")
    assert visit.page.locator(".panel").count() == 1
    assert visit.page.locator("#beside").is_disabled()


def test_colours_are_those_of_the_pictures(browser: Any, site: str) -> None:
    with visiting(browser, site, color_scheme="light") as visit:
        visit.open("speller")
        assert (visit.colour(".panel"), visit.colour("body", "color")) == (THEMES["light"].paper, THEMES["light"].ink)
        visit.page.click("#theme")
        assert (visit.colour(".panel"), visit.colour("body", "color")) == (THEMES["dark"].paper, THEMES["dark"].ink)
        visit.page.reload()
        visit.page.wait_for_selector("body[data-state=ready]")
        assert visit.colour(".panel") == THEMES["dark"].paper, "what was chosen is kept"
    with visiting(browser, site, color_scheme="dark") as visit:
        visit.open("speller")
        assert visit.colour(".panel") == THEMES["dark"].paper
        for name, theme in THEMES.items():
            visit.page.evaluate("name => { document.documentElement.dataset.theme = name }", name)
            read = "n => getComputedStyle(document.documentElement).getPropertyValue(`--ramp-${n}`)"
            assert [visit.page.evaluate(read, n) for n in range(7)] == list(theme.ramp)


def test_arabic_runs_from_right_to_left(visit: Visit) -> None:
    visit.open("speller")
    assert visit.direction("textarea") == "ltr"
    visit.type("سلام")
    assert (visit.direction("textarea"), visit.direction(".read")) == ("rtl", "rtl")
    boxes = [visit.page.locator(".read .place").nth(n).bounding_box() for n in range(4)]
    assert boxes[0]["x"] > boxes[1]["x"] > boxes[3]["x"], "the first letter is the rightmost"
    assert "not known to the model" in visit.page.locator(".notices").inner_text()


def test_markup_is_text(visit: Visit) -> None:
    visit.open("speller")
    visit.type(HTML)
    assert visit.page.locator(".read").inner_text() == HTML
    assert visit.page.locator(".read b").count() == 0


def test_a_refusal_is_told_in_the_servers_words(browser: Any, site: str) -> None:
    with visiting(browser, site) as visit:
        visit.open("speller")
        visit.page.click("button.primary")
        assert "there is nothing yet" in visit.page.locator(".complaint").inner_text()
        visit.page.fill("textarea", "a" * 1001)
        visit.page.press("textarea", "Enter")
        visit.page.wait_for_selector(".panel[data-state=failed]")
        assert "1,001 characters; allowed: at most 1,000" in visit.page.locator(".panel .status").inner_text()
        visit.faults.clear()  # the browser notes every 4xx
        visit.type("face")
        assert visit.page.locator(".panel .status").inner_text() == ""


def test_a_phone_is_wide_enough(browser: Any, site: str) -> None:
    with visiting(browser, site, viewport={"width": 360, "height": 740}, has_touch=True) as visit:
        for model, word in (("speller", "facefacefaceface"), ("captions", "")):
            visit.open(model)
            if word:
                visit.type(word)
            else:
                visit.page.click(".example >> nth=0")
                visit.rest()
            assert visit.page.evaluate("document.documentElement.scrollWidth") == 360
