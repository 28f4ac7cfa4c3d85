"""Pictures, documents, films, sounds, several inputs and none on the page."""

from __future__ import annotations

import wave
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import seq2see
from seq2see.data.image_files import data_url
from tests.studio.browsing import Visit, fraction, percent, predicted


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
    assert bars.first.get_attribute("aria-valuenow") == "1.000"
    visit.page.click(".example[data-example='0']")
    visit.rest()


def test_a_picture_is_painted_on(visit: Visit, captions: Path, home: Path) -> None:
    visit.open("captions")
    visit.page.set_input_files("#entry-image", home / "1.png")
    visit.rest()
    model = seq2see.load(captions)
    places = len(model.predict(str(home / "1.png")).looks.weights[0])
    side = round(places**0.5)
    assert side**2 == places > 4
    painted = "document.querySelector('.stage canvas').toDataURL()"
    mouse, stage = visit.page.mouse, visit.page.locator(".stage")

    def to(row: int, column: int, steps: int = 1) -> None:
        stage.scroll_into_view_if_needed()
        box = stage.bounding_box()
        x, y = box["x"] + (column + 0.5) * box["width"] / side, box["y"] + (row + 0.5) * box["height"] / side
        mouse.move(x, y, steps=steps)

    def weights() -> list[float]:
        read = "all => all.map(one => Number(one.getAttribute('aria-valuenow')))"
        return list(visit.page.locator(".bar").evaluate_all(read))

    to(0, 0)
    mouse.down()
    before = visit.page.evaluate(painted)
    to(0, side - 1)  # one leap: the cells between are passed as well
    visit.page.wait_for_function(f"before => {painted} !== before", arg=before)
    mouse.up()
    visit.rest(edits=1)
    row = [1 / side] * side + [0.0] * (places - side)
    assert weights() == pytest.approx(row, abs=1e-3)
    expected = model.predict(str(home / "1.png"), beam=1, oracle={0: row})
    assert visit.tokens()[0] == expected.tokens[0].text
    visit.page.keyboard.down("Shift")
    to(side - 1, 0)
    mouse.down()
    to(side - 1, side - 1, steps=20)
    to(side - 1, side - 2, steps=5)
    mouse.up()
    visit.page.keyboard.up("Shift")
    visit.rest(edits=2)
    last = [1.0] * (side - 2) + [2.0, 1.0]
    both = [1.0] * side + [0.0] * (places - 2 * side) + last
    assert weights() == pytest.approx([weight / sum(both) for weight in both], abs=1e-3)
    stage.click(position={"x": 10, "y": 10})
    visit.rest(edits=3)
    assert weights()[0] == 1


