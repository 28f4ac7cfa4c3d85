"""The attention editor of notebooks: what the front end sends is checked, and what it draws is the model's."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seq2see
from seq2see.api import Model
from seq2see.attention_editor import FOLDER, MOST_EDITS, AttentionEditor
from seq2see.errors import Notice, UserError
from tests.studio.browsing import CHROMIUM

RECIPE: dict[str, Any] = {
    "task": "backwards",
    "inputs": {"source": {"tokens": "character", "column": "word"}},
    "output": {"tokens": "character", "column": "backwards"},
    "encoder": {"size": 12, "embedding": {"size": 8}},
    "decoder": {"size": 24, "embedding": {"size": 8}},
    "attention": {"score": "additive", "size": 8},
    "training": {"updates": 30, "learning_rate": 0.02},
    "search": {"max_length": 8},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    draw = random.Random(1)
    words = sorted({"".join(draw.choices("abc<", k=4)) for _ in range(150)})
    rows = [{"word": word, "backwards": word[::-1]} for word in words]
    return seq2see.train(RECIPE, rows, out=tmp_path_factory.mktemp("runs") / "backwards", listeners=[])


@pytest.fixture
def editor(model: Model) -> AttentionEditor:
    return model.edit_attention("ab<c")


def test_it_shows_the_prediction_and_its_attention(model: Model, editor: AttentionEditor) -> None:
    plain = model.predict("ab<c")
    drawn = editor.shown["original"]
    assert editor.places == ["a", "b", "<", "c"]
    assert drawn == editor.shown["edited"]
    assert drawn["answer"] == plain.text
    assert drawn["outputs"] == plain.looks.outputs
    assert drawn["weights"] == [pytest.approx(row, abs=1e-4) for row in plain.looks.weights.tolist()]
    json.dumps(editor.shown)  # what is sent to the front end
    assert repr(editor).endswith("edited steps: none)")


def test_edits_give_what_predict_gives(model: Model, editor: AttentionEditor) -> None:
    editor.edits = {"0": [0, 0, 2, 2]}  # keys of JSON are texts; weights need not sum to one
    forced = model.predict("ab<c", oracle={0: [0, 0, 0.5, 0.5]})
    assert editor.error == ""
    assert editor.edited.text == forced.text
    assert editor.edited.log_probability == forced.log_probability
    assert editor.shown["edited"]["weights"][0] == pytest.approx([0, 0, 0.5, 0.5])
    assert editor.shown["steps"] == [0]
    editor.edits = {}
    assert editor.edited is editor.original
    assert editor.shown["steps"] == []


@pytest.mark.parametrize(
    "edits",
    [
        None,
        "0",
        [[1, 0, 0, 0]],
        {"0": [1, 0, 0]},
        {"0": [1, 0, 0, 0, 0]},
        {"0": "1000"},
        {"0": {"0": 1}},
        {"0": None},
        {"0": [0, 0, 0, 0]},
        {"0": [-1, 1, 1, 1]},
        {"0": [float("nan"), 1, 0, 0]},
        {"0": [float("inf"), 1, 0, 0]},
        {"0": [10**400, 1, 0, 0]},
        {"0": ["1", "0", "0", "0"]},
        {"0": [True, False, False, False]},
        {"0": [[1], 0, 0, 0]},
        {"-1": [1, 0, 0, 0]},
        {"1.5": [1, 0, 0, 0]},
        {"": [1, 0, 0, 0]},
        {"9" * 5000: [1, 0, 0, 0]},
        {"__proto__": [1, 0, 0, 0]},
        {True: [1, 0, 0, 0]},
        {str(step): [1, 0, 0, 0] for step in range(MOST_EDITS + 1)},
    ],
    ids=lambda edits: repr(edits)[:30],
)
def test_edits_that_are_none_are_refused_and_the_last_good_ones_stay(editor: AttentionEditor, edits: Any) -> None:
    editor.edits = {"0": [0, 0, 0, 1]}
    before = editor.edited
    editor.edits = edits
    assert editor.error.startswith("edits: ")
    assert len(editor.error) < 500
    assert editor.edited is before
    assert editor.shown["error"] == editor.error
    assert editor.shown["steps"] == [0]
    editor.edits = {"0": [0, 1, 0, 0]}
    assert editor.error == ""
    assert editor.edited is not before


def test_a_step_that_is_not_reached_is_said(editor: AttentionEditor) -> None:
    last = RECIPE["search"]["max_length"] - 1
    with pytest.warns(Notice, match="not reached"):
        editor.edits = {str(last): [1, 0, 0, 0]}
    assert editor.error == ""
    assert f"step {last} is not reached" in editor.shown["notice"]
    editor.edits = {str(last + 1): [1, 0, 0, 0]}
    assert editor.error.startswith("oracle: ")


def test_models_that_have_nothing_to_edit_say_so(tmp_path: Path) -> None:
    rows = [{"word": a + b, "backwards": b + a} for a in "abcdef" for b in "abcdef"]
    without = {**RECIPE, "attention": "none", "training": {"updates": 1}}
    model = seq2see.train(without, rows, out=tmp_path / "none", listeners=[])
    with pytest.raises(UserError, match="attention"):
        model.edit_attention("ab")
    with pytest.raises(UserError, match="empty"):
        model.edit_attention(" ")


# ---------------------------------------------------------------- the front end, before a browser

STUB = """<!doctype html><meta charset="utf-8"><style>%s</style><body><script type="module">
import widget from "data:text/javascript;base64,%s";
const listeners = {};
const state = {edits: {}, shown: %s};
let changed = false;
window.sent = [];
window.model = {
  get: (name) => state[name],
  set: (name, value) => { // an equal value is no change, as in a notebook
    changed = JSON.stringify(value) !== JSON.stringify(state[name]);
    state[name] = value;
  },
  save_changes: () => { if (changed) window.sent.push(JSON.parse(JSON.stringify(state.edits))); },
  on: (name, call) => { listeners[name] = call; },
  off: (name) => { delete listeners[name]; },
};
window.answer = (shown) => { state.shown = shown; listeners["change:shown"]?.(); };
window.listening = () => Object.keys(listeners);
const el = document.body.appendChild(document.createElement("div"));
window.leave = widget.render({model: window.model, el});
</script>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, editor: AttentionEditor) -> Iterator[Any]:
    from base64 import b64encode

    made = browser.new_page()
    made.set_default_timeout(90_000)
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    script = b64encode((FOLDER / "editor.js").read_bytes()).decode()
    state = json.dumps(editor.shown).replace("<", "\\u003c")
    made.set_content(STUB % ((FOLDER / "editor.css").read_text("utf-8"), script, state))
    made.wait_for_selector('.seq2see-editor[data-state="ready"]')
    yield made
    made.close()
    assert faults == []


