"""Recipes whose outputs are numbers: what is filled in, what cannot work, what would do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.decoders.reconstruction import channel_sizes, hidden_activation, hidden_sizes, output_activation
from seq2see.errors import UserError
from seq2see.modalities.image import ImageOutput
from seq2see.recipe import load_recipe

VECTOR: dict[str, Any] = {"inputs": {"x": {"kind": "vector"}}, "output": {"kind": "vector", "column": "x"}}
PICTURE: dict[str, Any] = {
    "inputs": {"image": {"kind": "image", "height": 24, "width": 16, "colour": "grey"}},
    "output": {"kind": "image", "column": "image"},
    "attention": "none",
}


def test_what_a_recipe_of_vectors_need_not_say() -> None:
    recipe = load_recipe(VECTOR)
    assert recipe.encoder_of("x").kind == "dense"
    assert (recipe.decoder.kind, recipe.decoder.start, recipe.attention.score) == ("reconstruction", ["x"], "none")


def test_the_decoder_mirrors_the_encoder_it_starts_from() -> None:
    recipe = load_recipe("autoencoder", overrides=["encoder.hidden=[9,5]", "encoder.activation=tanh"])
    assert (hidden_sizes(recipe), hidden_activation(recipe), output_activation(recipe)) == ([5, 9], "tanh", "linear")
    own = load_recipe(recipe, overrides=["decoder.reconstruction.hidden=[7]", "decoder.reconstruction.activation=relu"])
    assert (hidden_sizes(own), hidden_activation(own)) == ([7], "relu")
    pictures = load_recipe("image-autoencoder")
    assert (channel_sizes(pictures), output_activation(pictures)) == ([128, 64, 32], "logistic")
    assert hidden_sizes(pictures) == []


def test_a_picture_that_comes_out_is_as_large_as_the_one_that_goes_in() -> None:
    output = load_recipe(PICTURE).output
    assert isinstance(output, ImageOutput)
    assert output.shape == (1, 24, 16)
    smaller = load_recipe(PICTURE, overrides=["output.height=12"]).output
    assert isinstance(smaller, ImageOutput)
    assert smaller.shape == (1, 12, 16)


REFUSED = [
    (VECTOR, "attention=additive", "attention.score: additive has nothing to look at: a vector is a single place"),
    (
        VECTOR,
        "decoder.kind=label",
        "decoder.kind: label cannot write an output of kind vector; allowed: reconstruction",
    ),
    (VECTOR, "inputs.x.encoder.kind=recurrent", "recurrent does not read 'x', an input of kind vector; allowed: dense"),
    (VECTOR, "inputs.x.noise={kind: masking, amount: 1}", "masking 1 leaves nothing to read"),
    (VECTOR, "inputs.x.noise.kind=gaussian", "inputs.x.noise.amount: 0 is no noise"),
    (VECTOR, "inputs.x.noise.amount=1", "inputs.x.noise.amount: has no effect here: noise.kind is none"),
    (VECTOR, "decoder.reconstruction.output=logistic", "standardised numbers do not"),
    (VECTOR, "decoder.reconstruction.pixels=transposed", "has no effect here: the output is no picture"),
    (VECTOR, "loss.label_smoothing=0.1", "loss.label_smoothing: has no effect here: a vector has no probabilities"),
    (VECTOR, "search.beam=3", "search.beam: has no effect here: a vector is not searched for"),
    (VECTOR, "decoder.size=3", "decoder.size: has no effect here: it starts from the code as it is"),
    (VECTOR, "training.metric=perplexity", "'perplexity' cannot be taken of a vector; allowed: mse"),
    (VECTOR, "evaluation.baseline=copy", "'copy' is no trivial model of a vector; allowed: mean, none"),
    (PICTURE, "inputs.image.augment.flip=true", "inputs.image.augment.flip: the picture to give is not changed along"),
    (PICTURE, "decoder.reconstruction={pixels: transposed, channels: [8, 8, 8, 8]}", "4 levels double a side so often"),
    (PICTURE, "inputs.image.encoder={kind: dense, hidden: [], dropout: 0.5}", "encoder.hidden is empty"),
    ({"inputs": {"x": {}}}, "decoder.reconstruction.hidden=[3]", "only decoder.kind reconstruction"),
]


@pytest.mark.parametrize(("raw", "change", "said"), REFUSED)
def test_what_cannot_work_is_refused_with_its_reason(raw: dict[str, Any], change: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        load_recipe(raw, overrides=[change])
    assert said in str(refused.value)


def test_other_inputs_may_be_looked_at_beside_a_vector() -> None:
    mixed = {**VECTOR, "inputs": {"x": {"kind": "vector"}, "words": {}}, "decoder": {"start": "x"}}
    recipe = load_recipe(mixed)
    assert recipe.looked_at == ["words"]
    with pytest.raises(UserError, match=r"attention.over: 'x' is a vector, a single place"):
        load_recipe(mixed, overrides=["attention.over=[x,words]"])


def test_a_picture_made_into_one_vector_is_not_looked_at() -> None:
    with pytest.raises(UserError, match=r"attention.over: 'image' is made into one vector, a single place"):
        load_recipe("image-captioning", overrides=["inputs.image.encoder.places=vector"])
    recipe = load_recipe("image-captioning", overrides=["inputs.image.encoder.places=vector", "attention=none"])
    assert recipe.started_by == ["image"]
