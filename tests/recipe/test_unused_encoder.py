"""The recipe's own encoder is refused where no input is read by it, and what inputs take from it is not."""

from __future__ import annotations

from typing import Any

import pytest

from seq2see.errors import UserError
from seq2see.recipe import load_recipe
from seq2see.recipe.load import shipped

READ: dict[str, Any] = {"inputs": {"source": {"encoder": {"kind": "recurrent"}}}}
OWN: dict[str, Any] = {"inputs": {"source": {"encoder": {"cell": "lstm"}}}}


@pytest.mark.parametrize(
    ("recipe", "override", "said"),
    [
        ("image-captioning", "encoder.size=999", "encoder.size: has no effect here: every input has an encoder"),
        (READ, "encoder.kind=transformer", "encoder: has no effect here: every input has an encoder"),
        (
            "autoencoder",
            "encoder.kind=transformer",
            "encoder.kind: transformer does not read 'x', an input of kind vector; allowed: dense",
        ),
        (
            "video-classification",
            "encoder.kind=hierarchical",
            "encoder.kind: hierarchical does not read 'video', an inp",
        ),
        (
            "speech-recognition",
            "encoder.kind=hierarchical",
            "encoder.kind: hierarchical does not read 'audio', an inpu",
        ),
        ("image-captioning", "encoder.self_attention=dot", "encoder.self_attention: has no effect here"),
        ("image-captioning", "encoder.embedding.size=7", "encoder.embedding.size: has no effect here"),
        ("language-model", "encoder.kind=transformer", "encoder: has no effect here: there are no inputs"),
        ("language-model", "encoder.size=9", "encoder.size: has no effect here: there are no inputs"),
        (OWN, "encoder.cell=rnn", "encoder.cell: has no effect here"),
    ],
)
def test_what_reads_nothing_is_refused(recipe: str | dict[str, Any], override: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_recipe(recipe, overrides=[override])


@pytest.mark.parametrize("override", ["encoder.size=9", "encoder.embedding.size=9", "encoder.dropout=0.5"])
def test_what_an_input_takes_from_it_is_kept(override: str) -> None:
    made = load_recipe(OWN, overrides=[override])
    key = override.partition("=")[0].removeprefix("encoder.")
    for settings in (made.encoder, made.inputs["source"].encoder):
        value: Any = settings
        for part in key.split("."):
            value = getattr(value, part)
        assert value == float(override.partition("=")[2])
    assert load_recipe(made) == made


def test_an_input_that_is_read_otherwise_leaves_nothing_behind() -> None:
    changes = ["inputs.source.encoder.kind=transformer", "attention.score=additive"]
    made = load_recipe({"inputs": {"source": {}}, "encoder": {"size": 9, "layers": 2}}, overrides=changes)
    assert (made.encoder.size, made.inputs["source"].encoder.kind) == (load_recipe({}).encoder.size, "transformer")


@pytest.mark.parametrize("name", shipped())
def test_resolved_recipes_are_read_again(name: str) -> None:
    made = load_recipe(name)
    assert load_recipe(made.to_dict(), complete=True) == made
