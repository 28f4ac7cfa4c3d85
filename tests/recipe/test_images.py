"""Recipes with images: sizes, backbones, levels that shrink, and settings that do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.recipe import load_recipe
from tests.recipe.refusing import Refused

NARROW = {"kind": "image", "height": 16, "encoder": {"channels": [32, 32, 32, 32, 8]}}
LITE = {"backbone": "efficientnet-lite0"}


def with_image(image: dict[str, Any], encoder: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    own = {} if encoder is None else {"encoder": encoder}
    return {"inputs": {"image": {"kind": "image", **image, **own}}, **more}


REFUSED = [
    Refused(with_image({"height": 2}), {"inputs.image.height": "image-size"}, "2 224 4"),
    Refused(with_image({"height": 8, "width": 8}, LITE), {"inputs.image.height": "backbone"}, "8 32"),
    Refused(with_image({"colour": "grey"}, LITE), {"inputs.image.colour": "backbone"}, "efficientnet-lite0 rgb"),
    Refused(
        with_image({"height": 64, "width": 0}, LITE),
        {"inputs.image.width": "backbone"},
        "0 inputs.image.encoder.tuned",
    ),
    Refused(
        with_image({}, {"backbone": "resnet50"}),
        {"inputs.image.encoder.weights": "backbone"},
        "resnet50 inputs.image.encoder.tuned",
    ),
    Refused(
        with_image({}, {"channels": [8, 8], "pooled": ["both"]}),
        {"inputs.image.encoder.pooled": "pooled"},
        "1 2 inputs.image.encoder.channels",
    ),
    *(
        Refused(
            with_image({"normalise": "line", "colour": colour, "width": width}),
            {"inputs.image.normalise": "line-image"},
            f"{width} {colour} grey",
        )
        for colour, width in (("rgb", 0), ("grey", 224))
    ),
    *(
        Refused(with_image({"width": 0}, encoder, attention="none"), {"inputs.image.width": "dense-width"}, "0")
        for encoder in ({"kind": "dense"}, {"places": "flat"})
    ),
    *(
        Refused(with_image({**NARROW, "width": width}), {"inputs.image.encoder.channels": "shrinking"}, "5 4 image")
        for width in (0, 16)
    ),
]
NO_EFFECT = [
    Refused(
        with_image({"augment": {"flip": True}}, LITE),
        {"inputs.image.augment.flip": "no-effect"},
        "inputs.image.encoder.tuned",
    ),
    Refused(
        with_image({"augment": {"elastic_width": 9.0}}), {"inputs.image.augment.elastic_width": "no-effect"}, "elastic"
    ),
    Refused(
        with_image({"fit": "stretch", "augment": {"stretch": 0.5}}),
        {"inputs.image.augment.stretch": "no-effect"},
        "224",
    ),
    Refused(
        with_image({}, {**LITE, "channels": [8]}),
        {"inputs.image.encoder.channels": "no-effect"},
        "efficientnet-lite0",
    ),
    Refused(
        with_image({}, {"places": "vector", "recurrent": {}}, attention="none"),
        {"inputs.image.encoder.recurrent": "no-effect"},
        "inputs.image.encoder.places vector",
    ),
    Refused(
        with_image({"direction": "right-to-left"}, {"kind": "dense"}, attention="none"),
        {"inputs.image.direction": "no-effect"},
        "dense",
    ),
    Refused(
        with_image({"direction": "auto"}, output={"kind": "image"}, attention="none"),
        {"inputs.image.direction": "no-effect"},
        "letters",
    ),
]


@pytest.mark.parametrize("case", [*REFUSED, *NO_EFFECT], ids=str)
def test_refused_recipes_of_images(case: Refused) -> None:
    case.check()


def test_a_wide_image_allows_more_levels() -> None:
    assert load_recipe(with_image({**NARROW, "width": 32})).looked_at == ["image"]
