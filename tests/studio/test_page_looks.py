"""The page for everybody: two models, colours, scripts, markup, refusals, phones."""

from __future__ import annotations

from typing import Any

from seq2see.seeing.style import THEMES
from tests.studio.browsing import Visit, visiting

HTML = "<b>face</b>"


def test_two_models_answer_side_by_side(visit: Visit) -> None:
    visit.open("speller")
    visit.type("deaf")
    visit.page.select_option("#beside", "twin")
    visit.rest(panels=2)
    assert visit.answer(0) == visit.answer(1)
    visit.page.fill("textarea", "face")
    visit.page.press("textarea", "Enter")
    both = "() => [...document.querySelectorAll('.panel .read')].every(one => one.innerText === 'face')"
    visit.page.wait_for_function(both)
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
        told = "() => { const all = getComputedStyle(document.documentElement); return [...all].filter("
        told += "name => name.startsWith('--')).map(name => [name, all.getPropertyValue(name)]) }"
        by_system = visit.page.evaluate(told)
        for name, theme in THEMES.items():
            visit.page.evaluate("name => { document.documentElement.dataset.theme = name }", name)
            read = "n => getComputedStyle(document.documentElement).getPropertyValue(`--ramp-${n}`)"
            assert [visit.page.evaluate(read, n) for n in range(7)] == list(theme.ramp)
        assert visit.page.evaluate(told) == by_system, "dark by choice is dark as the system has it"
        assert len(by_system) > 15


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
        visit.page.fill("textarea", "")
        visit.page.click("button.primary")
        assert "source" in visit.page.locator(".complaint").inner_text()
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


def test_the_page_of_the_api_tells_routes_keys_and_statuses(visit: Visit) -> None:
    visit.page.goto(f"{visit.address}docs")
    visit.page.wait_for_selector("section")
    routes = visit.texts("h2")
    assert {"POST /api/predict", "GET /api/models", "GET /health"} <= set(routes)
    first = visit.page.locator("section").nth(routes.index("POST /api/predict"))
    assert first.locator("table").first.locator("td", has_text="integer (1 to 64)").count() == 2
    folded = first.locator("summary").all_inner_texts()
    assert (folded[0], folded[-1]) == ("As multipart/form-data", "Statuses")
    assert any("speller" in title for title in folded), "there are examples of requests"
    assert visit.page.locator("header a[href='./']").count() == 2, "there is a way back to the studio"
    assert "undefined" not in visit.page.inner_text("main")
