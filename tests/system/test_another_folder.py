"""Same seed, same result, wherever the table and its files lie: nothing depends on the path of a folder."""

from __future__ import annotations

import json
import random
from pathlib import Path

import torch

from tests.system.drawing import draw_things, random_thing
from tests.system.small import Row, learn
from tests.system.test_captioning_ways import SMALL


def pictures(folder: Path) -> list[Row]:
    draw, rows = random.Random(7), list[Row]()
    for i in range(60):
        colour, shape = random_thing(draw)
        draw_things(folder / "images" / f"{i}.png", [(colour, shape)], draw)
        rows.append({"image": f"images/{i}.png", "caption": f"a {colour} {shape}"})
    return rows


def test_pictures_in_another_folder_give_the_same_model(tmp_path: Path) -> None:
    overrides = [*SMALL, "attention.size=24", "decoder.start=none", "data.dev_share=0.4", "training.dev_rows=5"]
    models, folders = [], [tmp_path / "here", tmp_path / "somewhere" / "else"]
    for folder in folders:
        rows = pictures(folder)
        models.append(learn("image-captioning", rows, rows, folder, updates=3, overrides=overrides))
    model, second = (trained.model for trained in models)
    for (name, first), other in zip(
        model.bundle.network.named_parameters(), second.bundle.network.parameters(), strict=True
    ):
        assert torch.equal(first, other), name
    reports = [json.loads((folder / "model" / "metrics.jsonl").read_text()) for folder in folders]
    assert reports[0]["dev"] == reports[1]["dev"]  # measured on the same rows
    outputs = [[trained.model.predict(row["image"]).text for row in trained.rows[:5]] for trained in models]
    assert outputs[0] == outputs[1]