def answered(page: Any, editor: AttentionEditor) -> Any:
    """Give the kernel what the front end sent last, and the front end the kernel's answer; the edits."""
    sent = page.evaluate("() => window.sent.at(-1)")
    editor.edits = sent
    page.evaluate("shown => window.answer(shown)", editor.shown)
    page.wait_for_selector('.seq2see-editor[data-state="ready"]')
    return sent


def test_the_page_shows_outputs_and_weights(page: Any, editor: AttentionEditor) -> None:
    drawn = editor.shown["original"]
    assert page.locator(".answer").all_inner_texts() == [drawn["answer"]] * 2
    assert page.locator("thead th").all_inner_texts() == editor.places
    assert page.locator("tbody th").all_inner_texts() == drawn["outputs"]
    shares = page.locator("tbody td").evaluate_all("all => all.map(one => Number(one.style.getPropertyValue('--w')))")
    assert shares == pytest.approx([weight for row in drawn["weights"] for weight in row], abs=1e-3)
    assert page.locator(".bar").count() == len(editor.places)


def test_a_click_on_a_cell_looks_only_there(page: Any, editor: AttentionEditor) -> None:
    page.locator("tbody tr").nth(1).locator("td").nth(2).click()
    assert answered(page, editor) == {"1": [0, 0, 1, 0]}
    assert editor.error == ""
    assert page.locator(".answer").all_inner_texts() == [editor.original.text, editor.edited.text]
    assert page.locator("tr.edited").count() == 1
    page.get_by_role("button", name="Undo").click()
    assert answered(page, editor) == {}
    assert page.locator("tr.edited").count() == 0


def test_what_changes_nothing_is_not_sent(page: Any, editor: AttentionEditor) -> None:
    cell = page.locator("tbody tr").nth(1).locator("td").nth(2)
    cell.click()
    assert answered(page, editor) == {"1": [0, 0, 1, 0]}
    cell.click()
    page.locator(".bar").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator(".seq2see-editor").get_attribute("data-state") == "ready"
    assert page.evaluate("() => window.sent.length") == 1
    page.get_by_role("button", name="Undo").click()
    assert answered(page, editor) == {}


def test_a_bar_is_dragged_and_the_weights_sum_to_one(page: Any, editor: AttentionEditor) -> None:
    track = page.locator(".bar .track").nth(3).bounding_box()
    page.mouse.move(track["x"] + 5, track["y"] + track["height"] - 5)
    page.mouse.down()
    page.mouse.move(track["x"] + 5, track["y"] + track["height"] / 4)
    page.mouse.up()
    weights = answered(page, editor)["0"]
    assert weights[3] == pytest.approx(0.75, abs=0.02)
    assert sum(weights) == pytest.approx(1)
    assert editor.oracle[0] == pytest.approx(weights)


def test_keys_change_a_bar_and_it_keeps_the_focus(page: Any, editor: AttentionEditor) -> None:
    page.locator(".bar").nth(1).focus()
    page.keyboard.press("Enter")
    assert answered(page, editor) == {"0": [0, 1, 0, 0]}
    page.keyboard.press("PageDown")
    assert answered(page, editor)["0"][1] == pytest.approx(0.75)
    assert page.locator(".bar").nth(1).evaluate("one => one === document.activeElement")
    page.get_by_role("button", name="Reset").click()
    assert answered(page, editor) == {}


def test_what_is_wrong_is_shown_as_text(page: Any, editor: AttentionEditor) -> None:
    page.evaluate("() => { model.set('edits', {'<img src=x>': [1, 0, 0, 0]}); model.save_changes(); }")
    answered(page, editor)
    assert "<img src=x>" in page.get_by_role("alert").inner_text()
    assert page.locator("img").count() == 0


def test_a_widget_that_is_taken_away_listens_no_more(page: Any) -> None:
    page.evaluate("() => window.leave()")
    assert page.evaluate("() => window.listening()") == []
