"""Recipes whose outputs are vectors or images: what is filled in, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.decoders.reconstruction import channel_sizes, hidden_activation, hidden_sizes, output_activation
from seq2see.modalities.image import ImageOutput
from seq2see.recipe import load_recipe
from tests.recipe.refusing import ONE, Refused

VECTOR: dict[str, Any] = {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector", "column": "x"}}
PICTURE: dict[str, Any] = {
    "inputs": {"image": {"kind": "image", "height": 24, "width": 16, "colour": "grey"}},
    "output": {"kind": "image", "column": "image"},
    "attention": "none",
}


def test_parts_that_a_recipe_of_vectors_need_not_name() -> None:
    recipe = load_recipe(VECTOR)
    assert recipe.encoder_of("x").kind == "dense"
    assert (recipe.decoder.kind, recipe.decoder.start, recipe.attention.score) == ("reconstruction", ["x"], "none")


def test_the_decoder_mirrors_the_encoder_it_starts_from() -> None:
    recipe = load_recipe("autoencoder", overrides=["encoder.hidden=[9,5]", "encoder.activation=tanh"])
    assert (hidden_sizes(recipe), hidden_activation(recipe), output_activation(recipe)) == ([5, 9], "tanh", "linear")
    changed = load_recipe(
        recipe, overrides=["decoder.reconstruction.hidden=[7]", "decoder.reconstruction.activation=relu"]
    )
    assert (hidden_sizes(changed), hidden_activation(changed)) == ([7], "relu")
    pictures = load_recipe("image-autoencoder")
    assert (channel_sizes(pictures), output_activation(pictures)) == ([128, 64, 32], "logistic")
    assert hidden_sizes(pictures) == []


def test_an_image_output_is_as_large_as_the_image_input() -> None:
    output = load_recipe(PICTURE).output
    assert isinstance(output, ImageOutput)
    assert output.shape == (1, 24, 16)
    smaller = load_recipe(PICTURE, overrides=["output.height=12"]).output
    assert isinstance(smaller, ImageOutput)
    assert smaller.shape == (1, 12, 16)


REFUSED = [
    Refused(VECTOR, {"attention.score": "attention"}, "additive vector", overrides=["attention=additive"]),
    Refused(VECTOR, {"decoder.kind": "decoder-kind"}, "label vector reconstruction", overrides=["decoder.kind=label"]),
    Refused(
        VECTOR,
        {"inputs.x.encoder.kind": "readers"},
        "recurrent x vector dense",
        overrides=["inputs.x.encoder.kind=recurrent"],
    ),
    Refused(
        VECTOR, {"inputs.x.noise.amount": "noise"}, "masking 1", overrides=["inputs.x.noise={kind: masking, amount: 1}"]
    ),
    Refused(VECTOR, {"inputs.x.noise.amount": "noise"}, "0", overrides=["inputs.x.noise.kind=gaussian"]),
    Refused(VECTOR, {"inputs.x.noise.amount": "no-effect"}, "noise.kind none", overrides=["inputs.x.noise.amount=1"]),
    Refused(
        VECTOR,
        {"decoder.reconstruction.output": "reconstruction"},
        "logistic linear",
        overrides=["decoder.reconstruction.output=logistic"],
    ),
    Refused(
        VECTOR,
        {"decoder.reconstruction.pixels": "no-effect"},
        "picture",
        overrides=["decoder.reconstruction.pixels=transposed"],
    ),
    Refused(VECTOR, {"loss.label_smoothing": "output-settings"}, "vector", overrides=["loss.label_smoothing=0.1"]),
    Refused(VECTOR, {"search.beam": "output-settings"}, "vector", overrides=["search.beam=3"]),
    Refused(VECTOR, {"decoder.size": "no-effect"}, "code", overrides=["decoder.size=3"]),
    Refused(VECTOR, {"training.metric": "metrics"}, "perplexity vector mse", overrides=["training.metric=perplexity"]),
    Refused(
        VECTOR, {"evaluation.baseline": "metrics"}, "copy vector mean none", overrides=["evaluation.baseline=copy"]
    ),
    Refused(
        PICTURE,
        {"inputs.image.augment.flip": "augmented-output"},
        "picture",
        overrides=["inputs.image.augment.flip=true"],
    ),
    Refused(
        PICTURE,
        {"inputs.image.augment.elastic": "augmented-output"},
        "picture",
        overrides=["inputs.image.augment.elastic=1"],
    ),
    Refused(
        PICTURE,
        {"decoder.reconstruction.channels": "reconstruction"},
        "4",
        overrides=["decoder.reconstruction={pixels: transposed, channels: [8, 8, 8, 8]}"],
    ),
    Refused(
        PICTURE,
        {"inputs.image.encoder.dropout": "no-effect"},
        "encoder.hidden",
        overrides=["inputs.image.encoder={kind: dense, hidden: [], dropout: 0.5}"],
    ),
    Refused(
        PICTURE,
        {"decoder.reconstruction.channels": "no-effect"},
        "decoder.reconstruction.pixels dense",
        overrides=["decoder.reconstruction.channels=[8]"],
    ),
    Refused(
        PICTURE,
        {"decoder.reconstruction.channels": "reconstruction"},
        "convolutional decoder.start",
        overrides=["decoder.reconstruction.pixels=transposed", "inputs.image.encoder.kind=dense"],
    ),
    Refused(
        VECTOR,
        {"decoder.reconstruction.activation": "no-effect"},
        "decoder.reconstruction.hidden",
        overrides=["decoder.reconstruction.hidden=[]", "decoder.reconstruction.activation=relu"],
    ),
    Refused(
        ONE,
        {"decoder.reconstruction": "other-kind"},
        "decoder.kind reconstruction",
        overrides=["decoder.reconstruction.hidden=[3]"],
    ),
]


MIXED = {**VECTOR, "inputs": {"x": {"kind": "vector"}, "words": {}}, "decoder": {"start": "x"}}
ONE_PLACE = [
    Refused(MIXED, {"attention.over": "single-places"}, "x vector", overrides=["attention.over=[x,words]"]),
    Refused(
        "image-captioning",
        {"attention.over": "single-places", "attention.score": "attention"},
        "image vector attention.score none decoder.start",
        overrides=["inputs.image.encoder.places=vector"],
    ),
]


@pytest.mark.parametrize("case", [*REFUSED, *ONE_PLACE], ids=str)
def test_refused_recipes_of_vectors_and_images(case: Refused) -> None:
    case.check()


def test_another_input_is_looked_at_beside_a_vector() -> None:
    assert load_recipe(MIXED).looked_at == ["words"]


def test_an_image_that_becomes_one_vector_starts_the_decoder() -> None:
    recipe = load_recipe("image-captioning", overrides=["inputs.image.encoder.places=vector", "attention=none"])
    assert recipe.started_by == ["image"]
