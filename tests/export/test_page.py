"""A model in a page of its own: in Chromium, with the network off, it says what the model says in torch."""

from __future__ import annotations

import json
import re
import warnings
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seq2see.api import Model
from seq2see.data import tokens
from seq2see.data.sentences import split_texts
from seq2see.errors import UserError
from seq2see.export import page as export
from seq2see.export.page.bundling import bundle_modules
from seq2see.export.page.graph import Weights, check_node, operators
from tests.commands import Commands
from tests.runtime.conftest import SAVED, inputs_of, original
from tests.runtime.test_every_recipe import CASES, trained
from tests.studio.browsing import CHROMIUM, LEFTWARD, PATIENCE

NAMES = ("transliteration", "translation-transformer", "entailment")
SEARCHES: dict[str, dict[str, Any]] = {
    "own": {},
    "greedy": {"beam": 1},
    "n-best": {"beam": 4},
    "length": {"beam": 3, "length_penalty": 0, "min_length": 2, "max_length": 7},
    "coverage": {"beam": 3, "coverage_penalty": 0.5},
    "consensus": {"beam": 5, "consensus": 2.0},
}
JS = Path(export.__file__).parent / "js"
HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>&amp;\"'\u2028"

Record = dict[str, Any]


# ---------------------------------------------------------------- pages and a browser that has no network


@pytest.fixture(scope="session")
def record() -> Callable[[str], tuple[Record, bytes]]:
    """What a page of a saved model holds, and its weights; exported once."""
    for module in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(module, reason="the extra `onnx` is not installed")
    made: dict[str, tuple[Record, bytes]] = {}

    def made_once(name: str) -> tuple[Record, bytes]:
        if name not in made:
            made[name] = page_record(original(name))
        return made[name]

    return made_once


