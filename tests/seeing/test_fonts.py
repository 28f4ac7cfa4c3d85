from __future__ import annotations

import warnings

import pytest
from matplotlib import font_manager
from matplotlib.ft2font import LoadFlags

from seq2see.seeing.fonts import BASE, Fonts, installed
from seq2see.seeing.lettering import Lettering


def glyphs(text: str) -> list[int]:
    """Glyph numbers after shaping with the families chosen for the text; 0 is the box of a missing glyph."""
    paths = [font_manager.findfont(family) for family in Lettering(spell=False).symbol(text).families[:-1]]
    font = font_manager.get_font(paths)
    font.set_size(12, 72)
    return [item.glyph_index for item in font._layout(Lettering(spell=False).symbol(text).text, LoadFlags.DEFAULT)]


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
    assert set(glyphs("مرحبا")) - alone, "letters inside a word must take their joined forms"


def test_missing_letters_are_found(only_base: Fonts) -> None:
    assert only_base.missing("ab हि") == {"ह", "ि"}


def test_joiners_need_no_glyph(only_base: Fonts) -> None:
    assert only_base.missing("a\u200d\u200fb") == set()


def test_devanagari_is_shaped_and_not_boxes(devanagari: str) -> None:
    assert "Devanagari" in devanagari or devanagari != BASE
    assert 0 not in glyphs("हिन्दी")
    assert len(glyphs("क्ष")) < len("क्ष"), "the conjunct must be one shape, not three letters"


def test_a_vowel_sign_and_its_circle_come_from_one_font(devanagari: str) -> None:
    label = Lettering().symbol("ि")
    assert label.text == "◌ि"
    assert label.families[0] == devanagari
    assert 0 not in glyphs("ि")


def test_mixed_scripts_are_covered_together(devanagari: str) -> None:
    families = installed().families("ok हि مرحبا")
    assert devanagari in families
    assert BASE in families


def test_without_a_font_letters_are_spelt_and_one_warning_says_what_to_install(only_base: Fonts) -> None:
    letters = Lettering(fonts=only_base)
    with pytest.warns(UserWarning, match=r"Devanagari.*fonts-noto-core"):
        assert letters.symbol("ि").text == "i"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert letters.symbol("भा").text == "bha·aa"
        assert Lettering(fonts=only_base).symbol("क").text == "ka"


def test_an_svg_keeps_letters_that_this_machine_cannot_draw(only_base: Fonts) -> None:
    assert Lettering(spell=False, fonts=only_base).symbol("भा").text == "भा"


def test_a_dollar_is_not_mathematics_and_long_symbols_are_cut() -> None:
    label = Lettering().symbol("$5$")
    assert label.style(9)["parse_math"] is False
    assert len(Lettering().symbol("x" * 200).text) < 40
