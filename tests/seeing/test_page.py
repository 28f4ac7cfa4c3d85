"""The standalone HTML page, and its frame in a notebook."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from seq2see.errors import UserError
from seq2see.looks import Looks, Prediction
from seq2see.seeing import save
from seq2see.seeing.page import page


class Reader(HTMLParser):
    """Elements with their attributes and own text."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(("", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.elements:
            tag, attributes, text = self.elements[-1]
            self.elements[-1] = (tag, attributes, text + data)

    def all(self, tag: str, **wanted: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attributes, text)
            for name, attributes, text in self.elements
            if name == tag and all(attributes.get(key.replace("_", "-")) == value for key, value in wanted.items())
        ]


def data_of(text: str) -> dict:
    return json.loads(Reader(text).all("script", id="looks")[0][1])


def test_a_cell_for_every_weight_and_a_token_for_every_symbol(looks: Looks) -> None:
    text = page(looks)
    reader = Reader(text)
    assert len(reader.all("td")) == 12
    shares = [float(re.search(r"--w:([\d.]+)", attributes["style"]).group(1)) for attributes, _ in reader.all("td")]
    data = data_of(text)
    np.testing.assert_allclose(np.reshape(shares, (4, 3)) * data["maps"][0]["top"], looks.weights, atol=6e-4)
    np.testing.assert_allclose(data["maps"][0]["heads"][0], looks.weights, atol=1e-6)
    tokens = [words for attributes, words in reader.all("button") if "token" in (attributes["class"] or "")]
    assert tokens == [*looks.outputs, *looks.inputs["source"]]
    assert all(attributes["dir"] == "auto" for attributes, _ in reader.all("button"))


def test_symbols_are_escaped_wherever_they_stand(make_looks: Callable[..., Looks]) -> None:
    nasty = '</script><script>alert("x")</script>'
    text = page(make_looks([nasty, "&amp;"], ["<b>", "'\""], name="<i>"), title=nasty)
    assert "<script>alert" not in text
    reader = Reader(text)
    assert len(reader.all("script")) == 2
    assert not reader.all("b")
    assert data_of(text)["maps"][0]["inputs"] == [nasty, "&amp;"]


def test_nothing_is_fetched(looks: Looks) -> None:
    text = page(looks)
    assert "http://" not in text
    assert "https://" not in text
    assert not re.search(r"\b(src|href)=|@import|url\(", text)
    assert "default-src 'none'" in text


def test_right_to_left_inputs_turn_the_table_around(make_looks: Callable[..., Looks]) -> None:
    reader = Reader(page(make_looks(list("مرحبا"), list("marhab"))))
    assert reader.all("table")[0][0]["dir"] == "rtl"
    assert reader.all("div", aria_label="input symbols")[0][0]["dir"] == "rtl"
    assert reader.all("div", aria_label="output symbols")[0][0]["dir"] == "ltr"


def test_heads_can_be_chosen_and_begin_with_their_mean(make_looks: Callable[..., Looks]) -> None:
    looks = make_looks(list("abc"), list("xy"), heads=2)
    text = page(looks)
    assert [words for _, words in Reader(text).all("button") if words.startswith(("mean", "head"))] == [
        "mean",
        "head 1",
        "head 2",
    ]
    heads = data_of(text)["maps"][0]["heads"]
    np.testing.assert_allclose(heads[0], looks.weights, atol=1e-6)
    np.testing.assert_allclose(heads[1:], looks.maps["source"], atol=1e-6)


def test_blanks_and_marks_are_visible(make_looks: Callable[..., Looks]) -> None:
    text = page(make_looks([" ", "\n", "ि"], ["x"]))
    assert all(f">{shown}<" in text for shown in ("␣", "⏎", "◌ि"))


def test_both_themes_unless_one_is_asked_for(looks: Looks) -> None:
    assert "prefers-color-scheme: dark" in page(looks)
    dark = page(looks, theme="dark")
    assert "prefers-color-scheme" not in dark
    assert "color-scheme: dark" in dark
    with pytest.raises(UserError, match="unknown theme"):
        page(looks, theme="pink")


def test_every_part_has_a_name_for_those_who_listen(looks: Looks) -> None:
    reader = Reader(page(looks))
    assert reader.all("html", lang="en")
    assert reader.all("p", role="status")
    assert reader.all("caption")
    assert len(reader.all("th", scope="row")) == 4
    assert len(reader.all("th", scope="col")) == 3 + 1


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_pointing_and_keys_light_up_inputs_and_outputs(make_looks: Callable[..., Looks], tmp_path: Path) -> None:
    looks = make_looks(list("abc"), list("xyz"), heads=2)
    path = save(looks, tmp_path / "looks.html")
    acts = """<script>
const every = (selector) => [...document.querySelectorAll(selector)];
const note = (name, value) => document.body.setAttribute("data-" + name, value);
const said = () => document.querySelector(".readout").textContent;
const shares = () => every("[data-place]").map((token) => token.style.getPropertyValue("--w")).join(" ");
const over = (selector) => every(selector)[0].dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
over("[data-step='1']");
note("step", said());
note("shares", shares());
note("rows", every("tbody tr").map((row) => Number(row.classList.contains("active"))).join(""));
over("[data-place='2']");
note("place", said());
over("tbody tr:nth-child(3) td:nth-of-type(2)");
note("cell", said());
document.querySelector("[data-step='0']").focus();
document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
note("focus", document.activeElement.textContent);
over("[data-step='1']");
every("[data-head]")[2].click();
note("head-shares", shares());
</script></body>"""
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", acts), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    command = ["chromium", *options, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()]
    shown = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()
    body = Reader(shown).all("body")[0][0]
    mean, top = looks.weights, data_of(path.read_text(encoding="utf-8"))["maps"][0]["top"]
    np.testing.assert_allclose([float(share) * top for share in body["data-shares"].split()], mean[1], atol=1e-5)
    assert body["data-rows"] == "010"
    assert body["data-step"].startswith(f"\u2068y\u2069: \u2068{'abc'[mean[1].argmax()]}\u2069 {mean[1].max():.3f}")
    assert body["data-place"].startswith(f"\u2068c\u2069: \u2068{'xyz'[mean[:, 2].argmax()]}\u2069")
    assert body["data-cell"] == f"\u2068z\u2069 ← \u2068b\u2069 {mean[2, 1]:.3f}"
    assert body["data-focus"] == "y"
    np.testing.assert_allclose(
        [float(share) * top for share in body["data-head-shares"].split()], looks.maps["source"][1][1], atol=1e-5
    )


def test_looks_show_their_page_in_a_frame_of_its_own(looks: Looks) -> None:
    shown = looks._repr_html_()
    assert shown.startswith("<iframe")
    assert unescape(shown.partition('srcdoc="')[2].removesuffix('"></iframe>')) == page(looks)
    assert 'sandbox="allow-scripts"' in shown


def test_a_prediction_shows_its_answer_as_text(looks: Looks) -> None:
    said = Prediction("x", text="<b>no", looks=looks)._repr_html_()
    assert said.startswith('<p dir="auto"><b>&lt;b&gt;no</b></p>')
    assert "<iframe" in said


def test_without_attention_it_says_why() -> None:
    assert Looks(reason="no <places>")._repr_html_() == "<p>no &lt;places&gt;</p>"
    assert "no attention" in Prediction("x", label="y")._repr_html_()
