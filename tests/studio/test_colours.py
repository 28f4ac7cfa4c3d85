"""Dark is dark, whether a person chose it or the system did: a stylesheet can only say it twice."""

from __future__ import annotations

import re
from pathlib import Path

import seq2see

COLOURS = Path(seq2see.__file__).parent / "studio/static/css/colours.css"


def test_both_ways_to_the_dark_have_the_same_colours() -> None:
    text = COLOURS.read_text("utf-8")
    chosen = re.search(r':root\[data-theme="dark"\] \{(.*?)\}', text, re.DOTALL)
    system = re.search(r':root:not\(\[data-theme="light"\]\) \{(.*?)\}', text, re.DOTALL)
    assert chosen is not None
    assert system is not None
    assert chosen[1].split() == system[1].split()
    assert chosen[1].count(":") > 15
