"""The page in a browser: text is typed, symbols are pointed at, attention is edited, as a person does it."""

from __future__ import annotations

from pathlib import Path

import pytest

import seq2see
from tests.studio.browsing import Visit, percent, predicted, scaled


def test_what_is_typed_is_answered_as_on_the_command_line(
    visit: Visit, speller: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = predicted(capsys, speller, "face")
    visit.open("speller")
    visit.type("face")
    assert visit.answer() == expected["text"]
    assert visit.tokens() == [one["text"] for one in expected["tokens"][:-1]] + ["<eos>"]
    assert visit.texts(".token .probability") == [percent(one["probability"]) for one in expected["tokens"]]
    assert [text.split("\n")[0] for text in visit.texts(".other")] == [one["text"] for one in expected["alternatives"]]
    announced = visit.page.locator("[aria-live]").inner_text()
    assert "speller" in announced
    assert announced.endswith(expected["text"])


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


def test_any_word_is_shown_as_itself(visit: Visit) -> None:
    visit.open("reviews")
    visit.page.fill("textarea", "The constructor saw a good valueOf toString.")
    visit.page.press("textarea", "Control+Enter")
    visit.rest()
    assert visit.texts(".document .word")[:6] == ["the", "constructor", "saw", "a", "good", "valueof"]
    read = "async symbol => (await import('/static/js/symbols.js')).visible(symbol)"
    words = ("constructor", "toString", "__proto__", "<eos>", " ")
    assert [visit.page.evaluate(read, word) for word in words] == ["constructor", "toString", "__proto__", "<eos>", "␣"]


def test_a_step_is_worked_out(visit: Visit, speller: Path) -> None:
    visit.open("speller")
    visit.type("face")
    visit.page.click(".token[data-step='1']")
    visit.page.click("[data-part=numbers] summary")
    visit.page.wait_for_selector(".explanation")
    told = seq2see.load(speller).explain("face", step=1)
    energies = visit.page.locator(".explanation .figures").first.locator("td:nth-child(2)")
    assert [float(text) for text in energies.all_inner_texts()] == pytest.approx(told.looks[0].energies, abs=6e-4)
    visit.page.click("[data-part=answers] summary")
    visit.page.locator(".answers", has_text="What is the encoder?").wait_for()


def test_a_click_on_a_place_edits_the_attention(visit: Visit, speller: Path) -> None:
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
    bar = visit.page.locator(".bar[data-place='2'] .track")
    bar.scroll_into_view_if_needed()
    track = bar.bounding_box()
    x, bottom = track["x"] + track["width"] / 2, track["y"] + track["height"]
    visit.page.mouse.move(x, bottom - 4)
    visit.page.mouse.down()
    visit.page.mouse.move(x, bottom - track["height"] * 0.5)
    visit.page.mouse.move(x, track["y"] - 10)
    visit.page.mouse.up()
    visit.rest(edits=1)
    bars = visit.page.locator(".bar")
    assert [bars.nth(n).get_attribute("aria-valuenow") for n in range(4)] == ["0.000", "0.000", "1.000", "0.000"]
    assert visit.page.evaluate("document.activeElement.dataset.place") == "2", "the keyboard stays where it was"
    visit.page.keyboard.press("ArrowLeft")
    twice = "key => { for (const _ of [1, 2]) document.activeElement.dispatchEvent(new KeyboardEvent('keydown', key)) }"
    visit.page.evaluate(twice, {"key": "ArrowUp", "bubbles": True})  # at once: a pause between them makes two edits
    visit.rest(edits=2)
    assert [bars.nth(n).get_attribute("aria-valuenow") for n in range(4)] == ["0.000", "0.100", "0.900", "0.000"]
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
