from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from seq2see.looks import Looks
from seq2see.seeing import plot, save
from seq2see.seeing.heatmap import bands_for


def meshes(figure: Figure) -> list[QuadMesh]:
    return [artist for axes in figure.axes for artist in axes.collections if isinstance(artist, QuadMesh)]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_cells_hold_the_weights_and_labels_the_symbols(looks: Looks) -> None:
    figure = plot(looks, title="A title")
    (mesh,) = meshes(figure)
    np.testing.assert_allclose(np.asarray(mesh.get_array()).reshape(4, 3), looks.weights, rtol=1e-6)
    for symbol in [*looks.inputs["source"], *looks.outputs, "A title", "attention weight", "input →", "← output"]:
        assert symbol in texts(figure)


def test_right_to_left_inputs_run_right_to_left(make_looks: Callable[..., Looks]) -> None:
    arabic = make_looks(list("مرحبا"), list("marhab"))
    heatmap = meshes(plot(arabic))[0].axes
    assert heatmap.xaxis_inverted()
    assert not meshes(plot(arabic, direction="ltr"))[0].axes.xaxis_inverted()
    labels = {text.get_text(): text for text in heatmap.texts}
    place = {letter: label.get_window_extent().x0 for letter, label in labels.items()}
    assert place["م"] > place["ر"] > place["ح"] > place["ب"] > place["ا"]


def test_heads_stand_side_by_side(make_looks: Callable[..., Looks]) -> None:
    figure = plot(make_looks(list("abc"), list("xy"), heads=3))
    boxes = [mesh.axes.get_position() for mesh in meshes(figure)]
    assert len(boxes) == 3
    assert len({round(box.y0, 6) for box in boxes}) == 1
    assert {"head 1", "head 2", "head 3"} <= set(texts(figure))


def test_several_maps_are_stacked_under_their_names_each_on_its_scale(make_looks: Callable[..., Looks]) -> None:
    both = make_looks(list("abcd"), list("xyz"), name="passage")
    both.maps["question"], both.inputs["question"] = both.maps["passage"][:, :2] * 0.1, ["p", "q"]
    figure = plot(both)
    first, second = meshes(figure)
    assert first.axes.get_position().y0 > second.axes.get_position().y0
    assert (first.get_clim(), second.get_clim()) == ((0, 1), (0, 0.1))
    assert {"passage", "question"} <= set(texts(figure))
    assert len(meshes(plot(both, map="question"))) == 1


def test_a_label_is_drawn_as_shaded_words(make_looks: Callable[..., Looks]) -> None:
    figure = plot(make_looks(["a", "man", "plays", "a", "guitar"], ["entailment"]))
    assert not meshes(figure)
    (words,) = [axes for axes in figure.axes if axes.patches]
    shades = [patch.get_facecolor() for patch in words.patches]
    assert len(shades) == 5
    assert len(set(shades)) > 1
    assert "output: entailment" in texts(figure)
    assert "guitar" in texts(figure)


def test_shaded_words_of_a_long_text_are_broken_into_lines(make_looks: Callable[..., Looks]) -> None:
    figure = plot(make_looks(["word"] * 200, ["label"]))
    (words,) = [axes for axes in figure.axes if axes.patches]
    assert len({patch.get_y() for patch in words.patches}) > 5
    assert figure.get_size_inches()[0] < 9


@pytest.mark.parametrize(("places", "steps", "bands"), [(9, 10, 1), (45, 15, 1), (150, 80, 1), (24, 1, 1)])
def test_what_fits_is_not_broken(places: int, steps: int, bands: int) -> None:
    assert bands_for(places, steps) == bands


def test_a_very_long_input_continues_in_bands(make_looks: Callable[..., Looks]) -> None:
    long = make_looks([f"w{place}" for place in range(300)], list("abcdef"))
    figure = plot(long)
    parts = [np.asarray(mesh.get_array()).reshape(6, -1) for mesh in meshes(figure)]
    assert len(parts) > 2
    np.testing.assert_allclose(np.concatenate(parts, axis=1), long.weights, rtol=1e-6)
    assert any(re.match(r"input, 1 to \d+ of 300", text) for text in texts(figure))


def test_a_page_of_places_has_readable_labels_at_a_sane_size(make_looks: Callable[..., Looks], tmp_path: Path) -> None:
    large = make_looks([f"word{place}" for place in range(150)], [f"out{step}" for step in range(80)])
    figure = plot(large)
    labels = list(meshes(figure)[0].axes.texts)
    assert len(labels) == 150 + 80
    assert min(label.get_fontsize() for label in labels) >= 6.5
    with Image.open(save(large, tmp_path / "large.png")) as image:
        assert 2000 < image.width < 6000
        assert 1000 < image.height < 6000


def test_hundreds_of_rows_stay_within_bounds_with_labels_thinned(
    make_looks: Callable[..., Looks], tmp_path: Path
) -> None:
    tall = make_looks(list("abc"), [f"o{step}" for step in range(900)])
    labels = [text for text in meshes(plot(tall))[0].axes.texts if text.get_text().startswith("o")]
    assert 100 < len(labels) < 900
    with Image.open(save(tall, tmp_path / "tall.png")) as image:
        assert image.height <= 8001


def test_nothing_is_cut_off_at_the_edge(make_looks: Callable[..., Looks]) -> None:
    for inputs, outputs in (
        (["incomprehensibilities"] * 9, ["x", "y"]),
        (["مسلمانوں"] * 6, ["unconstitutionally", "y"]),
        (["word"] * 60, ["y"] * 60),
    ):
        figure = plot(make_looks(inputs, outputs))
        page = figure.bbox
        for text in figure.findobj(Text):
            if text.get_text() and text.get_visible():
                box = text.get_window_extent()
                assert page.x0 <= box.x0 <= box.x1 <= page.x1, text
                assert page.y0 <= box.y0 <= box.y1 <= page.y1, text


def test_a_long_title_is_broken_not_widened(make_looks: Callable[..., Looks]) -> None:
    figure = plot(make_looks(list("ab"), list("xy")), title="a very long sentence indeed " * 12)
    assert figure.get_size_inches()[0] < 6


def test_themes_differ(looks: Looks) -> None:
    assert plot(looks).get_facecolor() != plot(looks, theme="dark").get_facecolor()


def test_a_figure_displays_itself_in_a_notebook(looks: Looks) -> None:
    figure = looks.plot()
    with Image.open(BytesIO(figure._repr_png_())) as shown:
        assert shown.format == "PNG"
        assert shown.width / shown.height == pytest.approx(figure.get_figwidth() / figure.get_figheight(), rel=0.02)
