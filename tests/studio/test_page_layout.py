"""What stands on the page: numbers under their names and in their order, nothing cut off, nothing that jumps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import seq2see
from tests.studio.browsing import LEFTWARD, Visit, moved, predicted, visiting

WIDTHS = (1280, 1024, 768, 390)
CUT = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"


def test_every_output_is_told_by_the_same_two_numbers(
    visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predicted(capsys, speller, "face")
    ranked = [expected, *expected["alternatives"]]
    visit.open("speller")
    visit.type("face")
    assert visit.texts(".ranked.head .figure") == ["score", "log P"]
    assert visit.texts(".nbest .ranked bdi") == [one["text"] for one in ranked]
    assert visit.texts(".nbest .score") == [f"{one['score']:.3f}" for one in ranked]
    assert visit.texts(".nbest .sum") == [f"{one['log_probability']:.3f}" for one in ranked]
    measures = visit.page.locator(".measure").evaluate_all(
        "all => all.map(one => [one.dataset.measure, one.innerText])"
    )
    assert [name for name, _ in measures] == ["probability", "score", "log P"]
    assert [text for _, text in measures][1:] == [
        f"score {expected['score']:.3f}",
        f"log P {expected['log_probability']:.3f}",
    ]
    visit.page.click(".other >> nth=0")
    visit.rest(edits=1)
    chosen = visit.page.locator(".said .measure[data-measure=score] b").inner_text()
    assert float(chosen) == pytest.approx(expected["alternatives"][0]["score"], abs=2e-3)


def test_the_order_is_explained(visit: Visit) -> None:
    visit.open("speller")
    read = """async (search) => (await import('/static/js/nbest.js')).nBest(
        {text: "a", score: -1, log_probability: -2, alternatives: [{text: "b", score: -0.5, log_probability: -1}]},
        search, () => {}).querySelector(".order").innerText"""
    said = {
        name: visit.page.evaluate(read, {"length_penalty": penalty, "consensus": consensus})
        for name, penalty, consensus in (("plain", 0, 0), ("mean", 1, 0), ("power", 0.6, 0), ("agreed", 1, 2))
    }
    assert "log P itself" in said["plain"]
    assert "0.6" in said["power"]
    assert "consensus" in said["agreed"]
    assert "consensus" not in said["mean"]
    assert len(set(said.values())) == 4


def test_a_label_has_a_probability_and_no_score(visit: Visit) -> None:
    visit.open("judge")
    visit.type("aba", "abb")
    assert visit.page.locator(".measure[data-measure=score]").count() == 0
    assert visit.page.locator(".measure[data-measure='log P']").count() == 1


def test_numbers_run_from_left_to_right_in_any_script(visit: Visit, site: str, scribe: Path, tmp_path: Path) -> None:
    word = "سلامبتنسلامبتن"
    visit.open("scribe")
    visit.type(word)
    assert (visit.direction(".tokens"), visit.direction(".bars")) == ("rtl", "rtl")
    visit.page.click(".bar[data-place='3'] .track", position={"x": 5, "y": 10})
    visit.rest(edits=1)
    assert any(text.startswith(".") for text in visit.texts(".bar .figure")), "a weight below one is shown"
    assert visit.page.evaluate(LEFTWARD) == []
    visit.page.goto(f"{site}live?model=scribe")
    visit.page.wait_for_selector("body[data-state=recorded]")
    assert visit.direction(".heat") == "rtl"
    assert visit.page.evaluate(LEFTWARD) == []


def test_right_to_left_documents_have_their_shares_in_order(visit: Visit) -> None:
    visit.open("reviews")
    visit.page.fill("textarea", "سلام good. سلام bad. سلام.")
    visit.page.press("textarea", "Control+Enter")
    visit.rest()
    assert visit.direction(".document") == "rtl"
    assert visit.page.evaluate(LEFTWARD) == []


def test_pages_of_looks_keep_numbers_and_arrows_in_order(browser: Any, scribe: Path, tmp_path: Path) -> None:
    path = seq2see.load(scribe).predict("سلامبتنسلامبتن").looks.save(tmp_path / "looks.html")
    with visiting(browser, path.parent.as_uri(), viewport={"width": 1280, "height": 2000}) as visit:
        visit.page.goto(path.as_uri())
        visit.page.hover("tbody tr:nth-child(2) td >> nth=2")
        assert visit.page.evaluate(LEFTWARD) == []
        assert visit.direction(".readout") == "ltr", "an arrow points from the output to the place"
        assert moved(visit.page, "[data-step]", "[data-place]", "tbody td", "tbody th") == []
    with visiting(browser, path.parent.as_uri(), viewport={"width": 390, "height": 2000}) as visit:
        visit.page.goto(path.as_uri())
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 390
        assert moved(visit.page, "[data-step]", "[data-place]", most=3) == []


@pytest.mark.parametrize(
    ("model", "selectors"),
    [
        ("speller", (".token", ".heat tbody td", ".heat tbody th", ".read .place", ".bar", ".runner", ".ranked")),
        ("captions", (".token", ".scene", ".stage", ".bar")),
        ("reviews", (".token", ".document li", ".document .word")),
    ],
)
def test_pointing_moves_nothing(browser: Any, site: str, model: str, selectors: tuple[str, ...]) -> None:
    with visiting(browser, site, viewport={"width": 1280, "height": 2400}) as visit:
        visit.open(model)
        if model == "captions":
            visit.page.click(".example >> nth=0")
        else:
            visit.page.fill("textarea", "This is a good one. It was bad." if model == "reviews" else "facedeaf")
            visit.page.press("textarea", "Control+Enter")
        visit.rest()
        assert moved(visit.page, *selectors) == []


def test_heatmaps_of_a_run_are_whole_at_1280_pixels(browser: Any, site: str) -> None:
    with visiting(browser, site, viewport={"width": 1280, "height": 900}) as visit:
        visit.page.goto(f"{site}live?model=scribe")
        visit.page.wait_for_selector("body[data-state=recorded]")
        heatmaps = visit.page.locator(".example .scroll")
        assert heatmaps.count() > 1
        assert heatmaps.evaluate_all(CUT) == 0
        assert heatmaps.evaluate_all("all => all.filter(one => one.scrollHeight > one.clientHeight + 1).length") == 0


LINES = """all => all.map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
})"""
"""On how many lines the text of each element stands."""


def test_probabilities_of_a_run_stand_on_one_line(browser: Any, site: str) -> None:
    with visiting(browser, site, viewport={"width": 1280, "height": 900}) as visit:
        visit.page.goto(f"{site}live?model=scribe")
        visit.page.wait_for_selector("body[data-state=recorded]")
        cells = visit.page.locator(".heat td.probability")
        cells.evaluate_all("all => all.forEach((one) => { one.textContent = '< 0.1 %'; })")
        assert set(cells.evaluate_all(LINES)) == {1}


@pytest.mark.parametrize("width", [360, 1280])
def test_names_of_the_lists_of_models_are_whole(browser: Any, site: str, width: int) -> None:
    with visiting(browser, site, viewport={"width": width, "height": 740}) as visit:
        visit.open("speller")
        names = visit.page.locator(".top nav label span")
        assert names.count() == 2
        assert names.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0


def check_widths(browser: Any, site: str, *widths: int) -> None:
    """All pages, opened in a window of the first width, which is made as wide as the others."""
    with visiting(browser, site, viewport={"width": widths[0], "height": 900}) as visit:
        page = visit.page

        def check(where: str) -> None:
            for width in (*widths[1:], widths[0]):
                page.set_viewport_size({"width": width, "height": 900})
                page.wait_for_function("width => window.innerWidth === width", arg=width)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, where

        visit.open("scribe")
        visit.type("سلامبتنسلامبتن")
        for part in ("details.search", "[data-part=answers]", "[data-part=numbers]"):
            page.click(f"{part} summary")
        page.wait_for_selector(".explanation")
        check("studio")
        page.goto(f"{site}live?model=scribe")
        page.wait_for_selector("body[data-state=recorded]")
        for summary in page.locator("summary").all():
            summary.click()
        check("live")
        page.goto(f"{site}docs")
        page.wait_for_selector("#routes section")
        check("docs")


def test_no_page_is_wider_than_the_window(browser: Any, site: str) -> None:
    check_widths(browser, site, *reversed(WIDTHS))


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_window_it_is_opened_in(browser: Any, site: str, width: int) -> None:
    check_widths(browser, site, width)
