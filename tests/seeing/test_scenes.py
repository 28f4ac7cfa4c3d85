"""Looks at a picture: lit where it was looked at, the word above, one for each output."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from seq2see.looks import Looks
from seq2see.seeing import save
from seq2see.seeing.overlays import Scene, scenes_of, spread, unseen
from seq2see.seeing.page import page
from seq2see.seeing.panels import panels_of
from seq2see.seeing.style import THEMES, Theme, rgb

SVG = "{http://www.w3.org/2000/svg}"
GRID = {"kind": "grid", "shape": [2, 3]}
RED = np.full((40, 60, 3), (200, 30, 30), dtype=np.uint8)


def seen(weights: np.ndarray, outputs: list[str], *, channels: int = 3, calls: list[int] | None = None) -> Looks:
    def shown() -> np.ndarray:
        if calls is not None:
            calls.append(1)
        return RED[..., :channels]

    looks = Looks({"image": np.float32(weights)}, outputs=outputs, layouts={"image": GRID})
    looks.inputs["image"] = [f"{row},{column}" for row in (1, 2) for column in (1, 2, 3)]
    looks.probabilities, looks.pictures = [0.5] * len(outputs), {"image": shown}
    return looks


ONE = np.float32([[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])


def scene(looks: Looks, **options: bool) -> Scene:
    (found,) = scenes_of(looks, panels_of(looks), **options)
    return found


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_what_was_looked_at_keeps_its_colours_and_the_rest_fades_into_paper(theme: Theme) -> None:
    found = scene(seen(ONE, ["a", "b"]))
    first, last = (found.lit(step, theme).astype(float) for step in range(2))
    paper = rgb(theme.paper)
    lit, dim = first[5, 5], first[35, 55]
    assert np.abs(lit - RED[0, 0]).sum() < 0.7 * np.abs(lit - paper).sum()
    assert np.abs(dim - paper).sum() < 0.7 * np.abs(RED[0, 0] - paper).sum()
    assert np.ptp(dim) < np.ptp(lit)
    assert np.abs(last[35, 55] - lit).max() <= 2
    assert np.abs(last[5, 5] - dim).max() <= 2


def test_columns_counted_from_the_right_are_lit_where_they_lie() -> None:
    looks = seen(ONE, ["a", "b"])
    looks.layouts["image"] = GRID | {"direction": "right-to-left"}
    assert (scene(looks).weights == scene(seen(ONE, ["a", "b"])).weights[:, :, ::-1]).all()
    looks.layouts["image"] = {"kind": "frames", "shape": [6], "direction": "right-to-left"}
    line = scene(looks).weights
    assert line.shape == (2, 1, 6)
    assert line[0, 0, 5] == line[1, 0, 0] == 1


def test_light_grows_with_weight_and_has_no_edges() -> None:
    shares = spread(np.linspace(0, 1, 7)[None], (10, 210))[0]
    assert (np.diff(shares) >= -1e-6).all()
    assert np.abs(np.diff(shares)).max() < 0.02
    levels = [Scene("s", RED, np.full((1, 2, 3), level), ["x"], [], 1.0) for level in (0.0, 0.1, 0.4, 1.0)]
    redness = [float(np.ptp(one.lit(0, THEMES["light"])[20, 30].astype(int))) for one in levels]
    assert redness == sorted(redness)
    assert redness[0] < redness[-1]


def test_grey_pictures_and_heads() -> None:
    assert scene(seen(ONE, ["a", "b"], channels=1)).picture.shape == (40, 60, 3)
    heads = seen(np.stack([ONE, ONE[::-1]]), ["a", "b"])
    together = scene(heads)
    assert together.head is None
    assert together.weights[0].ravel() == pytest.approx([0.5, 0, 0, 0, 0, 0.5])
    apart = scenes_of(heads, panels_of(heads, map="image"), apart=True)
    assert [one.head for one in apart] == [1, 2]
    label = seen(np.stack([ONE[:1], ONE[1:]]), ["cat"])
    assert [one.head for one in scenes_of(label, panels_of(label))] == [1, 2]


def test_other_maps_stay_heatmaps_and_a_picture_is_read_only_to_be_drawn(tmp_path: Path) -> None:
    calls: list[int] = []
    looks = seen(ONE, ["a", "b"], calls=calls)
    looks.maps["question"], looks.inputs["question"] = np.float32([[1, 0], [0, 1]]), ["what", "colour"]
    save(looks, tmp_path / "a.json")
    assert not calls
    groups = panels_of(looks)
    scenes = scenes_of(looks, groups)
    assert [group[0].name for group in unseen(groups, [*scenes])] == ["question"]
    assert calls == [1]
    text = page(looks)
    assert text.count('class="scene') == 4  # the row, the picture, two words
    assert "<table" in text
    assert "attention weight" in text


def test_a_map_over_no_picture_is_a_heatmap() -> None:
    looks = seen(ONE, ["a", "b"])
    looks.pictures = {}
    assert scenes_of(looks, panels_of(looks)) == []
    looks = seen(ONE, ["a", "b"])
    looks.pictures = {"image": lambda: None}
    assert scenes_of(looks, panels_of(looks)) == []


def test_the_sheet_has_a_picture_for_each_word_under_it(tmp_path: Path) -> None:
    looks = seen(ONE, ["<dog>", "runs"])
    root = ET.parse(save(looks, tmp_path / "a.svg", title="a photo")).getroot()
    told = [one.text for one in root.iter(f"{SVG}text")]
    for text in ("as the model sees it", "<dog>", "runs", "50 %", "attention weight of a cell", "a photo"):
        assert text in told
    names = [group.get("id") for group in root.iter(f"{SVG}g")]
    assert {"picture", "look <dog>", "look runs", "light"} <= set(names)
    assert len(list(root.iter(f"{SVG}image"))) == 4
    with Image.open(save(looks, tmp_path / "a.png")) as drawn:
        assert drawn.width > 1.5 * drawn.height


def test_wide_pictures_stand_one_below_the_other(tmp_path: Path) -> None:
    looks = seen(ONE, ["a", "b"])
    looks.pictures = {"image": lambda: np.full((20, 400, 1), 255, dtype=np.uint8)}
    with Image.open(save(looks, tmp_path / "a.png")) as drawn:
        assert drawn.height > 0.3 * drawn.width


def test_a_long_word_is_cut_before_its_probability(tmp_path: Path) -> None:
    looks = seen(ONE, ["m" * 60, "b"])
    told = [one.text or "" for one in ET.parse(save(looks, tmp_path / "a.svg")).getroot().iter(f"{SVG}text")]
    (cut,) = [text for text in told if text.startswith("mm")]
    assert cut.endswith("…")
    assert len(cut) < 30


def test_the_page_holds_its_pictures_for_both_themes() -> None:
    looks = seen(ONE, ["<b>dog</b>", "b"])
    both, dark = page(looks), page(looks, theme="dark")
    assert len(re.findall("data:image/jpeg;base64,", both)) == 1 + 2 * 2
    assert len(re.findall("data:image/jpeg;base64,", dark)) == 1 + 2
    assert "&lt;b&gt;dog" in both
    assert "<b>dog" not in both
    assert "http:" not in both


def test_pages_of_pictures_do_not_pay_for_matplotlib(tmp_path: Path) -> None:
    program = f"""
