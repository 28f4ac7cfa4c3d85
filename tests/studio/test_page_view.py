"""What the page shows: an example at once, one step at a time, weights to scale; its address names all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import seq2see
from tests.studio.browsing import Visit, fraction, percent, predicted, visiting

EVERY = ("speller", "captions", "reviews", "judge", "babbler", "scribe")
STEPS = """() => ({
  token: document.querySelector(".token[aria-current]").dataset.step,
  row: document.querySelector(".heat tr.active").dataset.step,
  title: document.querySelector(".step h3").innerText.split(" ")[1] - 1 + "",
  marked: document.querySelectorAll(".token[aria-current], .heat tr.active").length,
  weights: [...document.querySelectorAll(".bar")].map((bar) => Number(bar.getAttribute("aria-valuenow"))),
})"""
"""The step that each part of the page shows."""


def shown_step(visit: Visit, step: int, weights: list[list[float]]) -> None:
    shown = visit.page.evaluate(STEPS)
    assert (shown["token"], shown["row"], shown["title"], shown["marked"]) == (str(step), str(step), str(step), 2)
    assert shown["weights"] == pytest.approx(weights[step], abs=1e-3)


def test_no_page_starts_empty(visit: Visit) -> None:
    visit.page.goto(visit.address)
    visit.rest()
    assert visit.answer()
    for model in EVERY[1:]:
        visit.page.select_option("#model", model)
        visit.page.wait_for_function(
            "name => document.querySelector('.panel').getAttribute('aria-label') === name", arg=model
        )
        visit.rest()
        assert visit.answer(), model


def test_what_is_typed_goes_along_to_the_next_model_and_an_example_does_not(visit: Visit) -> None:
    visit.open("speller")
    example = visit.page.input_value("textarea")
    visit.page.select_option("#model", "scribe")
    visit.page.wait_for_function("before => document.querySelector('textarea').value !== before", arg=example)
    visit.open("speller")
    visit.type("face")
    visit.page.select_option("#model", "twin")
    visit.page.wait_for_selector(".panel[aria-label=twin][data-state=ready]")
    assert visit.page.input_value("textarea") == "face"
    assert visit.page.locator(".panel .read").inner_text() == "face"


def test_pointing_shows_one_step_everywhere(visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = predicted(capsys, speller, "face")["looks"]["weights"]
    visit.open("speller")
    visit.type("face")
    visit.page.click(".token[data-step='1']")
    shown_step(visit, 1, weights)
    for pointed in (".token[data-step='3']", ".heat tr[data-step='3'] td >> nth=1"):
        visit.page.hover(pointed)
        shown_step(visit, 3, weights)
        visit.page.mouse.move(5, 5)
        shown_step(visit, 1, weights)
    visit.page.hover(".token[data-step='3']")
    visit.page.focus(".token[data-step='2']")
    shown_step(visit, 2, weights)


def test_pointing_leaves_the_keyboard_where_it_is(visit: Visit) -> None:
    visit.open("speller")
    visit.type("face")
    visit.page.focus(".bar[data-place='2']")
    visit.page.hover(".token[data-step='1']")
    assert visit.page.evaluate("document.activeElement.dataset.place") == "2"
    visit.page.mouse.move(5, 5)
    assert visit.page.evaluate("document.activeElement.dataset.place") == "2"


def test_pointing_at_a_place_marks_its_column_and_its_bar(visit: Visit) -> None:
    visit.open("speller")
    visit.type("face")
    for pointed in (".read .place[data-place='2']", ".bar[data-place='2'] .track"):
        visit.page.hover(pointed)
        assert visit.page.locator(".bar.pointed").get_attribute("data-place") == "2"
        assert visit.texts(".heat th.pointed") == ["c"]
        visit.page.mouse.move(5, 5)
        assert visit.page.locator(".pointed").count() == 0


def test_bars_are_as_high_as_their_weights(visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = predicted(capsys, speller, "face")["looks"]["weights"][0]
    visit.open("speller")
    visit.type("face")
    read = (
        "all => all.map(one => one.getBoundingClientRect().height / one.parentElement.getBoundingClientRect().height)"
    )
    assert visit.page.locator(".bar .track i").evaluate_all(read) == pytest.approx(weights, abs=0.012)
    scale = visit.page.locator(".scale span")
    tops = scale.evaluate_all(
        "all => all.map(one => (one.getBoundingClientRect().top + one.getBoundingClientRect().bottom) / 2)"
    )
    track = visit.page.locator(".track").first.bounding_box()
    ends = [track["y"], track["y"] + track["height"] / 2, track["y"] + track["height"]]
    assert (scale.all_inner_texts(), tops) == (["1", ".5", "0"], pytest.approx(ends, abs=2))


def test_a_kind_of_number_has_one_unit(visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Probabilities in percent, weights as fractions, and the same three numbers for every whole output."""
    expected = predicted(capsys, speller, "face")
    visit.open("speller")
    visit.type("face")
    titles = visit.page.locator(".heat tbody td").evaluate_all("all => all.map(one => one.title)")
    weights = [weight for row in expected["looks"]["weights"] for weight in row]
    assert [title.strip("\u2066\u2069").split(" ", 1)[1] for title in titles] == [
        fraction(weight) for weight in weights
    ]
    visit.page.click("[data-part=numbers] summary")
    visit.page.wait_for_selector(".explanation")
    told = visit.page.locator(".explanation .figures").last.locator("td:nth-child(2)")
    likeliest = seq2see.load(speller).explain("face", step=0).likeliest
    assert told.all_inner_texts() == [percent(probability) for _, probability in likeliest]
    visit.page.click(".read .place[data-place='3']")
    visit.rest(edits=1)
    names = "all => all.map(one => one.dataset.measure)"
    assert visit.page.locator(".side .measure").evaluate_all(names) == 2 * ["probability", "score", "log P"]


