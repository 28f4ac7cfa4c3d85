from __future__ import annotations

import pytest

from seq2see.seeing.labels import direction_of, script_of, spell_out, visible


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        (" ", "␣"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("", "∅"),
        ("\x00", "␀"),
        ("\x7f", "␡"),
        ("\x85", "U+0085"),
        ("\u3000", "␣"),
        ("\u200d", "ZWJ"),
        ("two words", "two words"),
        (" word", "␣word"),
        ("word", "word"),
        ("<eos>", "<eos>"),
        ("ि", "◌ि"),
        ("\u0301", "◌\u0301"),
        ("कि", "कि"),
    ],
)
def test_every_symbol_can_be_seen(symbol: str, shown: str) -> None:
    assert visible(symbol) == shown


def test_a_joiner_inside_a_word_still_joins() -> None:
    assert visible("क्\u200dष") == "क्\u200dष"


@pytest.mark.parametrize(
    ("symbols", "direction"),
    [
        (["hello", "world"], "ltr"),
        (list("مرحبا"), "rtl"),
        (["שלום", "<unk>"], "rtl"),
        (["1", ".", "<eos>"], "ltr"),
        (["کتاب", "a", "اچھی"], "rtl"),
        (list("भारत"), "ltr"),
        ([], "ltr"),
    ],
)
def test_columns_run_as_the_script_does(symbols: list[str], direction: str) -> None:
    assert direction_of(symbols) == direction


def test_a_script_is_named_as_unicode_names_it() -> None:
    assert [script_of(character) for character in "aकم"] == ["Latin", "Devanagari", "Arabic"]


def test_letters_without_a_font_are_spelt_by_name() -> None:
    assert spell_out("◌ि") == "i"
    assert spell_out("हिन्दी") == "ha·i·na·virama·da·ii"
    assert spell_out("ok 你") == "o·k· ·U+4F60"
