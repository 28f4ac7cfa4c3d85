"""Words shaded inside sentences shaded inside a document."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from seq2see.looks import Looks
from seq2see.seeing.documents import documents_of
from seq2see.seeing.figure import plot
from seq2see.seeing.page import page
from seq2see.seeing.panels import panels_of
from seq2see.seeing.style import luminance

SENTENCES = ["The film is <good>.", "We went home early in the rain that night."]
WORDS = [["The", "film", "is", "<good>", "."], ["We", "went"]]


def seen(*, outputs: list[str], inner: bool = True, words: bool = False) -> Looks:
    """A document of two sentences, of five words and of two."""
    flat = [word for sentence in WORDS for word in sentence]
    parts = {"kind": "tokens", "shape": [7], "parts": [5, 2]}
    looks = Looks(outputs=outputs)
    if words:
        looks.maps["doc.words"] = np.tile(np.float32([0.1, 0.1, 0.1, 0.4, 0.1, 0.1, 0.1]), (len(outputs), 1))
        looks.inputs["doc.words"], looks.layouts["doc.words"] = flat, parts
    else:
        looks.maps["doc"] = np.tile(np.float32([0.75, 0.25]), (len(outputs), 1))
        looks.inputs["doc"], looks.layouts["doc"] = SENTENCES, {"kind": "sentences", "shape": [2]}
    if inner:
        name = "doc.words (encoder)" if words else "doc.words"
        looks.maps[name] = np.float32([[0.1, 0.2, 0.1, 0.5, 0.1, 0, 0], [0, 0, 0, 0, 0, 0.3, 0.7]])
        looks.inputs[name], looks.layouts[name], looks.rows[name] = flat, parts, SENTENCES
    return looks


def test_the_encoders_look_fills_the_sentences_the_decoder_looked_at() -> None:
    (document,) = documents_of(seen(outputs=["good"]))
    assert document.words == WORDS
    assert document.sentences == pytest.approx([0.75, 0.25])
    assert [one.tolist() for one in document.within] == [
        pytest.approx([0.1, 0.2, 0.1, 0.5, 0.1]),
        pytest.approx([0.3, 0.7]),
    ]
    assert document.covered == {"doc", "doc.words"}


def test_a_look_at_words_is_parted_into_sentences() -> None:
    (document,) = documents_of(seen(outputs=["a", "b"], inner=False, words=True))
    assert document.sentences == pytest.approx([0.8, 0.2])
    assert document.within[0] == pytest.approx([0.125, 0.125, 0.125, 0.5, 0.125])
    assert document.covered == set()


def test_what_the_encoder_saw_comes_before_what_the_decoder_saw() -> None:
    (document,) = documents_of(seen(outputs=["a"], words=True))
    assert document.within[1] == pytest.approx([0.3, 0.7])
    assert document.sentences == pytest.approx([0.8, 0.2])


def test_a_page_of_a_label_is_the_document_and_nothing_of_it_is_code() -> None:
    text = page(seen(outputs=["good"]))
    assert text.count("<li>") == 2
    assert ">0.75</b>" in text
    assert "&lt;good&gt;" in text
    assert "<good>" not in text
    assert "data-map" not in text.partition("<script")[0]


def test_a_page_of_a_text_has_the_outputs_too() -> None:
    text = page(seen(outputs=["ein", "wort"]))
    assert text.count('<section data-map="') == 1
    assert text.count('class="document"') == 1


def test_rows_and_columns_of_sentences_are_short() -> None:
    looks = seen(outputs=["good"])
    (sentences,), (words,) = panels_of(looks)
    assert sentences.inputs == ["1 The film is <good>.", "2 We went home early in th…"]
    assert words.outputs == sentences.inputs


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_it_is_drawn(suffix: str, tmp_path: Path) -> None:
    small = seen(outputs=["good"]).save(tmp_path / f"label{suffix}")
    large = seen(outputs=["ein", "wort", "<eos>"]).save(tmp_path / f"text{suffix}")
    assert 1000 < small.stat().st_size < large.stat().st_size
    if suffix == ".svg":
        assert "film" in small.read_text("utf-8")


def test_one_map_can_be_asked_for() -> None:
    assert 'class="document"' not in page(seen(outputs=["good"]), map="doc")


def test_each_part_says_who_looked() -> None:
    told = page(seen(outputs=["a", "b"], words=True))
    assert '<h2 dir="auto">doc.words (decoder)</h2>' in told
    assert '<h2 dir="auto">doc (encoder: words in their sentence)</h2>' in told
    assert "colour of a word: the encoder&#x27;s share in its sentence" in told
    alone = page(seen(outputs=["a"], inner=False, words=True))
    assert "colour of a word: the decoder&#x27;s share in its sentence" in alone


def long_document(*, steps: int = 3) -> Looks:
    """A decoder that looks at forty words of two sentences, by way of the sentences: no word has more than 0.018."""
    words = [f"w{number}" for number in range(40)]
    weights = np.tile(np.repeat(np.float32([0.71, 0.29]) / 20, 20), (steps, 1)) / 2
    layout = {"kind": "tokens", "shape": [40], "parts": [20, 20]}
    looks = Looks(maps={"doc.words": weights}, inputs={"doc.words": words}, layouts={"doc.words": layout})
    looks.outputs = [f"o{number}" for number in range(steps)]
    looks.maps["doc.words.self-1"] = np.eye(40, dtype=np.float32)
    looks.inputs["doc.words.self-1"] = looks.rows["doc.words.self-1"] = words
    return looks


def test_sentences_words_and_maps_each_have_a_scale_of_their_own() -> None:
    looks = long_document()
    (document,) = documents_of(looks)
    assert document.sentences == pytest.approx([0.355, 0.145])
    assert (document.top_of_sentences(), document.top_of_words()) == (0.4, 0.05)
    figure = plot(looks, map="all")
    meshes = [mesh for axes in figure.axes for mesh in axes.collections if str(mesh.get_gid()).startswith("weights")]
    assert {(mesh.get_gid(), mesh.norm.vmax) for mesh in meshes} == {
        ("weights doc.words", 0.02),
        ("weights doc.words.self-1", 1.0),
    }
    ends = [axes.get_xlim()[1] for axes in figure.axes if axes.get_gid() == "key"]
    assert ends == pytest.approx([0.02, 1.0, 0.4, 0.05])


def test_shares_that_differ_are_drawn_in_colours_that_differ() -> None:
    looks = seen(outputs=["good"], inner=False, words=True)
    looks.maps["doc.words"] = np.float32([[0.15, 0.15, 0.15, 0.15, 0.11, 0.15, 0.14]])
    figure = plot(looks)
    boxes = [
        axes.patches[0] for axes in figure.axes if [text.get_text() for text in axes.texts] in (["0.71"], ["0.29"])
    ]
    colours = [box.get_facecolor() for box in boxes]
    assert len(colours) == 2
    assert luminance(colours[1]) - luminance(colours[0]) > 0.3


def test_a_page_says_the_scale_of_each_map_and_of_sentences_beside_words() -> None:
    html = page(long_document(), map="all")
    keys = re.findall(r'<p class="key"><span>0</span><i></i><span>([\d.]+)</span><span>([^<]+)<', html)
    assert keys == [
        ("0.02", "attention weight"),
        ("1", "attention weight"),
        ("0.4", "share of a sentence in all"),
        ("0.05", "share of a word in its sentence"),
    ]
    shares = [float(share) for share in re.findall(r'class="share[^"]*" style="--w:([\d.]+)"', html)]
    assert shares == pytest.approx([0.355 / 0.4, 0.145 / 0.4], abs=1e-3)