def test_a_document_shows_its_sentences(visit: Visit, reviews: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "This is good. I saw 3. It was good."
    expected = predicted(capsys, reviews, text)
    visit.open("reviews")
    visit.page.fill("textarea", text)
    visit.page.press("textarea", "Control+Enter")
    visit.rest()
    assert visit.answer() == expected["label"]
    assert visit.texts(".document .share") == [fraction(weight) for weight in expected["looks"]["weights"][0]]
    assert visit.texts(".document .word")[:4] == ["this", "is", "good", "."]
    assert all(share >= 0 for share in visit.shares(".document .word"))
    visit.page.locator(".document li").nth(1).click()
    visit.rest(edits=1)
    assert visit.texts(".document .share") == ["0.00", "1.00", "0.00"]
    oracle = seq2see.load(reviews).predict(text, oracle={0: [0, 1, 0]})
    assert visit.texts(".token .probability") == [percent(oracle.tokens[0].probability)]


def test_several_inputs_and_none(visit: Visit, judge: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = predicted(capsys, judge, "aab\tbab")
    visit.open("judge")
    visit.type("aab", "bab")
    assert visit.answer() == expected["label"]
    visit.page.select_option("#model", "babbler")
    visit.page.wait_for_selector("#search-prefix")
    visit.page.fill("#search-prefix", "fa")
    visit.page.press("#search-prefix", "Enter")
    visit.rest()
    assert visit.answer().startswith("fa")


def test_a_film_is_lit_frame_by_frame(visit: Visit) -> None:
    visit.open("speller")
    frame = data_url(np.full((4, 6, 3), 200, np.uint8))
    shown = {"kind": "video", "frames": [frame] * 6, "times": [n / 10 for n in range(6)], "height": 4, "width": 6}
    lit = """async ([shown, shape, weights]) => {
        const { filmView } = await import("./static/js/views/film.js");
        const chosen = [];
        const on = { point() {}, choose: (place) => chosen.push(place) };
        const view = filmView({ shown, map: { layout: { kind: "frames", shape } }, on });
        document.querySelector("#panels").replaceChildren(view.element);
        view.light(weights, 1);
        view.element.lastChild.querySelector("canvas").click();
        return [[...view.element.children].map((one) => one.innerText.split(/\\s+/).slice(0, 4).join(" ")), chosen];
    }"""
    captions, chosen = visit.page.evaluate(lit, [shown, [3], [0.25, 0.5, 0.25]])
    assert captions == ["0.10 s 0.25", "0.30 s 0.50", "0.50 s 0.25"]
    assert chosen == [2]
    captions, chosen = visit.page.evaluate(lit, [shown, [3, 1, 2], [0.25, 0, 0.5, 0, 0, 0.25]])
    assert captions == ["0.10 s 0.25", "0.30 s 0.50", "0.50 s 0.25"]
    assert chosen == [4]


def test_a_recording_is_a_sound_file(visit: Visit) -> None:
    visit.open("speller")
    made = visit.page.evaluate("""async () => {
        const { wav } = await import("./static/js/entry/record.js");
        return [...new Uint8Array(wav(new Float32Array([0, 0.5, -1, 2]), 8000))];
    }""")
    with wave.open(BytesIO(bytes(made))) as sound:
        assert (sound.getnchannels(), sound.getsampwidth(), sound.getframerate()) == (1, 2, 8000)
        assert np.frombuffer(sound.readframes(4), "<i2").tolist() == [0, 16384, -32767, 32767]


HEAR = """async (milliseconds) => {
    const { recordButton } = await import("./static/js/entry/record.js");
    const file = await new Promise((take, complain) => {
        const button = recordButton(take, complain);
        document.body.append(button);
        button.click();
        const begun = setInterval(() => {
            if (button.getAttribute("aria-pressed") !== "true") return;
            clearInterval(begun);
            setTimeout(() => button.click(), milliseconds);
        }, 20);
    });
    const content = [...new Uint8Array(await file.arrayBuffer())].map((byte) => byte.toString(16).padStart(2, "0"));
    return { name: file.name, content: content.join("") };
}"""


def test_what_the_microphone_hears_is_taken(visit: Visit) -> None:
    visit.open("speller")
    for milliseconds in (1000, 4000, 16_000):  # a busy machine hears little in a second
        made = visit.page.evaluate(HEAR, milliseconds)
        assert made["name"] == "recording.wav"
        with wave.open(BytesIO(bytes.fromhex(made["content"]))) as sound:
            heard = np.frombuffer(sound.readframes(sound.getnframes()), "<i2")
            enough = sound.getnframes() > 0.5 * sound.getframerate()
        if enough and np.abs(heard).max() > 1000:  # it beeps
            return
    pytest.fail(f"heard {heard.size} samples, at most {np.abs(heard).max()}")


def test_fields_name_the_columns_of_the_training_table(visit: Visit) -> None:
    visit.open("speller")
    assert visit.texts("label[for=entry-source] .column") == [" · word"]
    assert "source" in visit.texts("label[for=entry-source]")[0]
    visit.page.select_option("#model", "judge")
    visit.page.wait_for_selector("#entry-first")
    assert visit.page.locator("label .column").count() == 0
