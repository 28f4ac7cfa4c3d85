"""Ways of giving a picture to the decoder: each learns to say what is in it, with the shipped recipe made small."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.system.drawing import draw_things, random_thing
from tests.system.small import Row, learn

SMALL = (
    "inputs.image.height=16",
    "inputs.image.width=16",
    "inputs.image.encoder={kind: convolutional, backbone: small, channels: [16, 24], size: 32}",
    "output.min_count=1",
    "decoder.size=32",
    "decoder.dropout=0",
    "decoder.embedding={size: 16}",
    "loss.label_smoothing=0",
    "training.learning_rate=0.01",
    "training.batch_rows=16",
    "training.average=1",
    "training.threads=1",
    "training.precision=float32",
    "training.dev_rows=20",
    "training.report_every=450",
    "search.beam=1",
    "search.max_length=6",
    "evaluation.metrics=[exact]",
)

UPDATES = {
    "vector at the start": 450,  # all has to be remembered from the first step on
    "vector at every step": 180,
    "grid, doubly stochastic": 160,
    "grid, one cell at a time": 240,
}
WAYS = {
    "vector at the start": [
        "attention=none",
        "inputs.image.encoder.places=vector",
        "decoder.start=image",
        "training.learning_rate=0.004",
        "training.batch_rows=32",
    ],
    "vector at every step": [
        "attention=none",
        "inputs.image.encoder.places=vector",
        "decoder.start=none",
        "decoder.every_step=image",
        "training.learning_rate=0.005",
        "training.batch_rows=32",
    ],
    "grid, doubly stochastic": ["attention.size=24", "decoder.start=none", "loss.doubly_stochastic=0.5"],
    "grid, one cell at a time": ["attention.size=24", "decoder.start=none", "attention.choice=hard"],
}


def captioned_pictures(folder: Path, number: int) -> list[Row]:
    """A thing in each picture, and words for it."""
    draw = random.Random(5)
    rows: list[Row] = []
    for i in range(number):
        colour, shape = random_thing(draw)
        draw_things(folder / "images" / f"{i}.png", [(colour, shape)], draw)
        rows.append({"image": f"images/{i}.png", "caption": f"a {colour} {shape}"})
    return rows


@pytest.mark.filterwarnings("ignore:perplexity is given the places chosen")
@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=[] if way == "grid, doubly stochastic" else pytest.mark.slow) for way in WAYS]
)
def test_what_is_said_is_what_is_seen(tmp_path: Path, way: str) -> None:
    rows = captioned_pictures(tmp_path, 460)
    overrides = [*SMALL, *WAYS[way]]
    trained = learn("image-captioning", rows[60:], rows[:60], tmp_path, updates=UPDATES[way], overrides=overrides)
    blind = random.Random(1).sample(trained.rows, len(trained.rows))
    mismatched = [{**row, "image": other["image"]} for row, other in zip(trained.rows, blind, strict=True)]
    least = 0.45 if way == "vector at the start" else 0.6
    assert trained.model.evaluate(trained.rows).metrics["exact"] >= least
    assert trained.model.evaluate(mismatched).metrics["exact"] <= 0.4  # three colours, two shapes
    recipe, prediction = trained.model.recipe, trained.model.predict(trained.rows[0]["image"])
    if recipe.attention.score == "none":
        assert not prediction.looks.maps
        ways_in = (["image"], []) if way == "vector at the start" else ([], ["image"])
        assert (recipe.started_by, recipe.fed_every_step) == ways_in
    else:
        assert prediction.looks.layouts["image"] == {"kind": "grid", "shape": [4, 4]}
        hard = recipe.attention.choice == "hard"
        assert {name: len(places) for name, places in prediction.looks.chosen.items()} == (
            {"image": len(prediction.tokens)} if hard else {}
        )
