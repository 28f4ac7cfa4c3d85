from __future__ import annotations

import itertools

import pytest
from matplotlib.colors import to_rgb

from seq2see.errors import UserError
from seq2see.seeing.style import THEMES, Theme, contrast, luminance, theme_named

themes = pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES.keys())


@themes
def test_the_ramp_reads_in_black_and_white(theme: Theme) -> None:
    levels = [luminance(theme.colormap()(step / 40)) for step in range(41)]
    steps = [after - before for before, after in itertools.pairwise(levels)]
    assert all(step < 0 for step in steps) or all(step > 0 for step in steps)
    assert contrast(theme.colormap()(0.0), theme.colormap()(1.0)) > 10


@themes
def test_words_can_be_read_on_every_shade(theme: Theme) -> None:
    worst = min(contrast(to_rgb(theme.ink_on(step / 50)), theme.colormap()(step / 50)) for step in range(51))
    assert worst > 3.9


@themes
def test_small_print_and_lines_stand_out_from_the_paper(theme: Theme) -> None:
    assert contrast(to_rgb(theme.muted), to_rgb(theme.paper)) > 4.5
    assert all(contrast(to_rgb(colour), to_rgb(theme.paper)) > 2.2 for colour in theme.series)


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(UserError, match=r"unknown theme 'drak' \(did you mean 'dark'\?\); allowed: light, dark"):
        theme_named("drak")
