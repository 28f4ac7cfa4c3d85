"""Probabilities under hard attention are given the places chosen, and every report of them says so."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from seq2see.api import Model
from seq2see.data.vocabulary import SOS
from seq2see.errors import Notice
from seq2see.pipeline.bundle import Bundle
from seq2see.pipeline.fields import Fields
from seq2see.pipeline.five_answers import answers_of
from seq2see.recipe import load_recipe

ROWS = [{"word": "a b", "output": "A B"}, {"word": "b", "output": "B"}]
SMALL = {"encoder": {"size": 4, "embedding": {"size": 4}}, "decoder": {"size": 4, "embedding": {"size": 4}}}
GIVEN = "the places chosen"


def untrained(**attention: Any) -> Model:
    recipe = load_recipe({"inputs": {"word": {}}, "attention": {"size": 4, **attention}, **SMALL})
    return Model(Bundle.create(recipe, Fields.build(recipe, lambda: iter(ROWS))))


def test_hard_attention_says_what_its_probabilities_are_given() -> None:
    model = untrained(choice="hard")
    assert any(f"given {GIVEN}" in line for line in answers_of(model.bundle).decoder)
    assert model.predict("a b").to_dict()["given"] == GIVEN
    assert model.score(ROWS).to_dict()["given"] == GIVEN
    with pytest.warns(Notice, match=f"perplexity is given {GIVEN}"):
        model.evaluate(ROWS, metrics=["perplexity"])


def test_soft_attention_has_nothing_to_say(recwarn: pytest.WarningsRecorder) -> None:
    model = untrained()
    assert not any("P is given" in line for line in answers_of(model.bundle).decoder)
    assert "given" not in model.predict("a b").to_dict()
    assert "given" not in model.score(ROWS).to_dict()
    model.evaluate(ROWS, metrics=["perplexity"])
    assert not [one for one in recwarn if "given" in str(one.message)]


def test_looks_tell_the_place_each_step_went_by() -> None:
    model = untrained(choice="hard")
    looks = model.predict("a b").looks
    network, fields = model.bundle.network.eval(), model.bundle.fields
    ready = network.ready(fields.batch([{"word": "a b"}]).inputs, 1)
    step = network.step(ready, network.begin(ready), torch.tensor([SOS]))
    assert step.looks["word"].place is not None
    assert looks.chosen["word"][0] == step.looks["word"].place.item()
    assert len(looks.chosen["word"]) == len(looks.outputs)
    assert untrained(choice="hard", heads=2).predict("a b").looks.chosen == {}
    assert untrained().predict("a b").looks.chosen == {}
    assert Model([model.bundle, model.bundle]).predict("a b").looks.chosen == {}
