"""The beam tree on the page: drawn as the server sends it, forced, pruned, taken back; by pointer and by keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.looks import BeamTree
from tests.studio.browsing import LEFTWARD, Visit, moved, percent, visiting

WORD = "سلامبتنسلامبتن"


def opened(visit: Visit, model: str, text: str) -> None:
    visit.open(model)
    visit.type(text)
    visit.page.click("[data-part=tree] summary")
    visit.page.wait_for_selector(".node")


def paths(visit: Visit, selector: str = ".node") -> list[list[str]]:
    read = "all => all.map(one => JSON.parse(one.dataset.path))"
    return list(visit.page.locator(selector).evaluate_all(read))


def node(path: list[str]) -> str:
    written = json.dumps(path, separators=(",", ":"), ensure_ascii=False)
    return f".node[data-path={json.dumps(written, ensure_ascii=False)}]"


def tree_of(folder: Path, text: str, **options: Any) -> BeamTree:
    tree = seq2see.load(folder).predict(text, tree=True, **options).tree
    assert tree is not None
    return tree


def test_every_node_is_drawn_with_its_probability_and_state(visit: Visit, speller: Path) -> None:
    expected = tree_of(speller, "face")
    opened(visit, "speller", "face")
    assert len(paths(visit)) == len(expected.nodes)
    for number, each in enumerate(expected.nodes):
        drawn = visit.page.locator(node(expected.path(number)))
        assert drawn.get_attribute("data-state") == each.state
        assert drawn.locator(".probability").inner_text() == percent(each.probability)
        assert each.state in drawn.get_attribute("aria-label")
        rank = drawn.locator(".rank")
        assert rank.all_inner_texts() == ([] if each.output is None else [str(each.output + 1)])
    borders = {
        state: visit.page.locator(f".node[data-state={state}]").first.evaluate(
            "one => getComputedStyle(one).borderStyle"
        )
        for state in {each.state for each in expected.nodes}
    }
    assert len(set(borders.values())) == len(borders), "states differ without colour"
    widths = visit.page.locator(".link").evaluate_all("all => all.map(one => Number(one.getAttribute('stroke-width')))")
    assert max(widths) > 2 * min(widths)


def test_choosing_a_node_continues_from_there(visit: Visit, speller: Path) -> None:
    opened(visit, "speller", "face")
    path = paths(visit, ".node[data-state=pruned]")[0]
    visit.page.hover(node(path))
    top = "() => document.querySelector('.beam').getBoundingClientRect().top"
    before = visit.page.evaluate(top)
    visit.page.click(node(path))
    visit.rest(edits=1)
    assert visit.page.evaluate(top) == pytest.approx(before, abs=2), "the tree stays under the pointer"
    assert visit.tokens()[: len(path)] == path
    assert visit.answer() == seq2see.load(speller).predict("face", prefix=path).text
    assert visit.page.locator(".node[data-state=forced]").count() == len(path)
    assert all(each[: len(path)] == path[: len(each)] for each in paths(visit))
    assert visit.page.evaluate("JSON.parse(document.activeElement.dataset.path)") == path, "the keyboard stays there"
    visit.page.click("text=Undo")
    visit.rest()
    assert visit.page.locator(".node[data-state=forced]").count() == 0


def test_a_pruned_node_is_avoided_until_it_is_allowed_again(visit: Visit, speller: Path) -> None:
    opened(visit, "speller", "face")
    before, first = visit.answer(), visit.tokens()[0]
    visit.page.hover(node([first]))
    visit.page.click(f".branch:has({node([first])}) .prune")
    visit.rest(edits=1)
    assert visit.tokens()[0] != first
    assert visit.answer() == seq2see.load(speller).predict("face", avoid_prefixes=[[first]]).text
    assert all(path[0] != first for path in paths(visit))
    second = visit.tokens()[:2]
    visit.page.focus(node(second))
    visit.page.keyboard.press("Delete")
    visit.rest(edits=2)
    assert [" ".join(text.split()[:-1]) for text in visit.texts(".avoided li")] == [
        f"avoids “{first}”",
        f"avoids “{' '.join(second)}”",
    ]
    visit.page.click(".avoided button >> nth=0")
    visit.rest(edits=3)
    assert visit.tokens()[0] == first
    visit.page.click("text=Reset")
    visit.rest()
    assert (visit.answer(), visit.page.locator(".avoided").count()) == (before, 0)


def test_what_was_pruned_may_be_chosen_and_what_was_forced_pruned(visit: Visit) -> None:
    opened(visit, "speller", "face")
    first = visit.tokens()[0]
    visit.page.focus(node([first]))
    visit.page.keyboard.press("Delete")
    visit.rest(edits=1)
    visit.page.click(".token[data-step='0']")
    visit.page.click(f"button.runner[data-symbol='{first}']")
    visit.rest(edits=2)
    assert visit.tokens()[0] == first
    assert visit.page.locator(".avoided").count() == 0
    visit.page.focus(node([first]))
    visit.page.keyboard.press("Delete")
    visit.rest(edits=3)
    assert visit.tokens()[0] != first


def test_the_keyboard_goes_through_the_tree(visit: Visit) -> None:
    opened(visit, "speller", "face")
    visit.page.focus("[data-part=tree] summary")
    visit.page.keyboard.press("Tab")
    held = "JSON.parse(document.activeElement.dataset.path)"
    whole = visit.page.evaluate(held)
    assert whole == visit.tokens(), "one stop: the end of the output that is shown"
    for key, expected in (("Home", whole[:1]), ("ArrowRight", whole[:2]), ("ArrowLeft", whole[:1])):
        visit.page.keyboard.press(key)
        assert visit.page.evaluate(held) == expected
    visit.page.keyboard.press("ArrowDown")
    other = visit.page.evaluate(held)
    assert len(other) == 1
    assert other != whole[:1]
    visit.page.keyboard.press("Enter")
    visit.rest(edits=1)
    assert visit.tokens()[:1] == other


def test_a_tree_runs_with_its_script(visit: Visit) -> None:
    opened(visit, "scribe", WORD)
    assert visit.direction(".tree") == "rtl"
    centre = "one => one.getBoundingClientRect().left"
    symbols = visit.tokens()
    lefts = [visit.page.locator(node(symbols[: end + 1])).evaluate(centre) for end in range(3)]
    assert lefts == sorted(lefts, reverse=True)
    assert visit.page.evaluate(LEFTWARD) == []
    visit.page.focus(node(symbols[:1]))
    visit.page.keyboard.press("ArrowLeft")
    assert visit.page.evaluate("JSON.parse(document.activeElement.dataset.path)") == symbols[:2]


@pytest.mark.parametrize("width", [1280, 390])
def test_a_tree_fits_the_window(browser: Any, site: str, width: int) -> None:
    with visiting(browser, site, viewport={"width": width, "height": 900}) as visit:
        opened(visit, "scribe", WORD)
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        if width == 1280:
            assert moved(visit.page, ".node") == []


def test_pruned_nodes_can_be_hidden(visit: Visit) -> None:
    opened(visit, "speller", "face")
    assert visit.page.locator(".node[data-state=pruned]").count()
    visit.page.uncheck(".legend input")
    assert visit.page.locator(".node[data-state=pruned]").count() == 0
    assert visit.page.locator(".node[data-state=kept]").count()


def test_no_tree_says_why(visit: Visit) -> None:
    visit.open("speller")
    visit.page.click("details.search summary")
    visit.page.fill("#search-beam", "1")
    visit.type("face")
    visit.page.click("[data-part=tree] summary")
    visit.page.locator(".beam .folded", has_text="greedy").wait_for()
    visit.open("judge")
    visit.type("aba", "abb")
    assert visit.page.locator(".beam").count() == 0