import sys
import numpy as np
from seq2see.looks import Looks
looks = Looks({{"m": np.eye(1)}}, {{"m": ["1,1"]}}, ["x"], {{"m": {{"kind": "grid", "shape": [1, 1]}}}})
looks.pictures = {{"m": lambda: np.zeros((9, 9, 3), np.uint8)}}
looks.save({str(tmp_path / "a.html")!r})
assert "matplotlib" not in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_a_question_about_a_picture_stands_beside_it(tmp_path: Path) -> None:
    looks = seen(ONE, ["red", "<eos>"])
    bare = save(looks, tmp_path / "bare.png")
    looks.beside = {"question": "what <colour> is it?", "history": "long " * 400}
    text = save(looks, tmp_path / "a.svg").read_text("utf-8")
    assert "question: what &lt;colour&gt; is it?" in text
    assert len(re.findall(r"long long.* …<", text)) == 1  # cut, not as high as the picture is wide
    with Image.open(save(looks, tmp_path / "a.png")) as with_it, Image.open(bare) as without:
        assert with_it.height > without.height
    assert '<p class="beside"><span>question:</span> <bdi>what &lt;colour&gt; is it?</bdi></p>' in page(looks)
    assert looks.to_dict()["beside"] == looks.beside
    assert "beside" not in seen(ONE, ["red", "<eos>"]).to_dict()
