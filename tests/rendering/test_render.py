"""Lines drawn from fonts: the same again, shaped as their script is written, nothing that a font lacks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import font_manager
from PIL import Image, features

from seq2see import rendering
from seq2see.errors import UserError
from seq2see.rendering import Distortions, Face, Rendering, faces_of, render, split_lines
from seq2see.seeing.labels import BASE

pytestmark = pytest.mark.skipif(not features.check("raqm"), reason="Pillow here cannot shape letters (no raqm)")

NONE = Distortions(rotation=0, shear=0, blur=0, noise=0, ink=0, paper=0, elastic=0)
ARABIC = "\u0628\u064a\u062a"
"""Three letters that join."""


def rows(table: Path) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in table.read_text("utf-8").splitlines()]


def text(folder: Path, *lines: str) -> Path:
    path = folder / "text.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_same_seed_draws_the_same_and_another_does_not(tmp_path: Path) -> None:
    source = text(tmp_path, "some words on a line", "other words", "", "some words on a line")
    made = [
        render(source, tmp_path / str(i), Rendering([BASE], max_characters=12, copies=2, seed=seed))
        for i, seed in enumerate((1, 1, 2))
    ]
    assert made[0].train == 2 * 3
    assert (tmp_path / "0" / "train.tsv").read_bytes() == (tmp_path / "1" / "train.tsv").read_bytes()
    table = rows(tmp_path / "0" / "train.tsv")
    assert table[0] == ("image", "text")
    assert [one for _, one in table[1::2]] == ["some words", "on a line", "other words"]
    for name, _ in table[1:]:
        first, again, other = ((tmp_path / str(i) / name).read_bytes() for i in range(3))
        assert first == again != other
    copies = [Image.open(tmp_path / "0" / table[i][0]).tobytes() for i in (1, 2)]
    assert copies[0] != copies[1]


def test_dev_shares_no_text_with_train(tmp_path: Path) -> None:
    source = text(tmp_path, *(f"line {i}" for i in range(60)))
    made = render(source, tmp_path / "out", Rendering([BASE], copies=2, dev_share=0.3, distortions=NONE))
    train, dev = ({one for _, one in rows(tmp_path / "out" / name)[1:]} for name in ("train.tsv", "dev.tsv"))
    assert made.train + made.dev == 120
    assert len(dev) > 8
    assert not train & dev


def test_dev_is_distorted_like_train(tmp_path: Path) -> None:
    class Recorded(Distortions):
        def apply(self, line: Image.Image, random: np.random.Generator) -> Image.Image:
            drawn.append(random.random())
            return line

    drawn: list[float] = []
    source = text(tmp_path, *(f"line {i}" for i in range(200)))
    render(source, tmp_path / "out", Rendering([BASE], size=8, dev_share=0.3, distortions=Recorded()))
    names = {name for name, _ in rows(tmp_path / "out" / "dev.tsv")}
    dev = [first for number, first in enumerate(drawn) if f"images/{number:06d}-0.png" in names]
    assert len(dev) > 40
    assert 0.35 < np.mean(dev) < 0.65


def test_right_to_left_letters_are_joined_and_in_their_order() -> None:
    (face,) = faces_of([BASE])
    joined = face.draw(ARABIC, size=40, right_to_left=True)
    apart = [face.draw(letter, size=40, right_to_left=True) for letter in ARABIC]
    assert joined.width < sum(one.width for one in apart)
    beside = face.draw(f"{ARABIC[0]} ....", size=40, right_to_left=True)
    ink = (np.asarray(beside) < 128).sum(0)
    assert ink.argmax() > beside.width // 2  # the letter is at the right, and dots follow to its left


@pytest.mark.parametrize("name", list(Distortions.__dataclass_fields__))
def test_every_distortion_changes_a_line_and_cuts_nothing_off(name: str) -> None:
    (face,) = faces_of([BASE])
    line = face.draw("Distortion", size=30, right_to_left=False)
    plain = np.asarray(NONE.apply(line, np.random.default_rng(1)))
    limits = {"rotation": 8.0, "shear": 20.0, "blur": 2.0, "noise": 20.0}
    only = Distortions(**{**dict.fromkeys(Distortions.__dataclass_fields__, 0.0), name: limits.get(name, 1.0)})
    changed = np.asarray(only.apply(line, np.random.default_rng(1)))
    assert changed.shape != plain.shape or (changed != plain).any()
    if name not in ("noise", "paper"):
        edges = np.concatenate([changed[0], changed[-1], changed[:, 0], changed[:, -1]])
        assert edges.min() > 200


def test_what_a_font_lacks_is_named_and_not_drawn(tmp_path: Path) -> None:
    said: list[str] = []
    source = text(tmp_path, "plain", "\u3042\u3042 kana", "\u3042 again")
    made = render(source, tmp_path / "out", Rendering([BASE]), say=said.append)
    assert (made.train, made.skipped) == (1, 2)
    assert f"{BASE} has no \u3042 (U+3042, 3 times)" in said[0]
    assert "2 lines of 3 " in said[1]
    with pytest.raises(UserError, match=r"none of its 1 lines .* DejaVu Sans"):
        render(text(tmp_path, "\u3042"), tmp_path / "none", Rendering([BASE]), say=said.append)


def test_many_fonts_that_lack_characters_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(rendering, "TOLD", 1)
    fonts = [
        font_manager.findfont(font_manager.FontProperties(family=BASE, weight=weight)) for weight in ("normal", "bold")
    ]
    render(text(tmp_path, "plain", "\u3042"), tmp_path / "out", Rendering([BASE, *fonts]), say=said.append)
    assert sum("U+3042" in line for line in said) == 1
    assert any(line.startswith("2 more fonts") for line in said)


def test_fonts_go_by_name_or_file(tmp_path: Path) -> None:
    path = font_manager.findfont(BASE)
    by_name, by_file = faces_of(["dejavu sans", path])
    assert by_file.path == path
    assert Path(by_name.path).samefile(path)


def test_mistakes_are_told(tmp_path: Path) -> None:
    source = text(tmp_path, "words")
    (tmp_path / "no.ttf").write_text("no font", encoding="utf-8")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    for fonts, reason in (
        (["DejaVu Snas"], r"DejaVu Snas: .* \(did you mean 'DejaVu Sans'\?\)"),
        ([str(tmp_path / "gone.ttf")], "gone.ttf: no such file"),
        ([str(tmp_path / "no.ttf")], "no.ttf: .*.ttf"),
        ([], "--fonts"),
    ):
        with pytest.raises(UserError, match=reason):
            render(source, tmp_path / "out", Rendering(fonts))
    for path, reason in (
        (tmp_path / "gone.txt", "no such file"),
        (tmp_path, "folder"),
        (text(tmp_path, " ", ""), "text.txt"),
        (tmp_path / "latin.txt", "not UTF-8 at byte 3"),
    ):
        with pytest.raises(UserError, match=reason):
            render(path, tmp_path / "out", Rendering([BASE]))
    assert not (tmp_path / "out").exists()
    for wrong, reason in (({"size": 2}, "--size 2: allowed: from 8 to 400"), ({"dev_share": 1.0}, "--dev-share 1")):
        with pytest.raises(UserError, match=reason):
            Rendering([BASE], **wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="--blur -1: allowed: from 0 to 10"):
        Distortions(blur=-1)
    render(text(tmp_path, "words"), tmp_path / "out", Rendering([BASE]))
    with pytest.raises(UserError, match=r"train.tsv .* --overwrite"):
        render(text(tmp_path, "words"), tmp_path / "out", Rendering([BASE]))
    render(text(tmp_path, "words"), tmp_path / "out", Rendering([BASE]), overwrite=True)


def test_lines_are_cut_between_words() -> None:
    lines = ["a bc def", "ghijklmnop qr", "a bc"]
    assert split_lines(lines, 5) == ["a bc", "def", "ghijklmnop", "qr"]
    assert split_lines(lines, 0) == ["a bc def", "ghijklmnop qr", "a bc"]


class Apart(Face):
    """A font whose letters do not join, as one whose rules are not OpenType's."""

    def draw(self, text: str, *, size: int, right_to_left: bool) -> Image.Image:
        return super().draw("\u200c".join(text), size=size, right_to_left=right_to_left)


def test_fonts_that_do_not_join_letters_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (joining,) = faces_of([BASE])
    apart = Apart("Apart", joining.path)
    assert joining.joins(ARABIC)
    assert not apart.joins(ARABIC)
    assert apart.joins("abc")
    source, told = text(tmp_path, ARABIC), list[str]()
    monkeypatch.setattr(
        "seq2see.rendering.faces_of", lambda names: [{"a": apart, "b": joining}[name] for name in names]
    )
    render(source, tmp_path / "both", Rendering(["a", "b"], distortions=NONE), say=told.append)
    render(source, tmp_path / "joining", Rendering(["b"], distortions=NONE), say=told.append)
    assert told == ["Apart does not join letters here: it needs Graphite, which Pillow's raqm lacks; it is not used"]
    drawn = [(tmp_path / name / "images" / "000000-0.png").read_bytes() for name in ("both", "joining")]
    assert drawn[0] == drawn[1]
    render(source, tmp_path / "apart", Rendering(["a"], distortions=NONE), say=told.append)
    assert told[-1].endswith("its letters are drawn apart, as nobody writes them")
