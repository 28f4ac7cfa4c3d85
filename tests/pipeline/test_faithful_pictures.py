"""Cells of pictures hidden one by one, and gradients of their vectors: each number found again by hand."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import seq2see
from seq2see.data.image_files import ImageInput
from seq2see.modalities.image import ImageField, Pictures
from seq2see.pipeline.faithful import GRADIENT, OCCLUSION, PlaceImportance
from seq2see.pipeline.scoring import score_rows

FIELD = ImageField(ImageInput())

COLOURS = {"red": (220, 30, 30), "green": (30, 180, 60), "blue": (40, 60, 220)}
RECIPE = {
    "inputs": {"image": {"kind": "image", "height": 16, "width": 24}},
    "encoder": {"kind": "convolutional", "channels": [12, 16, 16], "size": 24},
    "output": {"column": "colour"},
    "attention": {"over": "image", "size": 16},
    "decoder": {"size": 24, "start": "none", "embedding": {"size": 8}},
    "training": {"epochs": 0, "updates": 80, "learning_rate": 0.01, "batch_rows": 24, "dev_rows": 10, "threads": 1},
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """A patch of colour somewhere on grey."""
    folder, draw = tmp_path_factory.mktemp("patches"), random.Random(1)
    made = []
    for number in range(120):
        colour = draw.choice(list(COLOURS))
        picture = Image.new("RGB", (24, 16), (120, 120, 120))
        picture.paste(
            COLOURS[colour], (left := 8 * draw.randint(0, 2), top := 8 * draw.randint(0, 1), left + 8, top + 8)
        )
        picture.save(folder / f"{number}.png")
        made.append({"image": str(folder / f"{number}.png"), "output": colour})
    return made


@pytest.fixture(scope="module")
def model(rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> seq2see.Model:
    folder = tmp_path_factory.mktemp("model")
    lines = ["image\tcolour", *(f"{row['image']}\t{row['output']}" for row in rows)]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return seq2see.train(RECIPE, folder / "rows.tsv", out=folder / "run", listeners=[])


def test_one_cell_is_hidden_and_the_rest_stays() -> None:
    pixels = torch.arange(2 * 3 * 4 * 6, dtype=torch.uint8).view(2, 3, 4, 6)
    column = Pictures(pixels, torch.tensor([6, 6]))
    hidden = FIELD.occlusion(column, "", [2, 3]).without(torch.tensor([1, 5])).pixels
    changed = (hidden != pixels).any(1)
    assert changed[0].nonzero().tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]
    assert changed[1].nonzero().tolist() == [[2, 4], [2, 5], [3, 4], [3, 5]]
    assert (hidden[0, :, 0, 2].float() - pixels[0].float().mean()).abs().max() <= 0.5
    leftward = Pictures(pixels, torch.tensor([6, 6]), leftward=True)
    first = FIELD.occlusion(leftward, "", [3]).without(torch.tensor([0, 0])).pixels
    assert (first != pixels).any(1)[0].any(0).tolist() == [False, False, False, False, True, True]


def test_occlusion_is_the_drop_of_the_scores(model: seq2see.Model, rows: list[dict[str, str]], tmp_path: Path) -> None:
    found = PlaceImportance(model.bundle, rows[0]).measure()["image"]
    assert found.attention.shape == (2, 6)
    whole = np.array(score_rows(model.bundles, [rows[0]])[0].log_probs)
    picture = np.asarray(Image.open(rows[0]["image"])).copy()
    mean = picture.mean().round()
    for place in range(6):
        down, across = divmod(place, 3)
        hidden = picture.copy()
        hidden[8 * down : 8 * down + 8, 8 * across : 8 * across + 8] = mean
        Image.fromarray(hidden).save(tmp_path / "hidden.png")
        cut = np.array(score_rows(model.bundles, [{**rows[0], "image": str(tmp_path / "hidden.png")}])[0].log_probs)
        assert found.importance[OCCLUSION][:, place] == pytest.approx(whole - cut, abs=1e-4)


def test_gradients_are_those_of_the_cells_vectors(model: seq2see.Model, rows: list[dict[str, str]]) -> None:
    found = PlaceImportance(model.bundle, rows[0]).measure()["image"].importance[GRADIENT]
    encoder, network = model.bundle.network.encoder("image"), model.bundle.network
    batch = model.bundle.fields.batch([rows[0]], target=True)
    with torch.no_grad():
        maps = encoder.map_of(batch.inputs["image"].pixels)
    maps.requires_grad_()
    batch.inputs["image"] = Pictures(None, batch.inputs["image"].widths, maps=maps)
    step, ready = network.forward_batch(batch)
    (slope,) = torch.autograd.grad(
        network.head.target_scores(step, ready, batch.target.ids, mask=batch.target.mask)[0], maps
    )
    assert found[0] == pytest.approx((slope * maps).norm(dim=1)[0].flatten().detach().numpy(), rel=1e-3)


def test_what_is_said_depends_on_the_cell_that_shows_it(model: seq2see.Model, rows: list[dict[str, str]]) -> None:
    found = []
    for row in rows[:20]:
        picture = np.asarray(Image.open(row["image"])).astype(int)
        coloured = (picture != 120).any(-1).reshape(2, 8, 3, 8).any((1, 3)).ravel()
        found.append(
            PlaceImportance(model.bundle, row).measure()["image"].importance[OCCLUSION][0].argmax() == coloured.argmax()
        )
    assert np.mean(found) > 0.8
    told = model.faithful(rows, rows=5)
    assert told.rows == 5
    assert {one.measure for one in told.agreements} == {OCCLUSION, GRADIENT}