def page_record(model: Model) -> tuple[Record, bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # remarks of the exporter about torch
        engine, weights, difference = export.engine_record(model.bundle, half=False)
    assert difference < 1e-4
    return {"engine": engine, "shown": export.describe(model.bundle, "a model") | {"examples": []}}, weights


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


Open = Callable[..., Any]


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page from a file, offline; anything that it complains of or asks for fails the test."""
    context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900})
    context.set_default_timeout(PATIENCE)
    faults: list[str] = []
    file = tmp_path / "page.html"

    def visited(content: bytes) -> Any:
        file.write_bytes(content)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on(
            "request", lambda request: request.url.startswith(("data:", file.as_uri())) or faults.append(request.url)
        )
        page.goto(file.as_uri())
        page.wait_for_selector('body:not([data-state="loading"])')
        return page

    yield visited
    context.close()
    assert faults == []


def with_examples(record: Record, *rows: Mapping[str, str]) -> Record:
    examples = [{"example": number, "inputs": dict(row)} for number, row in enumerate(rows)]
    return record | {"shown": record["shown"] | {"examples": examples}}


def rest(page: Any, *, edits: int = 0) -> None:
    page.wait_for_selector(f'.panel[data-state="ready"][data-edits="{edits}"]')


def answer(page: Any, row: Mapping[str, str], **options: Any) -> Record:
    """The prediction of the model in the page."""
    found = page.evaluate("([row, options]) => seq2see.predict(row, options)", [dict(row), options])
    prediction: Record = found["predictions"][0]
    return prediction


def check_same(ours: Any, theirs: Record, *, tolerance: float = 1e-4) -> None:
    """ours: a prediction of the model; theirs: of the page."""
    wanted = ours.to_dict(looks=True, runners_up=True)
    field = "label" if ours.label is not None else "text"
    assert theirs[field] == wanted[field]
    assert theirs["log_probability"] == pytest.approx(wanted["log_probability"], abs=tolerance)
    assert theirs["score"] == pytest.approx(wanted["score"], abs=tolerance)
    assert [other["text"] for other in theirs["alternatives"]] == [other["text"] for other in wanted["alternatives"]]
    assert [token["text"] for token in theirs["tokens"]] == [token["text"] for token in wanted["tokens"]]
    np.testing.assert_allclose(shares(theirs), shares(wanted), atol=tolerance)
    looks, own = theirs["looks"], wanted["looks"]
    for key in ("inputs", "outputs", "layout"):
        assert looks[key] == own[key]
    np.testing.assert_allclose(looks["weights"], own["weights"], atol=tolerance)
    for name, each in own.get("maps", {}).items():
        if ".self-" in name:
            continue  # self-attention is not in exported graphs
        assert {key: each.get(key) for key in ("inputs", "layout", "rows", "chosen")} == {
            key: looks["maps"][name].get(key) for key in ("inputs", "layout", "rows", "chosen")
        }
        for key in {"weights", "heads"} & each.keys():
            np.testing.assert_allclose(looks["maps"][name][key], each[key], atol=tolerance)


def shares(prediction: Record) -> list[list[float]]:
    runners = [[runner["probability"] for runner in token["runners_up"]] for token in prediction["tokens"]]
    return [[token["probability"], *each] for token, each in zip(prediction["tokens"], runners, strict=True)]


# ---------------------------------------------------------------- the model's numbers


@pytest.mark.parametrize("name", NAMES)
def test_the_page_says_what_the_model_says(name: str, record: Any, visit: Open) -> None:
    model = original(name)
    page = visit(export.render(name, *record(name)))
    for value in inputs_of(name):
        row = model.row(value)
        for options in SEARCHES.values() if model.recipe.output.kind == "text" else [{}]:
            check_same(model.predict(value, maps=True, **options), answer(page, row, **options))
        check_oracle(model, value, page)


def check_oracle(model: Model, value: Any, page: Any) -> None:
    """Attention by hand at the first step; the model goes on from there."""
    name = model.recipe.looked_at[0]
    count = len(model.predict(value).looks.inputs[name])
    weights = np.zeros(count)
    weights[0] += 0.25
    weights[-1] += 0.75
    ours = model.predict(value, maps=True, oracle={0: {name: weights.tolist()}})
    check_same(ours, answer(page, model.row(value), oracle={"0": {name: weights.tolist()}}))


def test_beginnings_and_targets_are_followed(record: Any, visit: Open) -> None:
    name = "transliteration"
    model, value = original(name), inputs_of(name)[0]
    page, row = visit(export.render(name, *record(name))), model.row(value)
    text = model.predict(value).text
    assert text
    check_same(model.predict(value, prefix=text[:1], beam=3), answer(page, row, prefix=text[:1], beam=3))
    others = model.predict(value, beam=4).alternatives
    found = answer(page, row, target=others[0].text)
    assert found["text"] == others[0].text
    assert found["log_probability"] == pytest.approx(others[0].log_probability, abs=1e-4)
    drawn = [answer(page, row, sample=True, seed=5)["text"] for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_a_beam_has_its_tree_and_beginnings_can_be_avoided(record: Any, visit: Open) -> None:
    name = "transliteration"
    model, value = original(name), inputs_of(name)[0]
    page, row = visit(export.render(name, *record(name))), model.row(value)
    ours = model.predict(value, beam=4, tree=True)
    assert ours.tree is not None
    found = answer(page, row, beam=4, tree=True)["tree"]
    for theirs, own in zip(found["nodes"], ours.tree.to_dict()["nodes"], strict=True):
        assert theirs == pytest.approx(own, abs=1e-4)
    first = [token.text for token in ours.tokens][:2]
    avoided = answer(page, row, beam=4, avoid_prefixes=[first])
    texts = [avoided["text"], *(other["text"] for other in avoided["alternatives"])]
    assert not any(text.startswith("".join(first)) for text in texts)


def test_the_page_refuses_what_the_model_refuses(record: Any, visit: Open) -> None:
    name = "transliteration"
    model, value = original(name), inputs_of(name)[0]
    page, row = visit(export.render(name, *record(name))), model.row(value)
    attended = model.recipe.looked_at[0]
    places = len(value)
    for options in (
        {"n_best": 0},
        {"n_best": 7, "beam": 2},
        {"max_length": 0},
        {"min_length": 5, "max_length": 4},
        {"length_penalty": "x"},
        {"temperature": 2.0},
        {"top_k": 3},
        {"sample": True, "beam": 3},
        {"bogus": 1},
        {"oracle": {"0": {attended: [0.9] * places}}},
        {"oracle": {"0": {attended: [1.0] * (places + 1)}}},
        {"oracle": {"0": {attended: [2.0, -1.0, *[0.0] * (places - 2)]}}},
    ):
        with pytest.raises((UserError, TypeError)):
            model.predict(value, **options)
        asked = "([row, options]) => seq2see.predict(row, options).then(() => '', (error) => error.constructor.name)"
        assert page.evaluate(asked, [row, options]) == "InputError", options
    assert len({answer(page, row, sample=True, seed=seed, top_k=1)["text"] for seed in range(4)}) == 1
    assert all(len(token["runners_up"]) == 2 for token in answer(page, row, runners_up=2)["tokens"])
    assert [other["text"] for other in answer(page, row, beam=1, n_best=1)["alternatives"]] == []
    assert len(answer(page, row, n_best=3)["alternatives"]) == 2


def test_the_page_allows_what_the_server_allows() -> None:
    from seq2see.search.tree import MAX_NODES
    from seq2see.studio.schemas import PredictRequest

    block = re.search(r"NUMBERS = \{(.*?)\};", (JS / "model.js").read_text(), re.DOTALL)
    assert block is not None
    limits = {name: (float(low), float(high)) for name, low, high in re.findall(r"(\w+): \[(.+?), ([^,\]]+)", block[1])}
    known = PredictRequest.model_json_schema()["properties"]
    shared = limits.keys() & known.keys()
    assert len(shared) == len(limits) - 2, "consensus and patience are the recipe's"
    for name in shared:
        (rule,) = (each for each in known[name]["anyOf"] if each["type"] != "null")
        least, most = limits[name]
        assert least == pytest.approx(rule.get("minimum", rule.get("exclusiveMinimum")), abs=1e-8), name
        assert most <= rule["maximum"], name
        assert most == rule["maximum"] or most >= 1e6, name
    nodes = re.search(r"MOST_NODES = (\d+);", (JS / "search.js").read_text())
    assert nodes is not None
    assert int(nodes[1]) == MAX_NODES


def test_the_likeliest_of_many_are_those_of_few(evaluate: Any) -> None:
    values = [float(number * 7919 % 101) for number in range(400)]
    few, many = (evaluate('m["search.js"].likeliest(given[0], given[1])', [values, count]) for count in (150, 300))
    assert few == many[:150]
    assert [value["value"] for value in many] == sorted(values, reverse=True)[:300]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_recipe_and_mechanism(name: str, tmp_path: Path, visit: Open) -> None:
    """Of texts; what a page cannot hold is refused by the key of the recipe."""
    case = CASES[name]
    if case.extra:
        pytest.importorskip(case.extra, reason="the extra of this kind of input is not installed")
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, inputs = trained(case, tmp_path)
    kinds = [settings.kind for settings in model.recipe.inputs.values()]
    if not kinds or not set(kinds) <= set(export.INPUTS) or model.recipe.output.kind not in export.OUTPUTS:
        with pytest.raises(UserError, match="allowed"):
            export.check_page(model.bundle)
        return
    if name == "self-attentive":
        with pytest.raises(UserError, match="self_attention"):
            export.write_page(tmp_path / "self-attentive", tmp_path / "x.html")
        return
    page = visit(export.render(name, *page_record(model)))
    for value in inputs:
        check_same(model.predict(value, maps=True), answer(page, model.row(value)))
        if model.recipe.looked_at:
            check_oracle(model, value, page)


# ---------------------------------------------------------------- symbols

TEXTS = (
    "Don't stop (at 3.5 km)! U.S. forces, 1,000 \u00abmen\u00bb ... well-known e-mail@example.org",
    "He said: \"It's 5 o'clock\" / 50% off -- really?! \u2026",
    "नमस्ते दुनिया, यह हिन्दी है। क्षत्रिय\u200dक",
    "مرحبا بالعالم، كيف الحال؟ שָׁלוֹם עולם",
    "我喜欢吃苹果。日本語のテキスト、です！ Seoul 서울",
    "Straße ÅNGSTRÖM İstanbul ΟΔΟΣ cafe\u0301 ﬁn ½ x² _a_b",
    "👩‍👩‍👧 👍🏽 emoji & signs €5 #tag @me ¿qué? $3",
    "\ta\u00a0b\u2003c\u1680d \u200bzero\ufeff width\x1f unit ",
    "",
)
DOCUMENTS = (
    'Dr. A. Smith paid 3.50 dollars. Then they left! "Why?" he asked. e.g. this one. See Fig. 3 and p. 5. End',
    "no capitals here. still split. yes?",
    "第一句。第二句！ 第三句\n\nA new paragraph without a stop\n\nand another...",
    "यह एक वाक्य है। यह दूसरा है।",
)


@pytest.fixture
def evaluate(browser: Any) -> Iterator[Callable[[str, Any], Any]]:
    """Evaluates an expression of `m`, the modules of a page, and `given`."""
    script = bundle_modules(
        {path.name: path.read_text("utf-8") for path in JS.iterdir() if path.name != "main.js"}, "model.js"
    )
    page = browser.new_page()
    yield lambda expression, given: page.evaluate(
        f"(given) => {{ {script}\nconst m = modules; return {expression}; }}", given
    )
    page.close()


def test_words_are_cut_and_joined_as_in_python(evaluate: Any) -> None:
    for text in TEXTS:
        symbols = tokens.split_words(text)
        assert evaluate('m["text.js"].splitWords(given)', text) == symbols
        assert evaluate('m["text.js"].joinWords(given)', symbols) == tokens.join_words(symbols)


@pytest.mark.parametrize("kind", ["word", "character", "symbol"])
@pytest.mark.parametrize("form", [("lower", "NFKC", "remove"), ("keep", "NFC", "keep"), ("lower", "none", "keep")])
def test_columns_read_as_in_python(kind: str, form: tuple[Any, Any, str], evaluate: Any) -> None:
    case, unicode, punctuation = form
    settings = {"tokens": kind, "case": case, "unicode": unicode, "punctuation": punctuation, "symbols": []}
    for text in TEXTS:
        normal = tokens.normalise(text, case=case, unicode=unicode, punctuation=punctuation == "keep")
        wanted = tokens.make_splitter(kind).split(normal)
        assert evaluate("new (m['text.js'].TextColumn)(given[0]).whole(given[1])", [settings, text]) == wanted


def test_pieces_of_words_are_those_of_the_tokenizer(evaluate: Any, tmp_path: Path) -> None:
    splitter = tokens.BpeSplitter()
    learned = ["the lower, the lowest; newer and newest low-cost things!"] * 3 + ["a new widow's wide window"] * 2
    splitter.learn(learned, size=60, min_count=1)
    splitter.save(tmp_path / "bpe.json")
    model = json.loads((tmp_path / "bpe.json").read_text("utf-8"))["model"]
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
    given = {"pieces": list(model["vocab"]), "merges": merges}
    for text in (*learned, "unlowered ▁ windows (newest)!!", "Ünknown $5 x<y", *TEXTS):
        wanted = splitter.split(text)
        assert evaluate('m["text.js"].bytePairs(given[0]).split(given[1])', [given, text]) == wanted
        assert evaluate('m["text.js"].bytePairs(given[0]).join(given[1])', [given, wanted]) == splitter.join(wanted)


@pytest.mark.parametrize("by", ["rule", "newline", "|||"])
def test_sentences_are_those_of_the_rule(by: str, evaluate: Any) -> None:
    spaces = [f"First one.{space}Second one.{space}\n{space}\nThird." for space in "\u001c\u001f\u0085\ufeff\u2003"]
    for text in (*DOCUMENTS, *TEXTS, *spaces, "a ||| b |||  ||| c"):
        assert evaluate('m["sentences.js"].splitTexts(given[0], given[1])', [text, by]) == split_texts(text, by)


# ---------------------------------------------------------------- what a person does


@pytest.fixture
def shown(record: Any, visit: Open) -> Any:
    known, weights = record("transliteration")
    row = original("transliteration").row(inputs_of("transliteration")[0])
    page = visit(export.render("Names & <b>scripts</b>", with_examples(known, row), weights))
    rest(page)
    return page


def test_an_example_is_shown_at_once(shown: Any) -> None:
    value = inputs_of("transliteration")[0]
    plain = original("transliteration").predict(value)
    assert shown.title() == shown.locator("h1").inner_text() == "Names & <b>scripts</b>"
    assert shown.locator("#entry textarea").input_value() == value
    assert shown.locator(".answer").inner_text() == plain.text
    assert shown.locator(".token").count() == len(plain.tokens)
    assert shown.locator(".heat tbody tr").count() == len(plain.tokens)
    assert shown.locator(".heat thead th").count() == len(value)
    assert shown.locator(".ranked").count() == 1 + len(plain.alternatives) + 1


def test_typing_pointing_choosing_and_editing(shown: Any) -> None:
    model = original("transliteration")
    value = inputs_of("transliteration")[1]
    shown.locator("#entry textarea").fill(value)
    shown.locator("#entry textarea").press("Enter")
    plain = model.predict(value)
    shown.wait_for_function("text => document.querySelector('.answer').textContent === text", arg=plain.text)
    shown.locator(".token").nth(1).hover()
    assert shown.locator(".heat tr.active").get_attribute("data-step") == "1"
    assert shown.locator(".runner").count() == 5
    shown.locator(".token").nth(0).click()
    shown.locator(".read .place").nth(len(value) - 1).click()
    rest(shown, edits=1)
    weights = [0.0] * (len(value) - 1) + [1.0]
    forced = model.predict(value, oracle={0: {model.recipe.looked_at[0]: weights}})
    assert shown.locator(".answer").inner_text() == forced.text
    shown.get_by_role("button", name="Undo").click()
    assert shown.locator(".answer").inner_text() == plain.text
    shown.locator("button.runner").first.click()
    rest(shown, edits=1)
    shown.get_by_role("button", name="Reset").click()
    shown.locator("button.ranked").first.click()
    rest(shown, edits=1)
    assert shown.locator(".answer").inner_text() == plain.alternatives[0].text


def test_the_beam_can_be_chosen(shown: Any) -> None:
    shown.locator(".search summary").click()
    shown.get_by_role("spinbutton", name="Beam").fill("2")
    shown.get_by_role("button", name="See where it looks").click()
    shown.wait_for_function("() => document.querySelectorAll('.nbest li').length === 2")
    shown.get_by_role("spinbutton", name="Beam").fill("1000")
    shown.get_by_role("button", name="See where it looks").click()
    shown.wait_for_selector('.panel[data-state="failed"]')
    assert "1 to 64" in shown.locator(".panel .status").inner_text()


def test_it_fits_a_phone_in_both_colours(shown: Any) -> None:
    for width in (360, 820):
        shown.set_viewport_size({"width": width, "height": 740})
        assert shown.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
    paper = "() => getComputedStyle(document.body).backgroundColor"
    light = shown.evaluate(paper)
    shown.get_by_role("button", name="Dark colours").click()
    assert shown.evaluate(paper) != light


def test_labels_have_one_step(record: Any, visit: Open) -> None:
    model = original("entailment")
    row = model.row(inputs_of("entailment")[0])
    known, weights = record("entailment")
    page = visit(export.render("pairs", with_examples(known, row), weights))
    rest(page)
    assert page.locator(".answer").inner_text() == model.predict(inputs_of("entailment")[0]).label
    assert page.locator(".token").count() == 1
    assert page.locator("#entry textarea").count() == len(row)
    page.locator("#entry textarea").first.fill(" ")
    page.get_by_role("button", name="See where it looks").click()
    assert "type something" in page.locator(".complaint:not(:empty)").inner_text()


def test_scripts_that_run_to_the_left(record: Any, visit: Open) -> None:
    known, weights = record("transliteration")
    hebrew = [chr(0x5D0 + number) for number in range(27)] + [chr(0x621 + number) for number in range(26)]

    def turned(column: Record) -> Record:
        return column | {"symbols": [*column["symbols"][:4], *hebrew[: len(column["symbols"]) - 4]]}

    engine = known["engine"]
    assert len(engine["output"]["symbols"]) <= len(hebrew)
    columns = [[name, turned(column)] for name, column in engine["columns"]]
    own = known | {"engine": engine | {"columns": columns, "output": turned(engine["output"])}}
    page = visit(export.render("שלום", with_examples(own, {columns[0][0]: "אבגד"}), weights))
    rest(page)
    direction = "one => getComputedStyle(one).direction"
    for selector in (".answer", ".tokens", ".heat", ".read", "#entry textarea", "h1"):
        assert page.locator(selector).first.evaluate(direction) == "rtl", selector
    assert page.evaluate(LEFTWARD) == []


# ---------------------------------------------------------------- what is in the file


def test_hostile_texts_stay_texts(record: Any, visit: Open) -> None:
    known, weights = record("transliteration")
    engine, description = known["engine"], known["shown"]
    name = engine["columns"][0][0]
    symbols = [*engine["output"]["symbols"]]
    symbols[4:6] = [HOSTILE, "constructor"]
    column = {"column": HOSTILE, "name": name, "kind": "text", "file": False, "tokens": "character"}
    own = {
        "engine": engine | {"output": engine["output"] | {"symbols": symbols}},
        "shown": description | {"name": HOSTILE, "description": HOSTILE, "inputs": [column]},
    }
    page = visit(export.render(HOSTILE, with_examples(own, {name: HOSTILE}, {name: "__proto__"}), weights))
    rest(page)
    assert page.title() == HOSTILE
    assert page.locator("#entry textarea").input_value() == HOSTILE
    assert page.locator(".example").all_inner_texts()[1] == "__proto__"
    assert page.evaluate("() => [window.broken, document.querySelectorAll('main img').length]") == [None, 0]


def test_nothing_is_fetched_and_only_its_own_script_runs() -> None:
    content = export.render("a", {"engine": {}, "shown": {}}, b"\0\1").decode()
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', content)[1])  # type: ignore[index]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", content, re.DOTALL)
        digest = re.search(rf"{element}-src 'sha256-([^']*)'", policy)[1]  # type: ignore[index]
        assert b64decode(digest) == sha256(text.encode()).digest()
    markup = re.sub(r"<(script|style)>.*?</\1>", "", content, flags=re.DOTALL)
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', markup) == []
    assert re.findall(r"url\(|@import", content) == []


def test_operators_are_those_of_the_script() -> None:
    assert {"MatMul", "LSTM", "GRU", "Where", "TopK"} < operators()
    assert not {"If", "Loop", "Scan"} & operators()


def test_other_operators_are_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"operator Einsum; allowed: Abs"):
        check_node("Einsum", "", {})
    with pytest.raises(UserError, match="MatMulNBits"):
        check_node("MatMulNBits", "com.microsoft", {})
    with pytest.raises(UserError, match="LSTM with direction bidirectional"):
        check_node("LSTM", "", {"direction": "bidirectional"})
    with pytest.raises(UserError, match="float64"):
        Weights(half=True).add(np.zeros(3))


def test_weights_are_stored_once_and_aligned() -> None:
    weights = Weights(half=True)
    first = weights.add(np.ones((3, 67), dtype=np.float32))
    assert first == ["float16", [3, 67], 0]
    assert weights.add(np.ones((3, 67), dtype=np.float32)) == first
    assert weights.add(np.array([2**62, -1])) == ["int32", [2], 404]
    assert weights.add(np.full(80, 1e6, dtype=np.float32))[0] == "float32"
    assert weights.add(np.array([np.nan], dtype=np.float32))[0] == "float32"


@pytest.mark.parametrize(
    "source",
    ['import x from "./b.js";', 'import "./b.js";', "export default 1;", "export { a };", 'export * from "./b.js";'],
)
def test_modules_of_another_form_are_not_bundled(source: str) -> None:
    with pytest.raises(ValueError, match=r"a\.js"):
        bundle_modules({"a.js": source, "b.js": ""}, "a.js")


def test_modules_that_import_each_other_are_not_bundled() -> None:
    with pytest.raises(ValueError, match=r"a\.js -> b\.js -> a\.js"):
        bundle_modules(
            {"a.js": 'import { b } from "./b.js";', "b.js": 'import { a } from "./a.js";\nexport const b = 1;'}, "a.js"
        )


# ---------------------------------------------------------------- the command


def test_the_command_writes_a_page_with_weights_of_16_bits(
    tmp_path: Path, visit: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxscript", reason="the extra `onnx` is not installed")
    out = tmp_path / "new" / "demo.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Commands(capsys)("page", SAVED / "transliteration", "--out", out, "--example", "ab", "--about", "a -> b")
    assert (run.code, run.lines) == (0, [str(out)])
    assert "MB, weights as float16" in run.err
    page = visit(out.read_bytes())
    rest(page)
    assert page.locator("#entry textarea").input_value() == "ab"
    assert (page.title(), page.locator("h2").inner_text()) == ("transliteration", "a → b")
    model = original("transliteration")
    for value in inputs_of("transliteration"):
        check_same(model.predict(value, beam=1), answer(page, model.row(value), beam=1), tolerance=5e-3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("image-captioning", (), "inputs.image.kind: image; allowed: text, texts, set"),
        ("autoencoder", (), "output.kind: vector; allowed: text, label"),
        ("transliteration", ("--out", "demo.pdf"), "*.html"),
    ],
)
def test_what_no_page_can_hold_is_refused(
    name: str, options: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = Commands(capsys)("page", SAVED / name, *(options or ("--out", tmp_path / "x.html")))
    assert run.code == 2
    assert message in run.err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_too_large_is_refused(record: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known, weights = record("transliteration")
    monkeypatch.setattr(export, "engine_record", lambda bundle, *, half: (known["engine"], weights, 0.0))
    monkeypatch.setattr(export, "LARGEST", 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(UserError, match=r"MB; allowed: 0.02 MB"):
            export.write_page(SAVED / "transliteration", tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []
