"""The recipe's encoder: where it reads nothing, its self-attention, and the sizes that it promises."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.encoders import RecurrentEncoder, encoders
from seq2see.encoders.recurrent import RecurrentEncoderSettings
from seq2see.pipeline.five_answers import recipe_parameters
from seq2see.recipe import load_recipe
from tests.recipe.refusing import ONE, Refused

READ: dict[str, Any] = {"inputs": {"source": {"encoder": {"kind": "recurrent"}}}}
OWN: dict[str, Any] = {"inputs": {"source": {"encoder": {"cell": "lstm"}}}}
TINY = {**ONE, "encoder": {"size": 8, "embedding": {"size": 6}}}

UNUSED = [
    Refused(recipe, {path: "unused-encoder"}, facts, overrides=[override])
    for recipe, override, path, facts in (
        ("image-captioning", "encoder.size=999", "encoder.size", "every inputs.image.encoder"),
        ("image-captioning", "encoder.self_attention=dot", "encoder.self_attention", "every inputs.image.encoder"),
        ("image-captioning", "encoder.embedding.size=7", "encoder.embedding.size", "every inputs.image.encoder"),
        ("language-model", "encoder.kind=transformer", "encoder", "no inputs transformer"),
        ("language-model", "encoder.size=9", "encoder.size", "no inputs"),
        ({}, "encoder.self_attention=dot", "encoder.self_attention", "no inputs"),
        (READ, "encoder.kind=transformer", "encoder", "every inputs.source.encoder transformer"),
        (OWN, "encoder.cell=rnn", "encoder.cell", "every inputs.source.encoder"),
    )
]
WRONG_KIND = [
    Refused(recipe, {"encoder.kind": "encoder-kind"}, facts, overrides=[override])
    for recipe, override, facts in (
        ("autoencoder", "encoder.kind=transformer", "transformer x vector dense"),
        ("video-classification", "encoder.kind=hierarchical", "hierarchical video"),
        ("speech-recognition", "encoder.kind=hierarchical", "hierarchical audio sound pyramidal transformer"),
    )
]
SELF_ATTENTION = [
    Refused(TINY, {path: "self-attention-score"}, facts, overrides=[override])
    for override, path, facts in (
        ("encoder.self_attention=location", "encoder.self_attention", "location dot scaled-dot"),
        ("encoder.self_attention=coverage", "encoder.self_attention", "coverage dot scaled-dot"),
        ("encoder.self_attention=adaptive", "encoder.self_attention", "adaptive additive"),
        ("inputs.source.encoder={self_attention: x}", "inputs.source.encoder.self_attention", "x"),
    )
]


@pytest.mark.parametrize("case", [*UNUSED, *WRONG_KIND, *SELF_ATTENTION], ids=str)
def test_refused_settings_of_encoders(case: Refused) -> None:
    case.check()


@pytest.mark.parametrize("override", ["encoder.size=9", "encoder.embedding.size=9", "encoder.dropout=0.5"])
def test_settings_that_an_input_takes_from_the_recipes_encoder_are_kept(override: str) -> None:
    recipe = load_recipe(OWN, overrides=[override])
    key = override.partition("=")[0].removeprefix("encoder.")
    for settings in (recipe.encoder, recipe.inputs["source"].encoder):
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        assert value == float(override.partition("=")[2])
    assert load_recipe(recipe) == recipe


def test_an_input_with_another_encoder_leaves_no_settings_behind() -> None:
    changes = ["inputs.source.encoder.kind=transformer", "attention.score=additive"]
    recipe = load_recipe({**ONE, "encoder": {"size": 9, "layers": 2}}, overrides=changes)
    assert (recipe.encoder.size, recipe.inputs["source"].encoder.kind) == (load_recipe({}).encoder.size, "transformer")


def test_self_attention_is_off_by_default() -> None:
    assert load_recipe(ONE).encoder.self_attention == "none"  # type: ignore[union-attr]


def test_equations_of_self_attention() -> None:
    additive = load_recipe(TINY, overrides=["encoder.self_attention=additive"]).encoder
    lines = "\n".join(RecurrentEncoder(additive, symbols=9).equations())  # type: ignore[arg-type]
    assert "f_j = gru(f_{j-1}, [e(x_j); c_j])" in lines
    assert "c_j = sum_{i<j} a_ji f_i" in lines
    assert "e_i = v' tanh(W_q q + W_k k_i), with q = Q_x e(x_j) + Q_h f_{j-1} and k_i = f_i" in lines
    assert "d_j" in lines
    uniform = load_recipe(TINY, overrides=["encoder.self_attention=uniform", "encoder.bidirectional=false"]).encoder
    lines = "\n".join(RecurrentEncoder(uniform, symbols=9).equations())  # type: ignore[arg-type]
    assert "h_j = gru(h_{j-1}, [e(x_j); c_j])" in lines
    assert "Q_x" not in lines
    assert "d_j" not in lines


def test_parameters_of_self_attention() -> None:
    plain, attending = (
        {
            parameter.name: parameter.shape
            for parameter in recipe_parameters(load_recipe(TINY, overrides=changes), {})
            if parameter.part.startswith("enc")
        }
        for changes in ([], ["encoder.self_attention=general"])
    )
    added = {name: shape for name, shape in attending.items() if name not in plain and "forwards" in name}
    assert added == {
        "W_c, layer 1 forwards": ("24", "8"),
        "Q_x, layer 1 forwards, self-attention": ("8", "6"),
        "Q_h, layer 1 forwards, self-attention": ("8", "8"),
        "W, layer 1 forwards, self-attention": ("8", "8"),
    }
    assert plain.keys() < attending.keys()


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_an_encoder_is_as_large_as_its_settings_promise(bidirectional: bool, layers: int) -> None:
    settings = RecurrentEncoderSettings(size=3, layers=layers, bidirectional=bidirectional)
    encoder = encoders[settings.kind](settings, symbols=5)
    assert (encoder.size, encoder.summary_size) == (settings.places_size, settings.summary_size)
