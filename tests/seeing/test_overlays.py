"""Overlays: weights drawn over an image, a video or a spectrogram."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from seq2see.looks import Looks, Picture
from seq2see.modalities.sound import Spectrogram
from seq2see.modalities.video import Video
from seq2see.seeing import plot, save
from seq2see.seeing.image import ImageOverlay, upsample
from seq2see.seeing.overlays import edges_of, overlays_of, without_overlay
from seq2see.seeing.page import page
from seq2see.seeing.panels import panels_of
from seq2see.seeing.style import THEMES, Theme, rgb
from seq2see.seeing.video import FRAMES, MAX_FRAMES, VideoOverlay, select_frames
from tests.own_kind import Digits, DigitsOverlay
from tests.seeing.conftest import some_weights

# ---------------- Images

SVG = "{http://www.w3.org/2000/svg}"
GRID = {"kind": "grid", "shape": [2, 3]}
RED = np.full((40, 60, 3), (200, 30, 30), dtype=np.uint8)


def image_looks(weights: np.ndarray, outputs: list[str], *, channels: int = 3, calls: list[int] | None = None) -> Looks:
    def shown() -> Picture:
        if calls is not None:
            calls.append(1)
        return Picture(RED[..., :channels])

    looks = Looks({"image": np.float32(weights)}, outputs=outputs, layouts={"image": GRID})
    looks.inputs["image"] = [f"{row},{column}" for row in (1, 2) for column in (1, 2, 3)]
    looks.probabilities, looks.pictures = [0.5] * len(outputs), {"image": shown}
    return looks


ONE = np.float32([[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])


def image_overlay(looks: Looks, **options: bool) -> ImageOverlay:
    (overlay,) = overlays_of(looks, panels_of(looks), **options)
    return overlay


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_what_was_looked_at_keeps_its_colours_and_the_rest_fades_into_paper(theme: Theme) -> None:
    overlay = image_overlay(image_looks(ONE, ["a", "b"]))
    first, last = (overlay.lit(step, theme).astype(float) for step in range(2))
    paper = rgb(theme.paper)
    lit, dim = first[5, 5], first[35, 55]
    assert np.abs(lit - RED[0, 0]).sum() < 0.7 * np.abs(lit - paper).sum()
    assert np.abs(dim - paper).sum() < 0.7 * np.abs(RED[0, 0] - paper).sum()
    assert np.ptp(dim) < np.ptp(lit)
    assert np.abs(last[35, 55] - lit).max() <= 2
    assert np.abs(last[5, 5] - dim).max() <= 2


def test_columns_counted_from_the_right_are_lit_where_they_lie() -> None:
    looks = image_looks(ONE, ["a", "b"])
    looks.layouts["image"] = GRID | {"direction": "right-to-left"}
    assert (image_overlay(looks).weights == image_overlay(image_looks(ONE, ["a", "b"])).weights[:, :, ::-1]).all()
    looks.layouts["image"] = {"kind": "frames", "shape": [6], "direction": "right-to-left"}
    line = image_overlay(looks).weights
    assert line.shape == (2, 1, 6)
    assert line[0, 0, 5] == line[1, 0, 0] == 1


def test_light_grows_with_weight_and_has_no_edges() -> None:
    shares = upsample(np.linspace(0, 1, 7)[None], (10, 210))[0]
    assert (np.diff(shares) >= -1e-6).all()
    assert np.abs(np.diff(shares)).max() < 0.02
    levels = [ImageOverlay("s", RED, np.full((1, 2, 3), level), ["x"], [], 1.0) for level in (0.0, 0.1, 0.4, 1.0)]
    redness = [float(np.ptp(overlay.lit(0, THEMES["light"])[20, 30].astype(int))) for overlay in levels]
    assert redness == sorted(redness)
    assert redness[0] < redness[-1]


def test_grey_pictures_and_heads() -> None:
    assert image_overlay(image_looks(ONE, ["a", "b"], channels=1)).image.shape == (40, 60, 3)
    heads = image_looks(np.stack([ONE, ONE[::-1]]), ["a", "b"])
    together = image_overlay(heads)
    assert together.head is None
    assert together.weights[0].ravel() == pytest.approx([0.5, 0, 0, 0, 0, 0.5])
    separate = overlays_of(heads, panels_of(heads, map="image"), separate_heads=True)
    assert [overlay.head for overlay in separate] == [1, 2]
    label = image_looks(np.stack([ONE[:1], ONE[1:]]), ["cat"])
    assert [overlay.head for overlay in overlays_of(label, panels_of(label))] == [1, 2]


def test_other_maps_stay_heatmaps_and_a_picture_is_read_only_to_be_drawn(tmp_path: Path) -> None:
    calls: list[int] = []
    looks = image_looks(ONE, ["a", "b"], calls=calls)
    looks.maps["question"], looks.inputs["question"] = np.float32([[1, 0], [0, 1]]), ["what", "colour"]
    save(looks, tmp_path / "a.json")
    assert not calls
    groups = panels_of(looks)
    overlays = overlays_of(looks, groups)
    assert [group[0].name for group in without_overlay(groups, [*overlays])] == ["question"]
    assert calls == [1]
    text = page(looks)
    assert text.count('class="tile') == 4  # the row, the picture, two words
    assert "<table" in text
    assert "attention weight" in text


def test_a_map_over_no_picture_is_a_heatmap() -> None:
    looks = image_looks(ONE, ["a", "b"])
    looks.pictures = {}
    assert overlays_of(looks, panels_of(looks)) == []
    looks = image_looks(ONE, ["a", "b"])
    looks.pictures = {"image": lambda: None}
    assert overlays_of(looks, panels_of(looks)) == []


def test_the_sheet_has_a_picture_for_each_word_under_it(tmp_path: Path) -> None:
    looks = image_looks(ONE, ["<dog>", "runs"])
    root = ET.parse(save(looks, tmp_path / "a.svg", title="a photo")).getroot()
    texts = [element.text for element in root.iter(f"{SVG}text")]
    for text in ("as the model sees it", "<dog>", "runs", "50 %", "attention weight of a cell", "a photo"):
        assert text in texts
    names = [group.get("id") for group in root.iter(f"{SVG}g")]
    assert {"picture", "look <dog>", "look runs", "light"} <= set(names)
    assert len(list(root.iter(f"{SVG}image"))) == 4
    with Image.open(save(looks, tmp_path / "a.png")) as drawn:
        assert drawn.width > 1.5 * drawn.height


def test_wide_pictures_stand_one_below_the_other(tmp_path: Path) -> None:
    looks = image_looks(ONE, ["a", "b"])
    looks.pictures = {"image": lambda: Picture(np.full((20, 400, 1), 255, dtype=np.uint8))}
    with Image.open(save(looks, tmp_path / "a.png")) as drawn:
        assert drawn.height > 0.3 * drawn.width


def test_a_long_word_is_cut_before_its_probability(tmp_path: Path) -> None:
    looks = image_looks(ONE, ["m" * 60, "b"])
    texts = [element.text or "" for element in ET.parse(save(looks, tmp_path / "a.svg")).getroot().iter(f"{SVG}text")]
    (cut,) = [text for text in texts if text.startswith("mm")]
    assert cut.endswith("…")
    assert len(cut) < 30


def test_the_page_holds_its_pictures_for_both_themes() -> None:
    looks = image_looks(ONE, ["<b>dog</b>", "b"])
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
from seq2see.looks import Looks, Picture
looks = Looks({{"m": np.eye(1)}}, {{"m": ["1,1"]}}, ["x"], {{"m": {{"kind": "grid", "shape": [1, 1]}}}})
looks.pictures = {{"m": lambda: Picture(np.zeros((9, 9, 3), np.uint8))}}
looks.save({str(tmp_path / "a.html")!r})
assert "matplotlib" not in sys.modules and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


def test_a_question_about_a_picture_stands_beside_it(tmp_path: Path) -> None:
    looks = image_looks(ONE, ["red", "<eos>"])
    bare = save(looks, tmp_path / "bare.png")
    looks.beside = {"question": "what <colour> is it?", "history": "long " * 400}
    text = save(looks, tmp_path / "a.svg").read_text("utf-8")
    assert "question: what &lt;colour&gt; is it?" in text
    assert len(re.findall(r"long long.* …<", text)) == 1  # cut, not as high as the picture is wide
    with Image.open(save(looks, tmp_path / "a.png")) as with_it, Image.open(bare) as without:
        assert with_it.height > without.height
    assert '<p class="beside"><span>question:</span> <bdi>what &lt;colour&gt; is it?</bdi></p>' in page(looks)
    assert looks.to_dict()["beside"] == looks.beside
    assert "beside" not in image_looks(ONE, ["red", "<eos>"]).to_dict()


# ---------------- Videos


def video_looks(weights: Any, *, shape: list[int], grey: bool = False) -> Looks:
    """A light that wanders from left to right; one frame for each quarter of a second."""
    frames = np.full((shape[0], 24, 32, 1 if grey else 3), 40, dtype=np.uint8)
    for number in range(shape[0]):
        frames[number, 8:16, number * 32 // shape[0] : number * 32 // shape[0] + 4] = 250
    video = Video(frames, [0.25 * number for number in range(shape[0])])
    weights = np.asarray(weights, dtype=np.float32)
    return Looks(
        maps={"video": weights},
        inputs={"video": [f"{place}" for place in range(weights.shape[-1])]},
        outputs=["a", "ball", "<eos>"][: weights.shape[-2]],
        layouts={"video": {"kind": "frames" if len(shape) == 1 else "frames-grid", "shape": shape}},
        probabilities=[0.8] * weights.shape[-2],
        pictures={"video": lambda: video},
    )


def video_overlay(looks: Looks) -> VideoOverlay:
    (overlay,) = overlays_of(looks, panels_of(looks))
    return overlay


def test_film_and_words_show_the_same_frames_in_the_same_columns() -> None:
    weights = np.full((2, 12), 0.01)
    weights[0, [9, 3, 7]] = [0.5, 0.31, 0.1]
    weights[1, 11] = 0.89
    overlay = video_overlay(video_looks(weights, shape=[12]))
    assert len(overlay.columns) == FRAMES
    assert {3, 7, 9, 11} <= set(overlay.columns)
    assert overlay.elsewhere == pytest.approx([0.04, 0.04])
    figure = plot(video_looks(weights, shape=[12]))
    written = [text.get_text() for text in figure.texts]
    assert {"50 %", "31 %", "10 %", "0.75 s", "2.25 s", "a", "ball", "P = 0.80", "4 % elsewhere"} <= set(written)
    assert written[0].startswith("8 of 12 frames, the most looked at")
    seconds: dict[float, set[str]] = {}
    for axes in figure.axes:
        if str(axes.get_gid()).startswith("frame"):
            seconds.setdefault(round(axes.get_position().x0, 4), set()).add(str(axes.get_gid()))
    assert [len(names) for names in seconds.values()] == [1] * FRAMES


def test_what_any_word_looked_at_most_is_shown() -> None:
    assert video_overlay(video_looks(np.eye(12)[[0, 5, 11]], shape=[12])).columns[::7] == [0, 11]
    assert select_frames(np.eye(20)) == list(range(MAX_FRAMES))
    assert select_frames(np.eye(10)) == list(range(10))
    even = np.full((1, 12), 1 / 12)
    assert len(select_frames(even)) == 11  # 10 would leave more than a tenth of the look out


def test_frames_are_lit_by_their_weight() -> None:
    overlay = video_overlay(video_looks([[0.0, 1.0, 0.0]], shape=[3]))
    theme = THEMES["light"]
    ghost, lit = overlay.lit(0, 0, theme).astype(int), overlay.lit(0, 1, theme).astype(int)
    assert (ghost[0, 0] > 150).all()
    assert (lit[0, 0] < ghost[0, 0]).all()


def test_regions_of_frames_are_lit_where_they_were_looked_at() -> None:
    weights = np.zeros((1, 2 * 1 * 2))
    weights[0, 3] = 1.0  # the second frame, its right half
    overlay = video_overlay(video_looks(weights, shape=[2, 1, 2], grey=True))
    assert overlay.shares.tolist() == [[0.0, 1.0]]
    picture = overlay.lit(0, 1, THEMES["light"]).astype(int)
    assert picture[0, 0].sum() > picture[0, -1].sum() + 60
    assert not overlay.whole


def test_places_that_stand_for_several_frames_show_one_of_them() -> None:
    video = Video(np.zeros((8, 2, 2, 3), dtype=np.uint8), [float(number) for number in range(8)])
    assert video.sample(4).times == [1.0, 3.0, 5.0, 7.0]
    assert video.sample(8) is video


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_videos_in_every_format(tmp_path: Path, suffix: str) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(6), size=3)
    path = video_looks(weights, shape=[6]).save(tmp_path / f"film{suffix}", title="a ball")
    assert path.stat().st_size > 300
    if suffix == ".html":
        page = path.read_text("utf-8")
        assert page.count("data:image/png;base64,") == 2
        assert "frames that were looked at for: a ball" in page
        assert "<table" in page


def test_heads_of_a_video_are_averaged_unless_separate() -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 3))
    looks = video_looks(weights, shape=[4])
    assert video_overlay(looks).shares == pytest.approx(weights.mean(0), abs=1e-6)
    overlays = overlays_of(looks, panels_of(looks), separate_heads=True)
    assert [overlay.head for overlay in overlays] == [1, 2]
    written = [text.get_text() for text in plot(looks, map="video").texts]
    assert written.count("the video") == 1
    assert [text.split(" · ")[0] for text in written if text.startswith("head")] == ["head 1", "head 2"]


# ---------------- Sounds


def sound_looks(steps: int = 3, *, heads: int = 0) -> Looks:
    """Forty frames of a rising tone, four to a place."""
    energies = np.full((40, 16), -9.0, dtype=np.float32)
    energies[np.arange(40), np.arange(40) * 16 // 40] = 2.0
    sound = Spectrogram(energies, 0.01, np.linspace(100, 7000, 16, dtype=np.float32))
    shape = (heads, steps, 10) if heads else (steps, 10)
    return Looks(
        maps={"sound": some_weights(*shape)},
        inputs={"sound": [f"{0.04 * place:.2f} s" for place in range(10)]},
        outputs=["one", "<two>", "<eos>"][:steps],
        layouts={"sound": {"kind": "frames", "shape": [10]}},
        probabilities=[0.9, 0.5, 0.99][:steps],
        pictures={"sound": lambda: sound},
    )


def test_strips_lie_where_the_places_do() -> None:
    looks = sound_looks()
    (overlay,) = overlays_of(looks, panels_of(looks))
    assert overlay.edges == pytest.approx(np.arange(11) * 0.04)
    figure = plot(looks, theme="dark")
    names = {axes.get_gid(): axes for axes in figure.axes}
    assert names["spectrogram"].get_xlim() == pytest.approx((0, 0.4))
    (mesh,) = [one for axes in figure.axes for one in axes.collections if one.get_gid() == "weights sound"]
    assert np.asarray(mesh.get_array()) == pytest.approx(looks.weights)
    written = [text.get_text() for text in figure.texts]
    assert {"one", "<two>", "<eos>", "90 %", "50 %", "99 %"} <= set(written)


def test_the_last_place_ends_with_the_sound_and_names_without_seconds_share_it() -> None:
    assert edges_of(["0.00 s", "0.40 s", "0.80 s"], 0.95).tolist() == [0.0, 0.4, 0.8, 0.95]
    assert edges_of(["1", "2"], 1.0).tolist() == [0.0, 0.5, 1.0]
    assert edges_of(["0.80 s", "0.00 s"], 1.0).tolist() == [0.0, 0.5, 1.0]


def test_heads_of_a_sound_are_averaged_unless_separate() -> None:
    looks = sound_looks(heads=2)
    groups = panels_of(looks)
    (mean,) = overlays_of(looks, groups)
    assert mean.weights == pytest.approx(looks.weights)
    assert [overlay.head for overlay in overlays_of(looks, groups, separate_heads=True)] == [1, 2]
    assert sum("head" in text.get_text() for text in plot(looks, map="sound").texts) == 2


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".json"])
def test_sounds_in_every_format(tmp_path: Path, suffix: str) -> None:
    path = sound_looks().save(tmp_path / f"heard{suffix}")
    assert path.stat().st_size > 300
    if suffix == ".json":
        assert json.loads(path.read_text("utf-8"))["inputs"][1] == "0.04 s"
    if suffix == ".html":
        page = path.read_text("utf-8")
        assert page.count("data:image/png;base64,") == 2
        assert "spectrogram with the weights over time for: one &lt;two&gt;" in page
        assert "<bdi>0.04s</bdi>" in page
        assert "<two>" not in page


def test_a_label_has_one_strip() -> None:
    assert plot(sound_looks(1)).texts


def test_frequencies_are_named_where_their_bands_lie() -> None:
    places, names = Spectrogram(np.zeros((1, 3), np.float32), 0.01, np.array([400, 1000, 3000], np.float32)).ticks()
    assert names == ["0.5", "1", "2"]
    assert places == pytest.approx([0.5 + 1 / 6, 1.5, 2.0])


def test_a_sound_without_a_voice_is_drawn() -> None:
    looks = sound_looks()
    silent = Spectrogram(np.zeros((40, 16), np.float32), 0.01, np.linspace(100, 7000, 16, dtype=np.float32))
    looks.pictures = {"sound": lambda: silent}
    assert plot(looks).axes


# ---------------- A kind of one's own


def digit_looks() -> Looks:
    return Looks(
        maps={"digits": some_weights(2, 4)},
        inputs={"digits": ["1", "2", "3", "4"]},
        outputs=["even", "<eos>"],
        layouts={"digits": {"kind": "frames", "shape": [4]}},
        pictures={"digits": lambda: Digits([3, 1, 4, 1])},
    )


def test_a_record_of_ones_own_is_drawn_by_the_view_that_it_names(tmp_path: Path) -> None:
    looks = digit_looks()
    (overlay,) = overlays_of(looks, panels_of(looks))
    assert isinstance(overlay, DigitsOverlay)
    assert overlay.edges.tolist() == [0, 1, 2, 3, 4]
    figure = plot(looks)
    drawn = {axes.get_gid(): axes for axes in figure.axes}
    assert drawn["digits"].get_xlim() == (0, 4)
    assert "position" in {axes.get_xlabel() for axes in figure.axes}
    text = page(looks)
    assert f'alt="{DigitsOverlay.description} for: even &lt;eos&gt;"' in text
    assert "<table" in text, "places in time are listed too"


def test_a_map_whose_places_lie_otherwise_is_a_heatmap() -> None:
    looks = digit_looks()
    looks.layouts["digits"] = {"kind": "grid", "shape": [2, 2]}
    assert overlays_of(looks, panels_of(looks)) == []