def test_the_end_has_one_name(visit: Visit, site: str) -> None:
    visit.open("speller")
    visit.type("face")
    assert visit.tokens()[-1] == "<eos>"
    visit.page.click(".token >> nth=-1")
    assert "<eos>" in visit.page.locator(".step h3").inner_text()
    assert "<eos>" in visit.texts(".runner .name")
    assert visit.texts(".heat tbody th")[-1] == "<eos>"
    visit.page.goto(f"{site}live?model=speller")
    visit.page.wait_for_selector("body[data-state=recorded]")
    assert visit.texts(".example >> nth=0 >> tbody th")[-1] == "<eos>"


UPRIGHT = """async (names) => {
  const { attentionBars } = await import("./static/js/attention_bars.js");
  const { heatmap } = await import("./static/js/heatmap.js");
  const on = { change() {}, done() {}, point() {}, choose() {} };
  const weights = names.map(() => 1 / names.length);
  const map = { name: "source", inputs: names, layout: { kind: "tokens" } };
  const parts = [
    attentionBars({ names, weights, label: "", on }).element,
    heatmap({ map, weights: [weights], rows: ["a"], on }).element,
  ];
  document.querySelector("#panels").replaceChildren(...parts);
  const modes = (selector) => [...document.querySelectorAll(selector)].map((one) => getComputedStyle(one).writingMode);
  return [modes(".bar .label"), modes(".heat thead bdi")];
}"""
"""How the labels of bars and of columns are written."""


def test_letters_stand_upright(visit: Visit) -> None:
    visit.open("scribe")
    turned = ["vertical-rl", "horizontal-tb", "horizontal-tb"]
    assert visit.page.evaluate(UPRIGHT, ["والاستقلالية", "و", "نَ"]) == [turned, turned]
    assert visit.page.evaluate(UPRIGHT, ["independently", "a", "."]) == [turned, turned]
    flat = ["horizontal-tb"] * 3
    assert visit.page.evaluate(UPRIGHT, ["كتاب", "و", "بيت"]) == [flat, flat], "short words fit side by side"


def test_the_scale_of_colours_rises_to_the_right_in_any_script(visit: Visit) -> None:
    visit.open("scribe")
    visit.type("سلام")
    lefts = visit.page.locator(".key > *").evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")
    assert lefts == sorted(lefts)
    assert visit.texts(".key > span")[0] == "0"


def test_the_address_names_the_view(visit: Visit) -> None:
    visit.open("speller", beside="twin")
    visit.rest(panels=2)
    visit.page.click("details.search summary")
    visit.page.fill("#search-beam", "1")
    visit.page.fill("textarea", "fa & ed#?+ سلام")
    visit.page.press("textarea", "Enter")
    visit.page.wait_for_function("() => location.hash.includes('beam=1')")
    visit.rest(panels=2)
    visit.page.click(".panel >> nth=0 >> .token[data-step='2']")
    answers = [visit.answer(0), visit.answer(1)]
    address = str(visit.page.url)
    visit.page.goto("about:blank")
    visit.page.goto(address)
    visit.rest(panels=2)
    assert visit.page.input_value("textarea") == "fa & ed#?+ سلام"
    assert visit.page.input_value("#search-beam") == "1"
    assert [visit.answer(0), visit.answer(1)] == answers
    assert visit.page.locator(".panel >> nth=0 >> .token[aria-current]").get_attribute("data-step") == "2"


def test_the_address_names_several_inputs_examples_and_samples(visit: Visit) -> None:
    visit.open("judge")
    visit.type("aab", "bab")
    visit.page.wait_for_function("() => location.hash.includes('bab')")
    visit.page.reload()
    visit.rest()
    assert [area.input_value() for area in visit.page.locator("textarea").all()] == ["aab", "bab"]
    visit.open("captions")
    visit.page.click(".example[data-example='1']")
    visit.page.wait_for_function("() => location.hash.includes('input=1')")
    visit.rest()
    source = visit.page.locator(".preview img").get_attribute("src")
    visit.page.reload()
    visit.rest()
    assert visit.page.locator(".preview img").get_attribute("src") == source
    visit.open("babbler")
    visit.rest()
    written = visit.answer()
    visit.page.reload()
    visit.rest()
    assert visit.answer() == written, "the seed is in the address"


def test_back_shows_the_input_before(visit: Visit) -> None:
    visit.open("speller")
    for word in ("face", "deaf"):
        visit.type(word)
    visit.page.go_back()
    visit.page.wait_for_function("() => document.querySelector('.read')?.innerText === 'face'")
    assert visit.page.input_value("textarea") == "face"


def test_an_address_with_an_unknown_model_says_so(browser: Any, site: str) -> None:
    with visiting(browser, site) as visit:
        visit.page.goto(f"{site}#model=nowhere")
        visit.page.locator("#failure", has_text="not served here: nowhere").wait_for()
        visit.rest()
        assert visit.answer()


def test_an_address_of_nothing_shows_an_example(browser: Any, site: str) -> None:
    with visiting(browser, site) as visit:
        visit.page.goto(f"{site}#model=captions&input=999&beam=x&step=-4")
        visit.rest()
        assert visit.answer()
