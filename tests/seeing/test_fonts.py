from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from matplotlib import font_manager
from matplotlib.ft2font import LoadFlags
from matplotlib.text import Text

from seq2see.errors import Notice
from seq2see.seeing import labels
from seq2see.seeing.labels import BASE, Fonts, Labeller, installed
from seq2see.seeing.plots import line_plot


def glyphs(text: str) -> list[int]:
    """Glyph numbers after shaping with the families chosen for the text; 0 is the box of a missing glyph."""
    paths = [font_manager.findfont(family) for family in Labeller(spell=False).symbol(text).families[:-1]]
    font = font_manager.get_font(paths)
    font.set_size(12, 72)
    return [item.glyph_index for item in font._layout(Labeller(spell=False).symbol(text).text, LoadFlags.DEFAULT)]


@pytest.fixture
def only_base() -> Fonts:
    return Fonts({BASE: font_manager.findfont(BASE)})


def test_latin_and_phonetic_letters_need_nothing_installed(only_base: Fonts) -> None:
    assert only_base.missing("ɪndiə Straße ␣⏎⇥∅…→") == set()
    assert only_base.families("ɪndiə") == [BASE]


def test_arabic_and_hebrew_are_drawn_and_joined_with_what_comes_along() -> None:
    assert 0 not in glyphs("مرحبا")
    assert 0 not in glyphs("שלום")
    alone = {glyph for letter in "مرحبا" for glyph in glyphs(letter)}
    assert set(glyphs("مرحبا")) - alone, "labeller inside a word must take their joined forms"


def test_missing_letters_are_found(only_base: Fonts) -> None:
    assert only_base.missing("ab हि") == {"ह", "ि"}


def test_joiners_need_no_glyph(only_base: Fonts) -> None:
    assert only_base.missing("a\u200d\u200fb") == set()


def test_devanagari_is_shaped_and_not_boxes(devanagari: str) -> None:
    assert "Devanagari" in devanagari or devanagari != BASE
    assert 0 not in glyphs("हिन्दी")
    assert len(glyphs("क्ष")) < len("क्ष"), "the conjunct must be one shape, not three labeller"


def test_a_vowel_sign_and_its_circle_come_from_one_font(devanagari: str) -> None:
    label = Labeller().symbol("ि")
    assert label.text == "◌ि"
    assert label.families[0] == devanagari
    assert 0 not in glyphs("ि")


def test_mixed_scripts_are_covered_together(devanagari: str) -> None:
    families = installed().families("ok हि مرحبا")
    assert devanagari in families
    assert BASE in families


def test_without_a_font_letters_are_spelt_and_one_notice_names_all_of_them_and_what_to_install(
    only_base: Fonts,
) -> None:
    labeller = Labeller(fonts=only_base)
    assert (labeller.symbol("ि").text, labeller.symbol("भा").text) == ("i", "bha·aa")
    with pytest.warns(Notice, match=r"Devanagari.*U\+092D.*U\+093E.*U\+093F.*fonts-noto-core") as told:
        labeller.report_missing()
    assert len(told) == 1
    again = Labeller(fonts=only_base)
    assert again.symbol("क").text == "ka"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.report_missing()
    with pytest.warns(Notice, match=r"Cjk.*fonts-noto-cjk"):
        only_base.report_missing("你", drawn="")
    with pytest.warns(Notice, match=r"symbols: \S+ \(U\+1FAE0\).*fonts-symbola"):
        only_base.report_missing("\U0001fae0", drawn="")


def test_a_chart_is_drawn_in_the_fonts_of_its_names_or_says_which_letters_it_lacks(
    devanagari: str, only_base: Fonts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    series = {"हिन्दी": ([1.0, 2.0], [1.0, 2.0]), "b": ([1.0, 2.0], [2.0, 1.0])}
    names = {"xlabel": "x", "ylabel": "y", "title": "हिन्दी"}
    figure = line_plot(series, path=tmp_path / "chart.png", **names)
    title = figure.axes[0].get_title(loc="left")
    (drawn,) = [one for one in figure.findobj(Text) if one.get_text() == title and one.axes is figure.axes[0]][:1]
    assert drawn.get_fontfamily()[0] == devanagari
    monkeypatch.setattr(labels, "installed", lambda: only_base)
    with pytest.warns(Notice, match=r"Devanagari.*U\+0939.*boxes") as told:
        line_plot(series, path=tmp_path / "boxes.png", **names)
    assert len(told) == 1


def test_an_svg_keeps_letters_that_this_machine_cannot_draw(only_base: Fonts) -> None:
    assert Labeller(spell=False, fonts=only_base).symbol("भा").text == "भा"


def test_a_dollar_is_not_mathematics_and_long_symbols_are_cut() -> None:
    label = Labeller().symbol("$5$")
    assert label.style(9)["parse_math"] is False
    assert len(Labeller().symbol("x" * 200).text) < 40
