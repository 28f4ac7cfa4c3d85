"""In a notebook, what is looked at shows itself."""

from __future__ import annotations

from html import unescape

from seq2see.looks import Looks, Prediction
from seq2see.seeing.page import page


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
    assert "there is nothing to look at" in Prediction("x", label="y")._repr_html_()
