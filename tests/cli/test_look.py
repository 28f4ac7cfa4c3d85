"""Pictures for own and given outputs; vectors and their neighbours."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib import font_manager

import seq2see
from seq2see.seeing.labels import BASE, Fonts
from tests.commands import Run

Call = Callable[..., Run]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".html", ".json"])
def test_every_format(call: Call, speller: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"look{suffix}"
    run = call("look", speller, "abcd", "--out", path)
    assert (run.code, run.out) == (0, f"{seq2see.load(speller).predict('abcd').text}\n")
    assert path.stat().st_size > 100
    assert str(path) in run.err


def test_the_looks_of_a_given_output_are_those_of_reading_it(call: Call, speller: Path, tmp_path: Path) -> None:
    path = tmp_path / "look.json"
    record = json.loads(call("look", speller, "abcd", "--target", "F E D", "--out", path, "--json").out)
    looks = json.loads(path.read_text())
    assert looks["outputs"] == ["F", "E", "D", "<eos>"]
    assert np.array(looks["weights"]).shape == (4, 4)
    np.testing.assert_allclose(np.sum(looks["weights"], axis=1), 1, atol=1e-5)
    model = seq2see.load(speller)
    assert record["text"] == "F E D"
    scored = model.score([{"source": "abcd", "output": "F E D"}])
    assert record["log_probability"] == pytest.approx(scored.log_probability, abs=1e-5)
    own = model.predict("abcd")
    again = model.look("abcd", target=own.text)
    np.testing.assert_allclose(again.looks.weights, own.looks.weights, atol=1e-6)


def test_the_looks_of_a_given_label(call: Call, judge: Path, tmp_path: Path) -> None:
    for label in ("alike", "different"):
        run = call("look", judge, "ab\tba", "--target", label, "--out", tmp_path / "look.json", "--json")
        record = json.loads(run.out)
        assert record["label"] == label
        scored = seq2see.load(judge).score([{"first": "ab", "second": "ba", "output": label}])
        assert record["log_probability"] == pytest.approx(scored.log_probability, abs=1e-5)
        assert json.loads((tmp_path / "look.json").read_text())["outputs"] == [label]


@pytest.fixture
def few_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with the font that comes with matplotlib and no other."""
    fonts = Fonts({BASE: font_manager.findfont(BASE)})
    monkeypatch.setattr("seq2see.seeing.labels.installed", lambda: fonts)


@pytest.mark.usefixtures("few_fonts")
def test_letters_that_no_font_has_are_named_with_what_to_install(call: Call, speller: Path, tmp_path: Path) -> None:
    for page in ("look.svg", "look.html", "look.json"):
        assert "U+0939" not in call("look", speller, "abह", "--out", tmp_path / page).err
    run = call("look", speller, "abहि", "--out", tmp_path / "look.png")
    (notice,) = [line for line in run.err.splitlines() if "U+0939" in line]
    assert (run.code, [word in notice for word in ("U+0939", "U+093F", "fonts-noto-core")]) == (0, [True] * 3)


@pytest.mark.usefixtures("few_fonts")
def test_letters_that_no_font_has_are_named_once_for_many_pictures(call: Call, speller: Path, tmp_path: Path) -> None:
    run = call("predict", speller, "abह", "aक", "ख", "--looks", tmp_path / "looks")
    assert run.err.count("fonts-noto-core") == 1
    assert "U+0939" in run.err
    assert len(list((tmp_path / "looks").glob("*.png"))) == 3


@pytest.mark.usefixtures("few_fonts")
def test_letters_that_a_chart_lacks_are_named(call: Call, speller: Path, tmp_path: Path) -> None:
    run = call("figure", "curve", f"ह={speller}", f"b={speller}", "--out", tmp_path / "curve.png", "--title", "你")
    assert run.code == 0
    assert [word in run.err for word in ("U+0939", "fonts-noto-core", "U+4F60", "fonts-noto-cjk")] == [True] * 4


def test_titles_are_drawn(call: Call, speller: Path, tmp_path: Path) -> None:
    call("look", speller, "abcd", "--out", tmp_path / "look.html", "--title", "Four letters", "--map", "source")
    assert "Four letters" in (tmp_path / "look.html").read_text("utf-8")


def test_vectors_are_the_models(call: Call, speller: Path, judge: Path) -> None:
    records = [json.loads(line) for line in call("encode", speller, "abcd", "feed", "--json").lines]
    assert [record["input"] for record in records] == ["abcd", "feed"]
    assert [record["vector"] for record in records] == seq2see.load(speller).encode(["abcd", "feed"])
    assert len(records[0]["vector"]) == 24
    numbers = [float(part) for part in call("encode", speller, "abcd").out.split("\t")]
    assert numbers == pytest.approx(records[0]["vector"], rel=1e-4)
    assert len(json.loads(call("encode", judge, "ab\tba", "--json").out)["vector"]) == 48


def test_neighbours_are_the_nearest_by_cosine(call: Call, stdin: Callable[[str], None], speller: Path) -> None:
    words = ["abcd", "abce", "feed", "fade"]
    stdin("\n".join(words) + "\n")
    records = [json.loads(line) for line in call("encode", speller, "--neighbours", 2, "--json").lines]
    vectors = np.array(seq2see.load(speller).encode(words))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for number, record in enumerate(records):
        cosines = unit @ unit[number]
        order = [i for i in np.argsort(-cosines) if i != number][:2]
        assert [near["input"] for near in record["neighbours"]] == [words[i] for i in order]
        assert [near["cosine"] for near in record["neighbours"]] == pytest.approx(cosines[order], abs=1e-5)
    nearest = records[0]["neighbours"][0]
    lines = call("encode", speller, *words, "--neighbours", 1).lines
    assert lines[0] == f"abcd\t{nearest['input']} {nearest['cosine']:.4f}"


def test_a_picture_for_print(call: Call, speller: Path, tmp_path: Path) -> None:
    run = call("look", speller, "abcd", "--out", tmp_path / "look.pdf", "--width", "84mm", "--font-size", 8)
    assert run.code == 0, run.err
    (box,) = re.findall(rb"/MediaBox \[ ?0 0 ([0-9.]+) [0-9.]+ ?\]", (tmp_path / "look.pdf").read_bytes())
    assert float(box) == pytest.approx(84 / 25.4 * 72, abs=0.1)
    for option, value in (("--width", "84"), ("--width", "3px"), ("--font-size", "99"), ("--font-size", "big")):
        run = call("look", speller, "abcd", "--out", tmp_path / "bad.pdf", option, value)
        assert run.code == 2
        assert option in run.err
        assert value in run.err
    run = call("look", speller, "abcd", "--out", tmp_path / "bad.html", "--width", "84mm")
    assert run.code == 2
    assert "--width" in run.err
    assert not list(tmp_path.glob("bad*"))


def test_the_title_names_input_and_output(call: Call, speller: Path, judge: Path, tmp_path: Path) -> None:
    answer = call("look", speller, "abcd", "--out", tmp_path / "a.svg").out.strip()
    assert f"abcd → {answer}" in (tmp_path / "a.svg").read_text("utf-8")
    call("look", speller, "abcd", "--out", tmp_path / "b.svg", "--title", "")
    assert "abcd → " not in (tmp_path / "b.svg").read_text("utf-8")
    call("look", judge, "ab\tba", "--out", tmp_path / "c.html", "--title", "mine")
    assert "mine" in (tmp_path / "c.html").read_text("utf-8")
    label = call("look", judge, "ab\tba", "--out", tmp_path / "c.html").out.strip()
    assert f"ab | ba → {label}" in (tmp_path / "c.html").read_text("utf-8")
