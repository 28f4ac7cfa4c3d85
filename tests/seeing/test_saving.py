from __future__ import annotations

import json
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from PIL import Image

from seq2see.errors import UserError
from seq2see.looks import Looks
from seq2see.seeing import save

SVG = "{http://www.w3.org/2000/svg}"


def test_json_holds_the_weights(looks: Looks, tmp_path: Path) -> None:
    record = json.loads(save(looks, tmp_path / "looks.json").read_text(encoding="utf-8"))
    np.testing.assert_allclose(record["weights"], looks.weights, atol=1e-6)
    assert record["inputs"] == looks.inputs["source"]
    assert record["outputs"] == looks.outputs


def test_json_of_one_map(looks: Looks, tmp_path: Path) -> None:
    looks.maps["other"], looks.inputs["other"] = looks.weights[:, :2], ["p", "q"]
    record = json.loads(save(looks, tmp_path / "looks.json", map="other").read_text(encoding="utf-8"))
    assert record["inputs"] == ["p", "q"]
    assert "maps" not in record


def test_png_is_a_picture_and_folders_are_made(looks: Looks, tmp_path: Path) -> None:
    path = save(looks, tmp_path / "new" / "folder" / "looks.PNG")
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert len(image.convert("RGB").getcolors(maxcolors=1 << 20)) > 12


def test_svg_keeps_text_as_text_and_every_cell(make_looks: Callable[..., Looks], tmp_path: Path) -> None:
    looks = make_looks(["<b>&", "$x$", "क्ष", "ि"], ["مرحبا", "<eos>"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = save(looks, tmp_path / "looks.svg", title="<script>")
    root = ET.parse(path).getroot()
    found = [text.text for text in root.iter(f"{SVG}text")]
    for symbol in ["<b>&", "$x$", "क्ष", "◌ि", "مرحبا", "<eos>", "attention weight", "<script>"]:
        assert symbol in found
    cells = next(group for group in root.iter(f"{SVG}g") if group.get("id") == "weights source")
    assert len(list(cells.iter(f"{SVG}use")) or list(cells.iter(f"{SVG}path"))) == 8


def test_the_same_looks_give_the_same_file(looks: Looks, tmp_path: Path) -> None:
    for suffix in ("svg", "png", "html"):
        one, other = (save(looks, tmp_path / f"{name}.{suffix}").read_bytes() for name in ("one", "other"))
        assert one == other


def test_an_unknown_suffix_lists_the_known(looks: Looks, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"unknown suffix '\.pgn' \(did you mean '\.png'\?\); allowed: \.png, \.svg, \.pdf, \.html"
    ):
        save(looks, tmp_path / "looks.pgn")
    with pytest.raises(UserError, match=r"unknown suffix ''"):
        save(looks, tmp_path / "looks")


@pytest.mark.parametrize("suffix", ["png", "svg", "html", "json"])
def test_a_path_that_cannot_be_written_is_named(looks: Looks, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write '.*file/looks"):
        save(looks, tmp_path / "file" / f"looks.{suffix}")


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_without_maps_the_reason_is_given(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(UserError, match="nothing to draw: the recipe says so"):
        save(Looks(outputs=["x"], reason="the recipe says so"), tmp_path / f"looks.{suffix}")


def test_without_maps_json_records_the_reason(tmp_path: Path) -> None:
    path = save(Looks(outputs=["x"], reason="the recipe says so"), tmp_path / "looks.json")
    assert json.loads(path.read_text())["reason"] == "the recipe says so"


def test_html_and_json_do_not_pay_for_matplotlib(tmp_path: Path) -> None:
    program = f"""
import sys
import numpy as np
from seq2see.looks import Looks
looks = Looks(maps={{"m": np.eye(2)}}, inputs={{"m": ["a", "b"]}}, outputs=["x", "y"])
looks.save({str(tmp_path / "a.html")!r}); looks.save({str(tmp_path / "a.json")!r})
assert "matplotlib" not in sys.modules and "torch" not in sys.modules
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root)


def test_threads_that_draw_leave_the_process_as_it_was(
    looks: Looks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to begin is the first to end, so that each would put back what the other has changed."""
    delays = iter((0.2, 0.4))
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: sleep(next(delays)))
    filters, settings = list(warnings.filters), dict(rcParams)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda number: save(looks, tmp_path / f"{number}.png"), range(2)))
    assert warnings.filters == filters
    assert dict(rcParams) == settings
